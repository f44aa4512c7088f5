//! Every bound of a server, crossed.

use crate::common::{
    gate::{gate, soon},
    *,
};
use antiphon::{
    server::{Ask, Caller, Ctx, Limits, Reply, ServerBuilder, Tool, asks::InputRequired},
    wire::{
        forms::{FormField, FormSchema},
        sampling::{CreateMessageParams, SamplingMessage},
    },
};
use serde_json::{Value, json};
use std::{sync::atomic::Ordering, time::Duration};

fn limits(change: impl FnOnce(Limits) -> Limits) -> impl FnOnce(ServerBuilder) -> ServerBuilder {
    let limits = change(Limits::default());
    |builder| builder.limits(limits)
}

fn call(tool: &str, more: Value) -> Value {
    request(1, "tools/call", with(&json!({"name": tool, "arguments": {"name": "x"}}), more))
}

/// Sends a message without a transport, whose own limits would come first.
async fn reply(fixture: &Fixture, message: &Value) -> (u16, Value) {
    let reply = fixture.server.respond(message.to_string().as_bytes(), &Caller::default()).await.unwrap();
    (reply.http_status().as_u16(), serde_json::from_slice(&reply.body).unwrap())
}

async fn retry(fixture: &Fixture, tool: &str, before: &Value, answers: Value) -> (u16, Value) {
    reply(fixture, &call(tool, json!({"requestState": state_of(before), "inputResponses": answers}))).await
}

/// The `limit` of a `-32602` that names one.
#[track_caller]
fn limit_of(what: &str, (status, reply): &(u16, Value)) -> String {
    assert_eq!((*status, &reply["error"]["code"]), (400, &json!(-32602)), "{what}: {reply}");
    assert_eq!(reply["error"]["data"]["reason"], "limit", "{what}");
    reply["error"]["data"]["limit"].as_str().unwrap().to_owned()
}

/// A tool that asks these until all have an answer, with this state.
fn asks(asks: Vec<Ask>, state: String) -> Tool {
    Tool::new("it", move |ctx: &Ctx, _: Named| {
        let (answered, asks, state) = (ctx.by_hand().input_responses().len(), asks.clone(), state.clone());
        async move {
            let mut asks = asks.into_iter();
            match asks.next().filter(|_| answered == 0) {
                Some(first) => {
                    Reply::from(asks.fold(InputRequired::ask(first), InputRequired::and).with_state(state))
                }
                None => Reply::Complete(format!("{answered} answers")),
            }
        }
    })
}

fn form(key: &str) -> Ask {
    Ask::form(key, "?", FormSchema::new(vec![FormField::text("region")]))
}

/// An accepted form of exactly so many bytes.
fn accept(bytes: usize) -> Value {
    let answer = |text: String| json!({"action": "accept", "content": {"region": text}});
    let answer = answer("x".repeat(bytes - answer(String::new()).to_string().len()));
    assert_eq!(answer.to_string().len(), bytes);
    answer
}

/// A sampled message of exactly so many bytes.
fn sampled(bytes: usize) -> Value {
    let answer =
        |text: String| json!({"role": "assistant", "content": {"type": "text", "text": text}, "model": "m"});
    answer("x".repeat(bytes - answer(String::new()).to_string().len()))
}

#[tokio::test]
async fn one_answer_may_be_so_long_and_no_longer() {
    let sample = Ask::sample("q", CreateMessageParams::new(vec![SamplingMessage::user("?")], 9));
    for (what, ask, answer, told) in [
        ("a form of 64 KiB", form("q"), accept(65_536), None),
        ("a form of more", form("q"), accept(65_537), Some("?\n\nThe answer must have at most 65536 bytes.")),
        (
            "a URL with a long answer",
            Ask::url("q", "?", "https://a.example/"),
            accept(65_537),
            Some("?\n\nThe answer must have at most 65536 bytes."),
        ),
        ("a message of 1 MiB", sample.clone(), sampled(1 << 20), None),
        ("a message of more", sample, sampled((1 << 20) + 1), Some("")),
        ("roots of more", Ask::roots("q"), json!({"roots": [{"uri": "x".repeat(1 << 20)}]}), Some("")),
    ] {
        let fixture = fixture(|builder| builder.tool(asks(vec![ask], "s".to_owned())));
        let (_, first) = reply(&fixture, &call("it", json!({}))).await;
        let (_, second) = retry(&fixture, "it", &first, json!({"q": answer})).await;
        match told {
            None => assert_eq!(second["result"]["content"][0]["text"], "1 answers", "{what}"),
            Some(told) => {
                let params = &second["result"]["inputRequests"]["q"]["params"];
                assert_eq!(params["message"].as_str().unwrap_or_default(), told, "{what}");
                assert_eq!(second["result"]["resultType"], "input_required", "{what}");
            }
        }
    }
}

/// A default is filled in, which makes the kept answer longer than one may be: it was short enough when it came.
#[tokio::test]
async fn a_kept_answer_is_not_measured_again() {
    let schema: FormSchema = serde_json::from_value(json!({"type": "object", "properties": {
        "region": {"type": "string"}, "note": {"type": "string", "default": "nothing to note"}
    }}))
    .unwrap();
    let asked = vec![Ask::form("long", "?", schema), form("late")];
    let fixture = fixture(|builder| builder.tool(asks(asked, "s".to_owned())));
    let (_, first) = reply(&fixture, &call("it", json!({}))).await;
    let (_, second) = retry(&fixture, "it", &first, json!({"long": accept(65_530)})).await;
    let (_, third) = retry(&fixture, "it", &second, json!({"late": accept(60)})).await;
    assert_eq!(third["result"]["content"][0]["text"], "2 answers", "{:.300}", third.to_string());
}

#[tokio::test]
async fn the_answers_of_one_leg_fit_into_the_state_when_others_are_asked_again() {
    let asked = vec![form("a"), form("b"), form("c"), form("late")];
    let fixture = fixture(|builder| builder.tool(asks(asked, "s".to_owned())));
    let (_, first) = reply(&fixture, &call("it", json!({}))).await;
    let three = json!({"a": accept(60_000), "b": accept(60_000), "c": accept(60_000)});
    let (_, second) = retry(&fixture, "it", &first, three).await;
    let requests = second["result"]["inputRequests"].as_object().unwrap();
    assert_eq!(requests.keys().collect::<Vec<_>>(), ["c", "late"]);
    let message = requests["c"]["params"]["message"].as_str().unwrap();
    assert!(message.starts_with("?\n\nThe answers together are too long: this one may have "), "{message}");
    // Together with the last one it needs no room.
    let two = json!({"c": accept(60_000), "late": accept(60)});
    let (_, third) = retry(&fixture, "it", &second, two).await;
    assert_eq!(third["result"]["content"][0]["text"], "4 answers");
}

#[tokio::test]
async fn a_state_has_a_size() {
    // What stands around the state and one short question.
    for (length, limit) in [(131_072 - 250, None), (131_072, Some("state"))] {
        let fixture = fixture(|builder| builder.tool(asks(vec![form("q")], "s".repeat(length))));
        let got = reply(&fixture, &call("it", json!({}))).await;
        match limit {
            None => {
                let (_, second) = retry(&fixture, "it", &got.1, json!({"q": accept(60)})).await;
                assert_eq!(second["result"]["content"][0]["text"], "1 answers");
            }
            Some(limit) => assert_eq!(limit_of("state", &got), limit),
        }
    }
    // However large the limit, a server can be built.
    let fixture = fixture(limits(|limits| limits.state(usize::MAX)));
    let (_, got) = reply(&fixture, &call("ask", json!({}))).await;
    assert_eq!(got["result"]["resultType"], "input_required");
}

#[tokio::test]
async fn sixty_four_asks_are_a_round() {
    let asked = (0..64).map(|n| form(&format!("k{n}"))).collect();
    let fixture = fixture(|builder| builder.tool(asks(asked, "s".to_owned())));
    let (_, first) = reply(&fixture, &call("it", json!({}))).await;
    assert_eq!(first["result"]["inputRequests"].as_object().unwrap().len(), 64);
    let answers: Value = (0..64).map(|n| (format!("k{n}"), accept(60))).collect();
    let (_, second) = retry(&fixture, "it", &first, answers).await;
    assert_eq!(second["result"]["content"][0]["text"], "64 answers");
}

/// The last leg may complete, but not ask: its answers would come back to a call that is over.
#[tokio::test]
async fn nobody_is_asked_when_no_leg_is_left() {
    for (what, tool, answers, key) in [
        ("by the handler", "it", true, "`q` cannot be asked"),
        ("two by the handler", "two", true, "`q` and 1 more cannot be asked"),
        ("again", "ask", false, "`region` cannot be asked"),
    ] {
        let counter = Runs::default();
        let counted = counter.clone();
        let tool_of_rounds = Tool::new("it", move |_: &Ctx, _: Named| {
            counted.fetch_add(1, Ordering::SeqCst);
            async { Reply::<String>::from(form("q")) }
        });
        let counted = counter.clone();
        let asks_two = Tool::new("two", move |_: &Ctx, _: Named| {
            counted.fetch_add(1, Ordering::SeqCst);
            async { Reply::<String>::from(InputRequired::ask(form("q")).and(form("r"))) }
        });
        let fixture = fixture(|builder| {
            limits(|limits| limits.legs(4).times_asked(9))(builder).tool(tool_of_rounds).tool(asks_two)
        });
        let mut got = reply(&fixture, &call(tool, json!({}))).await;
        let answers = if answers { json!({"q": accept(60), "r": accept(60)}) } else { json!({}) };
        for _ in 2..4 {
            got = retry(&fixture, tool, &got.1, answers.clone()).await;
            assert_eq!(got.1["result"]["resultType"], "input_required", "{what}: {}", got.1);
        }
        got = retry(&fixture, tool, &got.1, answers).await;
        assert_eq!(limit_of(what, &got), "legs");
        let text = format!("This call has had 4 requests, as many as the limit `legs` allows: {key}");
        assert_eq!(got.1["error"]["message"], text);
        assert_eq!(runs(&counter), if what == "again" { 0 } else { 4 });
    }
    // And a call that completes in its last leg completes.
    let fixture = fixture(limits(|limits| limits.legs(2)));
    let (_, first) = reply(&fixture, &call("ask", json!({}))).await;
    let (_, second) = retry(&fixture, "ask", &first, answers()).await;
    assert_eq!(second["result"]["content"][0]["text"], "in eu");
}

#[tokio::test]
async fn a_full_server_says_so_and_is_free_again_afterwards() {
    let (tool, mut gate) = gate();
    let fixture = fixture(|builder| limits(|limits| limits.handlers(1))(builder).tool(tool));
    let hold = call("hold", json!({}));
    for dropped in [true, false] {
        let mut held = Box::pin(reply(&fixture, &hold));
        assert!(futures_util::poll!(&mut held).is_pending());
        gate.started("x").await;
        let (status, busy) = reply(&fixture, &call("echo", json!({}))).await;
        assert_eq!((status, &busy["error"]["code"]), (200, &json!(-32603)));
        assert_eq!(busy["error"]["data"], json!({"reason": "busy", "retryAfterMs": 1000}));
        if dropped {
            drop(held);
            gate.dropped("x").await;
        } else {
            gate.open("x");
            assert_eq!(soon(held).await.1["result"]["content"][0]["text"], "x");
        }
        let (_, free) = reply(&fixture, &call("echo", json!({}))).await;
        assert_eq!(free["result"]["content"][0]["text"], "x");
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_has_its_time() {
    let (tool, mut gate) = gate();
    let fixture = fixture(|builder| limits(|limits| limits.handlers(1))(builder).tool(tool));
    let before = tokio::time::Instant::now();
    let (status, late) = reply(&fixture, &call("hold", json!({}))).await;
    assert_eq!((status, &late["error"]), (200, &json!({"code": -32603, "message": "Internal error"})));
    assert_eq!(before.elapsed().as_secs(), 300);
    gate.started("x").await;
    gate.dropped("x").await;
    let (_, free) = reply(&fixture, &call("echo", json!({}))).await;
    assert_eq!(free["result"]["content"][0]["text"], "x");
}

/// `Duration::MAX` is how one writes "no bound".
#[tokio::test]
async fn times_without_an_end_are_allowed() {
    for what in ["call_timeout", "answer_timeout", "handler_timeout"] {
        let fixture = fixture(|builder| match what {
            "call_timeout" => builder.call_timeout(Duration::MAX),
            "answer_timeout" => builder.answer_timeout(Duration::MAX),
            _ => limits(|limits| limits.handler_timeout(Duration::MAX))(builder),
        });
        let (_, first) = reply(&fixture, &call("ask", json!({}))).await;
        let (_, second) = retry(&fixture, "ask", &first, answers()).await;
        assert_eq!(second["result"]["content"][0]["text"], "in eu", "{what}");
    }
}

/// The limits of time to the second: a token's, the whole call's deadline, and a clock that is behind by at most a minute.
#[tokio::test]
async fn a_state_ends_with_its_time_and_a_clock_may_be_a_minute_behind() {
    for (what, call_timeout, forward, back, fits) in [
        ("the token's last second", None, 600, 0, true),
        ("a second later", None, 601, 0, false),
        ("the deadline's last second", Some(300), 300, 0, true),
        ("a second after the deadline", Some(300), 301, 0, false),
        ("a minute behind", None, 0, 60, true),
        ("a second more behind", None, 0, 61, false),
    ] {
        let fixture = fixture(|builder| match call_timeout {
            Some(seconds) => builder.call_timeout(Duration::from_secs(seconds)),
            None => builder,
        });
        let (_, first) = reply(&fixture, &call("ask", json!({}))).await;
        fixture.clock.advance(Duration::from_secs(forward));
        fixture.clock.turn_back(Duration::from_secs(back));
        let (_, second) = retry(&fixture, "ask", &first, answers()).await;
        let expected = if fits { json!(null) } else { json!("Invalid or expired requestState") };
        assert_eq!(second["error"]["message"], expected, "{what}");
    }
}
