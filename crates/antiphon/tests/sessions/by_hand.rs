//! Handlers that ask by hand in a session: what they return is sent, and they are entered again with the answers.

use super::asks::{accept, built, call, patiently, text, tool};
use crate::common::{
    session::{InSession, everything, plain},
    *,
};
use antiphon::{
    Result,
    serve::MessageService as _,
    server::{
        Answer, Ask, Caller, Ctx, Limits, NoArguments, Reply, Tool, asks::InputRequired, flow::Carrier,
    },
    wire::{
        ProtocolVersion,
        forms::{FormField, FormSchema},
        messages::Incoming,
        sampling::SamplingMessage,
    },
};
use serde::Deserialize;
use serde_json::json;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

/// Handlers that return their questions are entered again with the answers.
#[tokio::test]
async fn asked_by_hand() {
    let entered = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&entered);
    let form = || Ask::form("region", "Which region?", FormSchema::new(vec![FormField::text("region")]));
    let sure = || Ask::form("sure", "Sure?", FormSchema::new(vec![FormField::boolean("sure")]));
    #[derive(Deserialize)]
    struct Sure {
        sure: bool,
    }
    let server = built(move |builder| {
        let counted = Arc::clone(&counted);
        builder.tool(tool("t", move |ctx, _| {
            counted.fetch_add(1, Ordering::SeqCst);
            assert_eq!(ctx.carrier(), Carrier::Pushed);
            let by_hand = || -> Result<Reply<String>> {
                Ok(
                    match (
                        ctx.by_hand().state(),
                        ctx.by_hand().form::<Region>(&form())?,
                        ctx.by_hand().form::<Sure>(&sure())?,
                    ) {
                        (None, None, _) => InputRequired::state_only("begun").into(),
                        (Some("begun"), None, _) => {
                            InputRequired::ask(form()).and(sure()).with_state("asked").into()
                        }
                        (Some("asked"), Some(Answer::Accept(region)), Some(Answer::Accept(sure))) => {
                            Reply::Complete(format!("{} {} {}", region.region, sure.sure, ctx.leg()))
                        }
                        other => Reply::Complete(format!("unexpected {:?}", other.0)),
                    },
                )
            };
            let reply = by_hand();
            Box::pin(async move { reply })
        }))
    });
    let mut session = InSession::newest(&server).await;
    session.send(call()).await;
    let (first, second) = (session.receive().await, session.receive().await);
    session.answers(&second, accept(json!({"sure": "yes"}))).await;
    session.answers(&first, accept(json!({"region": "eu"}))).await;
    // The one that did not fit is asked again, alone.
    let again = session.receive().await;
    assert!(again["params"]["message"].as_str().unwrap().starts_with("Sure?\n\n"), "{again}");
    session.answers(&again, accept(json!({"sure": true}))).await;
    assert_eq!(text(&session.receive().await), "eu true 3");
    assert_eq!(entered.load(Ordering::SeqCst), 3);
}

/// A faulty answer of a round is reported at once, and is not stored: the other answers may take long.
#[tokio::test]
async fn each_answer_by_hand_is_judged_when_it_comes() {
    let region = |length: usize| accept(json!({"region": "x".repeat(length)}));
    let longest = 64 * 1024 - region(0).to_string().len();
    let sampled = |length: usize| json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "x".repeat(length)}});
    let most = 1024 * 1024 - sampled(0).to_string().len();
    let uris = |length: usize| json!({"roots": [{"uri": format!("file:///{}", "x".repeat(length))}]});
    let words = |most: usize| format!("at most {most} bytes");
    let params = || antiphon::wire::sampling::CreateMessageParams::new(vec![SamplingMessage::user("?")], 10);
    let form = || Ask::form("ask", "Which?", FormSchema::new(vec![FormField::text("region")]));
    let url = || Ask::url("ask", "Pay.", "https://pay.example/1");
    type Asks = dyn Fn() -> Ask + Send + Sync;
    let (form, url): (Arc<Asks>, Arc<Asks>) = (Arc::new(form), Arc::new(url));
    let sample: Arc<Asks> = Arc::new(move || Ask::sample("ask", params()));
    let roots: Arc<Asks> = Arc::new(|| Ask::roots("ask"));
    for (what, asks, bad, reason, good) in [
        ("a form that is too long", &form, region(longest + 1), words(64 * 1024), region(longest)),
        ("a form that does not fit", &form, accept(json!({"region": 7})), "Region".to_owned(), region(1)),
        ("a URL", &url, accept(json!({"x": "x".repeat(70_000)})), words(64 * 1024), accept(json!({}))),
        // They have no message that could say why.
        ("a sample", &sample, sampled(most + 1), String::new(), sampled(most)),
        ("roots", &roots, uris(1024 * 1024), String::new(), uris(1)),
    ] {
        let asks = Arc::clone(asks);
        let server = built(move |builder| {
            builder.tool(tool("t", move |ctx, _| {
                let last = Ask::form("last", "Sure?", FormSchema::new(vec![FormField::boolean("sure")]));
                let reply: Reply<String> = if ctx.by_hand().state().is_some() {
                    Reply::Complete(
                        ctx.by_hand().input_responses().map(|(key, _)| key).collect::<Vec<_>>().join(" and "),
                    )
                } else {
                    InputRequired::ask(asks()).and(last).with_state("asked").into()
                };
                Box::pin(async move { reply })
            }))
        });
        for gives_up in [false, true] {
            let mut session = InSession::newest(&server).await;
            session.send(call()).await;
            let (mut asked, last) = (session.receive().await, session.receive().await);
            for times in 1..=3 {
                session.answers(&asked, bad.clone()).await;
                let again = session.receive().await;
                if times == 3 {
                    // The other is taken back.
                    let error = if again["method"] == "notifications/cancelled" {
                        session.receive().await
                    } else {
                        again
                    };
                    assert_eq!(error["error"]["data"]["limit"], "times_asked", "{what}: {error}");
                    break;
                }
                assert_eq!(again["method"], asked["method"], "{what}: {again}");
                let message = again["params"]["message"].as_str().unwrap_or_default();
                assert!(message.contains(&reason), "{what}: {message}");
                asked = again;
                if !gives_up {
                    session.answers(&asked, good.clone()).await;
                    session.answers(&last, accept(json!({"sure": true}))).await;
                    assert_eq!(text(&session.receive().await), "ask and last", "{what}");
                    break;
                }
            }
        }
    }
}

/// Each question by hand has its own time, and again when it is asked again.
#[tokio::test(start_paused = true)]
async fn the_time_of_each_question_by_hand() {
    let server = built(|builder| {
        builder.answer_timeout(Duration::from_secs(60)).tool(tool("t", |_, _| {
            let field = |name: &str| FormSchema::new(vec![FormField::boolean(name)]);
            let asks = InputRequired::ask(Ask::form("one", "One?", field("one"))).and(Ask::form(
                "two",
                "Two?",
                field("two"),
            ));
            Box::pin(async move { Reply::<String>::from(asks) })
        }))
    });
    let mut session = InSession::newest(&server).await;
    session.send(call()).await;
    let (one, two) = (patiently(&mut session).await, patiently(&mut session).await);
    tokio::time::sleep(Duration::from_secs(40)).await;
    session.answers(&one, accept(json!({}))).await;
    let began = tokio::time::Instant::now();
    let again = patiently(&mut session).await;
    assert!(again["params"]["message"].as_str().unwrap().starts_with("One?"), "{again}");
    session.answers(&two, accept(json!({"two": true}))).await;
    let cancelled = patiently(&mut session).await;
    assert_eq!(cancelled["params"]["requestId"], again["id"], "{cancelled}");
    let error = patiently(&mut session).await["error"].take();
    assert_eq!(error["data"], json!({"reason": "limit", "limit": "answer_timeout"}), "{error}");
    assert!(error["message"].as_str().unwrap().starts_with("`one` was not answered within 60"), "{error}");
    assert_eq!(began.elapsed().as_secs(), 60);
}

/// Work that only ever goes on is given up.
#[tokio::test(start_paused = true)]
async fn state_only_results_have_an_end() {
    let server = built(|builder| {
        builder.tool(Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Reply<String> {
            let so_far: u32 = ctx.by_hand().state().map_or(0, |state| state.parse().unwrap());
            InputRequired::state_only((so_far + 1).to_string()).into()
        }))
    });
    let mut session = InSession::newest(&server).await;
    session.send(call()).await;
    let error = patiently(&mut session).await["error"].take();
    assert_eq!(error["data"], json!({"reason": "limit", "limit": "state_only"}), "{error}");
}

/// A request without a stream for questions is one of a session too: the handler is entered again, and no state leaves.
#[tokio::test(start_paused = true)]
async fn no_state_leaves_without_a_stream() {
    let server = built(|builder| {
        builder.tool(Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Reply<String> {
            match ctx.by_hand().state() {
                None => InputRequired::state_only("begun").into(),
                Some(state) => Reply::Complete(format!("{state} {:?}", ctx.carrier())),
            }
        }))
    });
    let message = call().to_string();
    let Ok(Incoming::Request(request)) = Incoming::parse(message.as_bytes()) else { panic!("{message}") };
    let reply = server.call_without_session(request, ProtocolVersion::V2025_11_25, &Caller::default()).await;
    assert_eq!(text(&serde_json::from_slice(&reply.body).unwrap()), "begun Pushed");
}

/// A client that is told to open URLs first is not waited for; elsewhere they are asked as ever.
#[tokio::test]
async fn urls_first() {
    let server = built(|builder| {
        builder
            .tool(Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Reply<String> {
                let ask = Ask::url("pay", "Pay.", "https://pay.example/1").id("deposit-42");
                match ctx.by_hand().url(&ask) {
                    Some(answer) => Reply::Complete(format!("{answer:?}")),
                    None => InputRequired::ask(ask).urls_first().into(),
                }
            }))
            .tool(Tool::new("mixed", async |_: &Ctx, _: NoArguments| -> Reply<String> {
                let form = Ask::form("f", "F?", FormSchema::new(vec![FormField::text("f")]));
                InputRequired::ask(Ask::url("pay", "Pay.", "https://pay.example/1"))
                    .and(form)
                    .urls_first()
                    .into()
            }))
    });
    let mut session = InSession::newest(&server).await;
    let error = session.asks(1, "tools/call", json!({"name": "t"})).await["error"].take();
    assert_eq!(error["code"], -32042);
    let url = json!({"mode": "url", "message": "Pay.", "url": "https://pay.example/1", "elicitationId": "deposit-42"});
    assert_eq!(error["data"], json!({"elicitations": [url]}));
    assert!(server.elicitation_complete("deposit-42"));
    assert_eq!(session.receive().await["params"], json!({"elicitationId": "deposit-42"}));
    let error = session.asks(2, "tools/call", json!({"name": "mixed"})).await["error"].take();
    assert_eq!(error["code"], -32603, "only URLs can be asked for first");
    // A version that knows neither is told so.
    let mut older = InSession::open(&server, "2025-06-18", everything()).await;
    let error = older.asks(1, "tools/call", json!({"name": "t"})).await["error"].take();
    assert_eq!(
        (&error["code"], &error["message"]),
        (&json!(-32600), &json!("URL elicitation not supported"))
    );
}

/// After a step, no client is told to call from the beginning: the URL is asked in the call, or the error says what was done.
#[tokio::test]
async fn urls_first_after_a_step() {
    static CHARGES: AtomicUsize = AtomicUsize::new(0);
    async fn charge(ctx: &Ctx) -> Result<usize> {
        Ok(ctx.step("charge", async |_| Ok(CHARGES.fetch_add(1, Ordering::Relaxed) + 1)).await?)
    }
    fn page() -> Ask {
        Ask::url("pay", "Pay.", "https://pay.example/1").id("deposit-42")
    }
    fn required(ctx: &Ctx, charge: usize) -> Reply<String> {
        match ctx.by_hand().url(&page()) {
            Some(answer) => Reply::Complete(format!("{charge} {answer:?}")),
            None => InputRequired::ask(page()).with_state("charged").urls_first().into(),
        }
    }
    let server = built(|builder| {
        builder
            .tool(Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<Reply<String>> {
                let charge = charge(ctx).await?;
                Ok(required(ctx, charge))
            }))
            // The step was completed in an earlier leg.
            .tool(Tool::new("later", async |ctx: &Ctx, _: NoArguments| -> Result<Reply<String>> {
                let charge = charge(ctx).await?;
                Ok(match ctx.by_hand().state() {
                    None => InputRequired::state_only("charged").into(),
                    Some(_) => required(ctx, charge),
                })
            }))
            .tool(Tool::new("awaits", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
                let charge = charge(ctx).await?;
                ctx.elicit_url("Pay.", |_| "https://pay.example/1".to_owned()).id("deposit-42").await?;
                Ok(format!("{charge} Accept(())"))
            }))
    });
    for tool in ["t", "later", "awaits"] {
        let before = CHARGES.load(Ordering::Relaxed);
        let mut session = InSession::newest(&server).await;
        session.send(plain(1, "tools/call", json!({"name": tool}))).await;
        let asked = session.receive().await;
        let params = &asked["params"];
        assert_eq!(
            (&params["mode"], &params["elicitationId"]),
            (&json!("url"), &json!("deposit-42")),
            "{tool}: {asked}"
        );
        session.answers(&asked, json!({"action": "accept"})).await;
        let reply = session.receive().await;
        assert_eq!(text(&reply), format!("{} Accept(())", before + 1), "{reply}");
        assert_eq!(CHARGES.load(Ordering::Relaxed), before + 1, "{tool}");
        // Clients that open no URLs.
        for (version, declared) in [
            ("2025-11-25", json!({"elicitation": {"form": {}}})),
            ("2025-11-25", json!({})),
            ("2025-06-18", everything()),
        ] {
            let mut session = InSession::open(&server, version, declared).await;
            let error = session.asks(1, "tools/call", json!({"name": tool})).await["error"].take();
            let said = error["message"].as_str().unwrap();
            let done = "Completed before that: `charge`. Do not send this again: look at what these steps did first; a new call repeats them.";
            assert!(said.contains("URL") && said.ends_with(done), "{tool} {version}: {error}");
            assert_eq!(error["data"]["done"], json!(["charge"]), "{tool} {version}: {error}");
        }
    }
}

/// A handler by hand that asks without end is ended, as it is elsewhere.
#[tokio::test]
async fn asking_by_hand_has_an_end() {
    let limits = Limits::default().legs(4);
    let asks = Tool::new("t", async |_: &Ctx, _: NoArguments| -> Reply<String> {
        Ask::form("region", "Which region?", FormSchema::new(vec![FormField::text("region")])).into()
    });
    let server = built(|builder| builder.limits(limits).tool(asks));
    let mut session = InSession::newest(&server).await;
    session.send(call()).await;
    for _ in 0..3 {
        let asked = session.receive().await;
        assert_eq!(asked["method"], "elicitation/create", "{asked}");
        session.answers(&asked, accept(json!({"region": "eu"}))).await;
    }
    let reply = session.receive().await;
    assert_eq!(reply["error"]["data"], json!({"reason": "limit", "limit": "legs"}), "{reply}");
    let text = "This call has had 4 requests, as many as the limit `legs` allows: `region` cannot be asked";
    assert_eq!(reply["error"]["message"], text);
}
