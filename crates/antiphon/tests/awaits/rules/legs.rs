//! Between two legs: checkpoints, versions, what stays the same and what is not told twice.

use super::*;
use antiphon::{
    Clock, ManualClock,
    server::flow::{Migration, OnVersion},
    wire::LogLevel,
};
use serde::Serialize;
use std::{
    future::{Future as _, poll_fn},
    pin::pin,
    time::Duration,
};

#[tokio::test]
async fn a_leg_ends_at_a_checkpoint_twice_and_passes_the_third() {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let server = server(tool!(|ctx| {
        for n in 0..3 {
            ctx.step(("s", n), async |_| Ok(RUNS.fetch_add(1, SeqCst))).await?;
            ctx.checkpoint().nth(n).now().await;
        }
        Ok(ctx.leg().to_string())
    }));
    let mut talk = ToolCall::new(json!({}));
    for _ in 0..2 {
        let reply = talk.leg(&server, Value::Null).await;
        // Some clients take a result without it as the final one.
        assert_eq!(reply["result"]["inputRequests"], json!({}), "{reply}");
        assert!(reply["result"]["requestState"].is_string());
    }
    assert_eq!(result_text(&talk.leg(&server, Value::Null).await), "3");
    assert_eq!(RUNS.load(SeqCst), 3);
}

/// Some clients count them for the whole call.
#[tokio::test]
async fn a_call_that_begins_again_ends_no_more_legs_at_checkpoints() {
    macro_rules! pauses {
        ($version:literal) => {
            tool!(|ctx| {
                ctx.checkpoint().now().await;
                ctx.checkpoint().key("second").now().await;
                ctx.elicit::<Confirm>("Sure?").await?;
                Ok(ctx.leg().to_string())
            })
            .version($version)
            .on_version(OnVersion::Restart)
        };
    }
    let (old, new) = (server(pauses!(1)), server(pauses!(2)));
    let mut talk = ToolCall::new(json!({}));
    talk.leg(&old, Value::Null).await;
    talk.leg(&new, Value::Null).await;
    talk.leg(&old, Value::Null).await;
    assert_eq!(result_text(&talk.leg(&old, json!({"confirm": yes()})).await), "4");
    assert_eq!(talk.rounds, [vec![], vec![], vec!["confirm".to_owned()]]);
}

/// A tool of another version, which may have other steps.
macro_rules! version {
    ($version:literal, $step:literal) => {
        tool!(|ctx| {
            let place: Place = ctx.elicit("Where?").await?;
            let id: String = ctx.step($step, async |_| Ok(format!("{} of {}", $step, place.region))).await?;
            ctx.elicit::<Confirm>("Sure?").await?;
            Ok(id)
        })
        .version($version)
    };
    ($version:literal) => {
        tool!(|ctx| {
            let place: Place = ctx.elicit("Where, again?").await?;
            let id: String = ctx.step("create", async |_| ok("created again").await).await?;
            ctx.elicit::<Confirm>("Sure?").await?;
            Ok(format!("{id} for {}", place.region))
        })
        .version($version)
    };
}

#[tokio::test]
async fn another_version_goes_on_as_it_says() {
    let migration = Migration::new;
    let keeps = "create of eu";
    for (new, expected) in [
        (version!(2, "create"), keeps),
        (version!(2, "create").on_version(OnVersion::Keep), keeps),
        (version!(1, "create").on_version(OnVersion::Reject), keeps),
        (version!(2, "create").on_version(OnVersion::Reject), r#""reason":"version""#),
        // From its first question on.
        (version!(2, "create").on_version(OnVersion::Restart), "create of us"),
        (version!(2, "create_db"), "flow_diverged"),
        (version!(2, "create_db").migrate(migration().rename("create", "create_db")), keeps),
        (version!(2, "create_db").migrate(migration().forget("create")), "create_db of eu"),
        (version!(2, "create_db").lenient_replay(true), "create_db of eu"),
        // A migration is for calls of another version.
        (version!(1, "create_db").migrate(migration().forget("create")), "flow_diverged"),
        (version!(2), "flow_diverged"),
        (version!(2).migrate(migration().keep_stale("create")), "create of eu for us"),
    ] {
        let mut talk = ToolCall::new(json!({}));
        legs(&server(version!(1, "create")), &mut talk, &[Value::Null, json!({"place": place("eu")})]).await;
        let new = server(new);
        let mut reply = talk.leg(&new, json!({"confirm": yes()})).await;
        for _ in 0..3 {
            if reply["result"]["resultType"] == "input_required" {
                reply = talk.leg(&new, json!({"place": place("us"), "confirm": yes()})).await;
            }
        }
        assert!(
            reply.to_string().contains(expected) || result_text(&reply) == expected,
            "{expected}: {reply}"
        );
    }
}

#[tokio::test]
async fn time_and_chance_are_the_same_on_every_leg() {
    static SEEN: Mutex<Vec<(std::time::SystemTime, u64, u64, u64)>> = Mutex::new(Vec::new());
    let tool = tool!(|ctx| {
        let seen = (ctx.now(), ctx.random_u64("a"), ctx.random_u64("b"), ctx.scope("s").random_u64("a"));
        SEEN.lock().unwrap().push(seen);
        ctx.elicit::<Confirm>("Sure?").await?;
        ok("").await
    });
    let (clock, hand) = Clock::manual(start());
    let server = built(tool, |builder| builder.clock(clock));
    for _ in 0..2 {
        let mut talk = ToolCall::new(json!({}));
        talk.leg(&server, Value::Null).await;
        hand.advance(Duration::from_secs(60));
        talk.leg(&server, json!({"confirm": yes()})).await;
    }
    let seen = SEEN.lock().unwrap();
    assert_eq!((seen[0], seen[2]), (seen[1], seen[3]));
    assert_eq!((seen[0].0, seen[2].0), (start(), start() + Duration::from_secs(60)));
    let mut numbers: Vec<u64> = seen.iter().flat_map(|seen| [seen.1, seen.2, seen.3]).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 6, "other calls and other keys have other numbers");
}

#[tokio::test]
async fn notifications_are_not_sent_again() {
    let tool = tool!(|ctx| {
        ctx.report_progress(1.0, None, None);
        ctx.log(LogLevel::Info, json!("begun"));
        ctx.step("s", async |_| {
            ctx.report_progress(2.0, None, None);
            ok("").await
        })
        .await?;
        ctx.report_progress(3.0, None, None);
        ctx.elicit::<Confirm>("Sure?").await?;
        ctx.report_progress(4.0, None, None);
        ctx.log(LogLevel::Info, json!("sure"));
        ctx.step("t", async |_| ok("").await).await?;
        ctx.report_progress(5.0, None, None);
        ok("done").await
    });
    let server = Server::builder("await", "1")
        .replay_check(ReplayCheck::Off)
        .tool(tool)
        .keys(ring(7))
        .logging(true)
        .build()
        .unwrap();
    let mut peer = lines::serve(server, 1 << 16);
    let loud = with(&meta(), json!({"progressToken": "p", "io.modelcontextprotocol/logLevel": "debug"}));
    let mut params = json!({"name": "t", "_meta": loud});
    let mut told = Vec::new();
    for _ in 0..2 {
        peer.send(request(1, "tools/call", params.clone()).to_string()).await;
        loop {
            let message = peer.receive().await.unwrap();
            match message["method"].as_str() {
                Some("notifications/progress") => told.push(message["params"]["progress"].to_string()),
                Some(_) => told.push(message["params"]["data"].to_string()),
                None => {
                    told.push(message["result"]["resultType"].to_string());
                    params = with(
                        &params,
                        json!({"requestState": message["result"]["requestState"], "inputResponses": {"confirm": yes()}}),
                    );
                    break;
                }
            }
        }
    }
    let first = ["1.0", "\"begun\"", "2.0", "3.0", "\"input_required\""];
    let second = ["4.0", "\"sure\"", "5.0", "\"complete\""];
    assert_eq!(told, [&first[..], &second[..]].concat());
}

#[tokio::test]
async fn a_spawned_task_ends_with_its_leg() {
    struct DropSignal(tokio::sync::mpsc::UnboundedSender<()>);
    impl Drop for DropSignal {
        fn drop(&mut self) {
            self.0.send(()).unwrap();
        }
    }
    static SENDER: Mutex<Option<tokio::sync::mpsc::UnboundedSender<()>>> = Mutex::new(None);
    let (sender, mut gone) = tokio::sync::mpsc::unbounded_channel();
    *SENDER.lock().unwrap() = Some(sender);
    let server = server(tool!(|ctx| {
        let guard = DropSignal(SENDER.lock().unwrap().clone().unwrap());
        let _task = ctx.spawn(async move {
            let _guard = guard;
            std::future::pending::<()>().await;
        });
        let quick = ctx.spawn(async { 7 }).await?;
        ctx.elicit::<Confirm>("Sure?").await?;
        Ok(quick.to_string())
    }));
    let mut talk = ToolCall::new(json!({}));
    for answers in [Value::Null, json!({"confirm": yes()})] {
        talk.leg(&server, answers).await;
        gate::soon(gone.recv()).await.unwrap();
    }
    assert!(gone.try_recv().is_err());
}

/// The first question of a tool costs a poll more, because most handlers return without one.
#[tokio::test]
async fn a_tool_that_has_asked_before_asks_in_one_poll() {
    static POLLS: AtomicUsize = AtomicUsize::new(0);
    let tool = tool!(|ctx| {
        let mut asked = pin!(ctx.elicit::<Place>("Where?"));
        let place = poll_fn(|cx| {
            POLLS.fetch_add(1, SeqCst);
            asked.as_mut().poll(cx)
        });
        Ok(place.await?.region)
    });
    let server = built(tool, |builder| builder.replay_check(ReplayCheck::Off));
    for expected in [2, 1, 1] {
        let mut call = ToolCall::new(json!({}));
        let before = POLLS.load(SeqCst);
        call.leg(&server, Value::Null).await;
        assert_eq!(POLLS.load(SeqCst) - before, expected);
        assert_eq!(result_text(&call.leg(&server, json!({"place": place("eu")})).await), "eu");
    }
}

/// The end of the handler in [`after_the_time`].
#[derive(Clone, Copy, Debug, Deserialize, Serialize, schemars::JsonSchema)]
enum Ends {
    Asks,
    /// A question whose key is invalid.
    Faults,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Works {
    works_for: u64,
    ends: Ends,
}

/// Runs a call of a minute whose second leg works for so many seconds, and then ends so. Returns the reply of that leg.
async fn after_the_time(works_for: u64, ends: Ends) -> Value {
    static HAND: Mutex<Option<ManualClock>> = Mutex::new(None);
    let (clock, hand) = Clock::manual(start());
    *HAND.lock().unwrap() = Some(hand);
    let tool = Tool::new("t", async |ctx: &Ctx, Works { works_for, ends }: Works| -> Result<String> {
        ctx.step("charge", async |_| Ok(1)).await?;
        ctx.elicit::<Place>("Where?").await?;
        HAND.lock().unwrap().as_ref().unwrap().advance(Duration::from_secs(works_for));
        let key = match ends {
            Ends::Asks => "sure",
            Ends::Faults => "",
        };
        ctx.elicit::<Confirm>("Sure?").key(key).await?;
        Ok(String::new())
    });
    let server = built(tool, |builder| {
        builder.clock(clock).call_timeout(Duration::from_secs(60)).replay_check(ReplayCheck::Off)
    });
    let mut call = ToolCall::new(json!({ "works_for": works_for, "ends": ends }));
    legs(&server, &mut call, &[Value::Null, json!({"place": place("eu")})]).await
}

/// A question that leaves after the time of its call could never be answered, and a state could not come back: the error comes at
/// once, with the steps of all legs.
#[tokio::test]
async fn nothing_leaves_after_the_time_of_its_call() {
    for works_for in [59, 60] {
        let reply = after_the_time(works_for, Ends::Asks).await;
        assert!(reply["result"]["inputRequests"]["sure"].is_object(), "{works_for}: {reply}");
        let reply = after_the_time(works_for, Ends::Faults).await;
        assert_eq!(reply["result"]["inputRequests"], json!({}), "{works_for}: {reply}");
    }
    let error = &after_the_time(61, Ends::Asks).await["error"];
    assert_eq!(
        (&error["data"]["limit"], &error["data"]["done"]),
        (&json!("call_timeout"), &json!(["charge"]))
    );
    let error = &after_the_time(61, Ends::Faults).await["error"];
    assert_eq!((&error["code"], &error["data"]["done"]), (&json!(-32603), &json!(["charge"])), "{error}");
}
