//! Requests of a client, round after round.

use crate::client_support::*;
use antiphon::{
    client::{Call, ClientBuilder, ClientError, RoundDecision},
    wire::{
        AskKind,
        sampling::{CreateMessageResult, ListRootsResult, Root},
    },
};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::sync::Barrier;

/// Answers everything.
fn all() -> ClientBuilder {
    builder()
        .on_elicit(async |ask| match &ask {
            antiphon::client::asks::ElicitAsk::Form(form) => {
                Ok(form.accept(json!({"region": ask.context().key, "x": 1}))?)
            }
            antiphon::client::asks::ElicitAsk::Url(url) => Ok(url.consent()),
            other => panic!("another kind: {other:?}"),
        })
        .on_sample(async |_| Ok(CreateMessageResult::text("m1", "Paris")))
        .on_roots(async |_| Ok(ListRootsResult::new(vec![Root::new("file:///src")])))
}

/// Calls a tool against the script: its text, and what each request carried beside the call.
async fn check(
    name: &str,
    client: ClientBuilder,
    script: Vec<Reply>,
    carried: Value,
    expected: Result<&str, &str>,
) {
    let fake = Fake::script(script);
    let client = fake.client(client);
    let result = client.call_tool("provision", json!({"name": "orders", "n": 1.50})).await;
    match (&result, expected) {
        (Ok(result), Ok(text)) => assert_eq!(result.first_text(), Some(text), "{name}"),
        (Err(error), Err(text)) => assert!(chain(error).contains(text), "{name}: {}", chain(error)),
        _ => panic!("{name}: {result:?}"),
    }
    assert_eq!(Value::Array(fake.carried()), carried, "{name}");
    let requests = fake.requests();
    for (n, request) in requests.iter().enumerate() {
        // > The JSON-RPC `id` **MUST** be different between the initial request and the retry
        assert_eq!(request["id"], n + 1, "{name}");
        assert_eq!(request["params"]["name"], "provision", "{name}");
        assert!(
            fake.texts()[n].contains(r#""arguments":{"n":1.5,"name":"orders"}"#),
            "{name}: {}",
            fake.texts()[n]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_each_leg_carries() {
    let accept = |region: &str| json!({"action": "accept", "content": {"region": region, "size": 1}});
    let none = json!([null, null]);
    check("no question", all(), vec![done("ok")], json!([none]), Ok("ok")).await;
    check(
        "an absent resultType is complete",
        builder(),
        vec![Reply::Result(json!({"content": [{"type": "text", "text": "old"}]}))],
        json!([none]),
        Ok("old"),
    )
    .await;
    check(
        "every kind in one round",
        all(),
        vec![
            asking(json!({"z": form(), "a": url("https://a.example/"), "m": sampling(), "r": roots()}), Some("s1")),
            done("ok"),
        ],
        json!([none, [
            {
                "z": accept("z"),
                "a": {"action": "accept"},
                "m": {"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "m1", "stopReason": "endTurn"},
                "r": {"roots": [{"uri": "file:///src"}]}
            },
            "s1"
        ]]),
        Ok("ok"),
    )
    .await;
    check(
        "the latest state and answers only",
        all(),
        vec![
            asking(json!({"a": form()}), Some("s1")),
            asking(json!({"b": form()}), None),
            asking(json!({"c": form()}), Some("")),
            not_yet("s3"),
            done("ok"),
        ],
        json!([
            none,
            [{"a": accept("a")}, "s1"],
            [{"b": accept("b")}, null],
            [{"c": accept("c")}, ""],
            [null, "s3"]
        ]),
        Ok("ok"),
    )
    .await;
    check(
        "null beside the question, and no asks but `{}`",
        all(),
        vec![
            Reply::Result(json!({"resultType": "input_required", "content": null, "inputRequests": {}, "requestState": "s"})),
            done("ok"),
        ],
        json!([none, [null, "s"]]),
        Ok("ok"),
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_decline_is_an_answer() {
    let script = || vec![asking(json!({"a": form()}), Some("s")), done("sorry")];
    for (client, answer) in [
        (builder().on_elicit_form(async |ask| Ok(ask.decline())), json!({"action": "decline"})),
        (builder().on_elicit_form(async |ask| Ok(ask.cancel())), json!({"action": "cancel"})),
        (all().on_round(async |_| RoundDecision::go().decline("a")), json!({"action": "decline"})),
    ] {
        check("decline", client, script(), json!([[null, null], [{"a": answer}, "s"]]), Ok("sorry")).await;
    }
}

#[tokio::test]
async fn exactly_the_attached_callbacks_are_declared() {
    let elicit = || builder().on_elicit(async |_| unreachable!());
    let sample = || builder().on_sample(async |_| unreachable!());
    for (client, mut declared) in [
        (builder(), json!({})),
        (elicit(), json!({"elicitation": {"form": {}, "url": {}}})),
        (builder().on_elicit_form(async |_| unreachable!()), json!({"elicitation": {"form": {}}})),
        (builder().on_elicit_url(async |_| unreachable!()), json!({"elicitation": {"url": {}}})),
        (sample(), json!({"sampling": {}})),
        (
            sample().sampling_tools(true).sampling_context(true),
            json!({"sampling": {"tools": {}, "context": {}}}),
        ),
        (builder().sampling_tools(true), json!({})),
        (builder().on_roots(async |_| unreachable!()), json!({"roots": {}})),
    ] {
        let fake = Fake::new(|_| done("ok"));
        let client = fake.client(client);
        client.call_tool("t", ()).await.unwrap();
        client.read_resource("file:///a").await.unwrap_err();
        client.list_tools().await.unwrap_err();
        declared["extensions"] = json!({"io.modelcontextprotocol/tasks": {}});
        for request in fake.requests() {
            assert_eq!(request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"], declared);
        }
    }
}

#[tokio::test]
async fn two_calls_at_once_never_mix() {
    // The server puts the name of the tool into state and keys; both callbacks of a round wait for each other.
    let fake = Fake::new(|request| {
        let params = &request["params"];
        let tool = params["name"].as_str().unwrap();
        match params["requestState"].as_str() {
            None => asking(json!({"same": form()}), Some(&format!("{tool}-1"))),
            Some(state) => {
                assert!(state.starts_with(tool), "{request}");
                assert_eq!(params["inputResponses"]["same"]["content"]["region"], *state, "{request}");
                match state.rsplit_once('-').unwrap().1 {
                    "3" => done(tool),
                    round => {
                        let next = round.parse::<u32>().unwrap() + 1;
                        asking(json!({"same": form()}), Some(&format!("{tool}-{next}")))
                    }
                }
            }
        }
    });
    let both = Arc::new(Barrier::new(2));
    let client = fake.client(builder().on_elicit_form(move |ask| {
        let both = Arc::clone(&both);
        async move {
            both.wait().await;
            Ok(ask.accept(json!({"region": format!("{}-{}", ask.context.target, ask.context.round)}))?)
        }
    }));
    let (a, b) = tokio::join!(client.call_tool("a", ()), client.call_tool("b", ()));
    assert_eq!(a.unwrap().first_text(), Some("a"));
    assert_eq!(b.unwrap().first_text(), Some("b"));
    let mut ids: Vec<u64> = fake.requests().iter().map(|request| request["id"].as_u64().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, (1..=8).collect::<Vec<_>>());
}

#[tokio::test]
async fn arguments_stay_the_text_that_was_written() {
    let text = "{\n \"big\": 9007199254740993.10,\r\n \"a\": 1e2, \"b\": \"\\n\"}";
    let raw = serde_json::value::RawValue::from_string(text.to_owned()).unwrap();
    let fake = Fake::script([asking(json!({"a": form()}), None), done("ok")]);
    let result = fake.client(all()).call(Call::tool("t", &raw).unwrap()).await.unwrap();
    assert_eq!(result.into_tool().unwrap().first_text(), Some("ok"));
    let sent = "\"arguments\":{  \"big\": 9007199254740993.10,   \"a\": 1e2, \"b\": \"\\n\"}";
    assert!(fake.texts().iter().all(|text| text.contains(sent)), "{:?}", fake.texts());
}

#[tokio::test]
async fn wrong_arguments_are_not_sent() {
    let fake = Fake::script([]);
    let client = fake.client(all());
    let refused = |result: Result<(), ClientError>, text: &str| assert_eq!(chain(&result.unwrap_err()), text);
    refused(client.call_tool("t", json!([1])).await.map(drop), "the arguments for `t` must be a JSON object");
    refused(
        client.get_prompt("p", json!({"n": 1})).await.map(drop),
        "the arguments for `p` are not those of a prompt: `n` must be a string",
    );
}

#[tokio::test(start_paused = true)]
async fn a_round_can_be_refused_or_delayed_before_its_callbacks() {
    let script = || vec![asking(json!({"f": form(), "u": url("https://Pay.Evil.example/x")}), Some("s"))];
    let never = || builder().on_elicit(async |_| panic!("a callback ran"));
    for (decision, text) in [
        (RoundDecision::refuse("not today"), "the round was refused here: not today"),
        (
            RoundDecision::go().refuse_kind(AskKind::Url),
            "the ask `u` was refused here: URLs are refused here",
        ),
        (
            RoundDecision::go().refuse_host("evil.example"),
            "the ask `u` was refused here: the host pay.evil.example",
        ),
        (RoundDecision::go().decline("nothing"), "`nothing` is not asked; asked are `f`, `u`"),
    ] {
        let client = never().on_round(move |_| std::future::ready(decision.clone()));
        check("refused", client, script(), json!([[null, null]]), Err(text)).await;
    }
    let unreadable = vec![asking(json!({"u": url("pay.example")}), None)];
    let client = never().on_round(async |_| RoundDecision::go().refuse_host("evil.example"));
    check("unreadable", client, unreadable, json!([[null, null]]), Err("the URL cannot be read")).await;

    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let client = all().on_round(move |round| {
        let kinds = (round.has(AskKind::Form), round.has(AskKind::Roots));
        log.lock().unwrap().push((round.number, round.target.clone(), round.hosts(), kinds));
        std::future::ready(RoundDecision::go().refuse_host("vil.example").send_after(Duration::from_secs(7)))
    });
    let began = tokio::time::Instant::now();
    let mut replies = script();
    replies.push(done("ok"));
    let fake = Fake::script(replies);
    fake.client(client).call_tool("t", ()).await.unwrap();
    assert_eq!(began.elapsed(), Duration::from_secs(7));
    let hosts = vec!["pay.evil.example".to_owned()];
    assert_eq!(*seen.lock().unwrap(), [(1, "t".to_owned(), hosts, (true, false))]);
}
