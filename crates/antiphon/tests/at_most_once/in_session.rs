//! Calls in sessions of 2025: each request is claimed as that of its session, so that all levels hold, and an error names what was
//! done.

use super::*;
use crate::common::session::{InSession, plain};
use antiphon::{
    Error,
    server::{Ask, Reply, StepError, asks::InputRequired, flow::Winner, operations::OnExpired},
    testing::store_contract::{FaultyStore, StoreFault},
    wire::forms::{FormField, FormSchema},
};
use std::time::Duration;

/// The revisions of sessions in which questions can be asked.
const VERSIONS: [&str; 2] = ["2025-06-18", "2025-11-25"];

/// A store on the clock of the runtime.
fn running_store() -> Arc<MemoryStore> {
    let begin = tokio::time::Instant::now();
    let clock = StoreClock::from_fn(move || Micros::new(1_800_000_000_000_000).after(begin.elapsed()));
    Arc::new(MemoryStore::new().clock(clock))
}

fn with_store(tool: Tool, store: &Arc<MemoryStore>, change: fn(ServerBuilder) -> ServerBuilder) -> Server {
    let shared: Arc<dyn CallStore> = Arc::clone(store) as _;
    built(tool, &shared, change)
}

type Change = fn(ServerBuilder) -> ServerBuilder;

const LEVELS: [Change; 2] = [|builder| builder.single_use(true), |builder| builder.write_ahead(true)];

/// A handler of some shape that charges, asks `pick`, and ships.
type Shape = fn(&Effects) -> Tool;

fn charges(
    effects: &Effects,
    between: for<'a> fn(&'a Ctx, &'a Effects) -> BoxFuture<'a, Result<String>>,
) -> Tool {
    let effects = effects.clone();
    tool(move |ctx| {
        let effects = effects.clone();
        async move {
            ctx.step("charge", async |s| Ok(effects.note("charge", s.key()))).await?;
            let picked = between(ctx, &effects).await?;
            ctx.step("ship", async |s| Ok(effects.note("ship", s.key()))).await?;
            Ok(picked)
        }
        .boxed()
    })
}

async fn picks(ctx: &Ctx) -> Result<String> {
    Ok(ctx.elicit::<Pick>("Which?").key("pick").await?.name)
}

const SHAPES: [(&str, Shape); 4] = [
    ("awaits", |effects| charges(effects, |ctx, _| picks(ctx).boxed())),
    ("a step beside the question", |effects| {
        charges(effects, |ctx, effects| {
            async move {
                let beside = ctx.step("beside", async |s| {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    Ok(effects.note("beside", s.key()))
                });
                let (picked, beside) = tokio::join!(picks(ctx), beside);
                beside?;
                picked
            }
            .boxed()
        })
    }),
    ("a race", |effects| {
        charges(effects, |ctx, _| {
            async move {
                match ctx.select("race", (picks(ctx), std::future::pending::<()>())).await {
                    Winner::A(picked) => picked,
                    Winner::B(()) => Ok("never".to_owned()),
                }
            }
            .boxed()
        })
    }),
    ("a step that fails at first", |effects| {
        charges(effects, |ctx, effects| {
            async move {
                let picked = picks(ctx).await?;
                ctx.step("beside", async |s| {
                    effects.note("tries", s.key());
                    if effects.runs("tries") % 2 == 1 {
                        return Err(StepError::retry(Error::user_facing("not now")));
                    }
                    Ok(effects.note("beside", s.key()))
                })
                .await?;
                Ok(picked)
            }
            .boxed()
        })
    }),
];

/// Calls the tool, and answers its question. Returns the reply.
async fn call(session: &mut InSession, id: u32, after: Duration) -> Value {
    let ask = session.asks(id, "tools/call", json!({"name": "t", "arguments": {}})).await;
    if ask["method"] != "elicitation/create" {
        return ask;
    }
    tokio::time::sleep(after).await;
    session.answers(&ask, accept(json!({"name": "mug"}))).await;
    session.receive().await
}

#[tokio::test(start_paused = true)]
async fn a_call_in_a_session_has_each_effect_once_at_every_level() {
    for level in LEVELS {
        for (name, shape) in SHAPES {
            for version in VERSIONS {
                let (effects, store) = (Effects::default(), running_store());
                let server = with_store(shape(&effects), &store, level);
                let mut session = InSession::open(&server, version, json!({"elicitation": {}})).await;
                // Longer than the lease, which is renewed while a person thinks.
                let reply = call(&mut session, 1, Duration::from_secs(50)).await;
                assert_eq!(result_text(&reply), "mug", "{name} {version}: {reply}");
                assert_eq!((effects.runs("charge"), effects.runs("ship")), (1, 1), "{name} {version}");
                assert_eq!(store.rows(), 1, "{name} {version}: the call is in the store");
                // The same request: JSON-RPC allows no other one with its id.
                session.send(plain(1, "tools/call", json!({"name": "t", "arguments": {}}))).await;
                assert_eq!(session.receive().await, reply, "{name} {version}");
                assert_eq!((effects.runs("charge"), effects.runs("ship")), (1, 1), "{name} {version}");
                // Another request is another call.
                let reply = call(&mut session, 2, Duration::ZERO).await;
                assert_eq!(result_text(&reply), "mug", "{name} {version}: {reply}");
                assert_eq!(effects.distinct_keys("charge"), 2, "{name} {version}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn requests_of_two_sessions_are_two_calls() {
    let (effects, store) = (Effects::default(), running_store());
    let server = with_store(SHAPES[0].1(&effects), &store, |builder| builder.write_ahead(true));
    for calls in 1..=3 {
        let mut session = InSession::newest(&server).await;
        assert_eq!(result_text(&call(&mut session, 1, Duration::ZERO).await), "mug");
        assert_eq!(effects.distinct_keys("charge"), calls);
    }
}

/// Charges, returns three questions one after the other, and ships.
fn by_hand(effects: &Effects) -> Tool {
    fn lent<F: for<'a> Fn(&'a Ctx, NoArguments) -> BoxFuture<'a, Result<Reply<String>>>>(handler: F) -> F {
        handler
    }
    let effects = effects.clone();
    let handler = lent(move |ctx, _| {
        let effects = effects.clone();
        async move {
            ctx.step("charge", async |s| Ok(effects.note("charge", s.key()))).await?;
            let asked = ctx.by_hand().state().unwrap_or_default().len();
            if asked < 3 {
                let form = Ask::form("pick", "Which?", FormSchema::new(vec![FormField::text("name")]));
                return Ok(InputRequired::ask(form).with_state("x".repeat(asked + 1)).into());
            }
            ctx.step("ship", async |s| Ok(effects.note("ship", s.key()))).await?;
            Ok(Reply::Complete("mug".to_owned()))
        }
        .boxed()
    });
    Tool::new("t", handler)
}

/// The person takes longer than the lease between questions that a handler returns: the call has several legs and one claim.
#[tokio::test(start_paused = true)]
async fn returned_questions_keep_the_claim_of_their_call() {
    for level in LEVELS {
        let (effects, store) = (Effects::default(), running_store());
        let server = with_store(by_hand(&effects), &store, level);
        let mut session = InSession::newest(&server).await;
        let mut message = session.asks(1, "tools/call", json!({"name": "t", "arguments": {}})).await;
        while message["method"] == "elicitation/create" {
            tokio::time::sleep(Duration::from_secs(50)).await;
            session.answers(&message, accept(json!({"name": "mug"}))).await;
            message = session.receive().await;
        }
        assert_eq!(result_text(&message), "mug", "{message}");
        assert_eq!((effects.runs("charge"), effects.runs("ship")), (1, 1));
    }
}

/// Whatever operation of the store fails, no error invites to pay again.
#[tokio::test(start_paused = true)]
async fn an_error_after_an_effect_does_not_invite_to_send_the_request_again() {
    for level in LEVELS {
        for fault in [StoreFault::Refused, StoreFault::LostRequest, StoreFault::LostReply] {
            for operation in 0..10 {
                let (effects, store) = (Effects::default(), running_store());
                let faulty: Arc<dyn CallStore> = Arc::new(FaultyStore::new(store).fail(operation, fault));
                let server = built(SHAPES[0].1(&effects), &faulty, level);
                let mut session = InSession::newest(&server).await;
                let reply = call(&mut session, 1, Duration::ZERO).await;
                let case = format!("{fault:?} of operation {operation}: {reply}");
                assert!(effects.runs("charge") <= 1 && effects.runs("ship") <= 1, "{case}");
                if reply["result"].is_object() {
                    continue;
                }
                let text = reply["error"]["message"].as_str().unwrap();
                let invites =
                    text.contains("end it again later") || text.contains("end the same request again");
                assert!(!(invites && effects.runs("charge") > 0), "{case}");
                if reply["error"]["data"]["done"].is_array() {
                    assert!(text.contains("Do not send this again"), "{case}");
                }
            }
        }
    }
}

/// The steps of a call that was cancelled do not run again when a copy of its request arrives.
#[tokio::test(start_paused = true)]
async fn a_late_copy_of_a_cancelled_request_runs_no_step() {
    for level in LEVELS {
        let (effects, store) = (Effects::default(), running_store());
        let server = with_store(SHAPES[0].1(&effects), &store, level);
        let mut session = InSession::newest(&server).await;
        let request = plain(1, "tools/call", json!({"name": "t", "arguments": {}}));
        session.send(request.clone()).await;
        let ask = session.receive().await;
        assert_eq!(ask["method"], "elicitation/create");
        let cancelled =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
        session.send(cancelled).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        // Later, the row of the call is gone: `ClaimOptions::first_request_ttl`.
        for _ in 0..2 {
            session.send(request.clone()).await;
            tokio::time::sleep(Duration::from_secs(11)).await;
            let mut reply = session.receive().await;
            while reply["method"] == "notifications/cancelled" {
                reply = session.receive().await;
            }
            assert!(["in_flight", "outcome_unknown"].contains(&reason(&reply)), "{reply}");
            tokio::time::sleep(Duration::from_secs(31)).await;
        }
        assert_eq!((effects.runs("charge"), effects.runs("ship")), (1, 0));
    }
}

/// Two callers without a name could send the same bytes: nothing runs.
#[tokio::test]
async fn a_first_request_that_cannot_be_claimed_is_refused_before_its_first_line() {
    let changes: [Change; 4] = [
        |builder| builder.single_use(true),
        |builder| builder.write_ahead(true),
        |builder| builder.write_ahead(true).on_expired(OnExpired::AskAgain),
        |builder| builder.write_ahead(true).spill(true),
    ];
    for change in changes {
        let (effects, store) = (Effects::default(), store().0);
        let server = built(shop(&effects), &store, |builder| change(builder).accepts_state_only(|_| false));
        let reply = ToolCall::new(json!({})).leg(&server, Value::Null).await;
        assert_eq!((reason(&reply), effects.runs("charge")), ("no_claim", 0), "{reply}");
    }
}
