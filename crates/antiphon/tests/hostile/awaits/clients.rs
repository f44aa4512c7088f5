//! Clients that answer what was not asked, under another name, or with the state of another round.

use super::*;
use antiphon::server::{Caller, flow::Winner};

/// One request with exactly this text for its answers.
async fn raw(server: &Server, state: &str, answers: &str) -> Value {
    let marked = json!({"name": "t", "arguments": {}, "requestState": state, "inputResponses": "HERE"});
    let message = request(1, "tools/call", marked).to_string().replace("\"HERE\"", answers);
    let reply = server.respond(message.as_bytes(), &Caller::default()).await.unwrap();
    serde_json::from_slice(&reply.body).unwrap()
}

#[tokio::test]
async fn only_the_very_key_of_an_open_question_answers_it() {
    let server = server(tool!(|ctx| {
        let confirm = ctx.scope("a").scope("b").elicit::<Confirm>("Sure?").key("c").nth(1).await?;
        Ok(confirm.ok.to_string())
    }));
    let (yes, no) = (yes().to_string(), no().to_string());
    let one = |key: &str| format!(r#"{{"{key}": {yes}}}"#);
    let cases = [
        (one("a/b/c#1"), "true"),
        // The same name, written another way.
        (one(r"a\/b/\u0063#1"), "true"),
        (one("c"), "asks"),
        (one("c#1"), "asks"),
        (one("b/c#1"), "asks"),
        (one("a/b/c"), "asks"),
        (one("a/b/c#01"), "asks"),
        (one("a/b/c#10"), "asks"),
        (one("a/b/c#1 "), "asks"),
        (one("A/b/c#1"), "asks"),
        (one("/a/b/c#1"), "asks"),
        (one("a//b/c#1"), "asks"),
        (one("a/./b/c#1"), "asks"),
        (one(r"a/b/c#1\u0000"), "asks"),
        (one("a/b/c＃1"), "asks"),
        (one("a∕b∕c#1"), "asks"),
        (one("а/b/c#1"), "asks"),
        (one("confirm"), "asks"),
        (one("#asks"), "asks"),
        (format!(r#"{{"a": {{"b": {{"c#1": {yes}}}}}}}"#), "asks"),
        (format!(r#"{{"a/b/c#1": {no}, "c": {yes}}}"#), "false"),
        // Which of two is read is nobody's choice.
        (format!(r#"{{"a/b/c#1": {yes}, "a/b/c#1": {no}}}"#), "-32602"),
        (format!(r#"{{"a/b/c#1": {yes}, "a/b/\u0063#1": {no}}}"#), "-32602"),
        (
            r#"{"a/b/c#1": {"action": "accept", "content": {"ok": false, "\u006fk": true}}}"#.to_owned(),
            "-32602",
        ),
        (
            r#"{"a/b/c#1": {"action": "accept", "action": "decline", "content": {"ok": true}}}"#.to_owned(),
            "-32602",
        ),
        // Read as what was asked, or not at all.
        (r#"{"a/b/c#1": {"Action": "accept", "content": {"ok": true}}}"#.to_owned(), "asks"),
        (r#"{"a/b/c#1": {"action": "Accept", "content": {"ok": true}}}"#.to_owned(), "asks"),
        (r#"{"a/b/c#1": {"action": "accept", "content": {"OK": true}}}"#.to_owned(), "asks"),
        (r#"{"a/b/c#1": ["accept", {"ok": true}]}"#.to_owned(), "asks"),
        (r#"{"a/b/c#1": null}"#.to_owned(), "asks"),
        ("[]".to_owned(), "-32602"),
        ("null".to_owned(), "asks"),
    ];
    let first = ToolCall::new(json!({})).leg(&server, Value::Null).await;
    for (answers, expected) in cases {
        let reply = raw(&server, &state_of(&first), &answers).await;
        let came = match reply["error"]["code"].as_i64() {
            Some(code) => code.to_string(),
            None if asks(&reply) => "asks".to_owned(),
            None => result_text(&reply),
        };
        assert_eq!(came, expected, "{answers}: {reply}");
    }
}

#[tokio::test]
async fn each_state_takes_the_answers_of_its_own_round() {
    static KEYS: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());
    let server = server(tool!(|ctx| {
        let a: Confirm = ctx.elicit("A?").key("a").await?;
        let charged: bool = ctx
            .step("charge", async |s| {
                KEYS.lock().unwrap().push(s.key().to_owned());
                Ok(a.ok)
            })
            .await?;
        let b: Confirm = ctx.elicit("B?").key("b").await?;
        let c: Confirm = ctx.elicit("C?").key("c").await?;
        Ok(format!("{} {charged} {} {}", a.ok, b.ok, c.ok))
    }));
    let mut talk = ToolCall::new(json!({}));
    let mut states = Vec::new();
    for answers in [json!({}), json!({"a": yes()}), json!({"b": yes()})] {
        states.push(state_of(&talk.leg(&server, answers).await));
    }
    let all_no = json!({"a": no(), "b": no(), "c": no()});
    for (round, answers, expected) in [
        (0, json!({"b": no(), "c": no()}), "a"),
        (1, json!({"a": no(), "c": no()}), "b"),
        (2, json!({"a": no(), "b": no()}), "c"),
        // What was answered in an earlier leg stays as it was answered then.
        (0, all_no.clone(), "b"),
        (1, all_no.clone(), "c"),
        (2, all_no.clone(), "true true true false"),
    ] {
        let reply = raw(&server, &states[round], &answers.to_string()).await;
        let asked = keys(reply.to_string().as_bytes()).join(",");
        assert_eq!(if asks(&reply) { asked } else { result_text(&reply) }, expected, "{round} {answers}");
    }
    // The older state, with another answer, is a fork: it has its own results, under the same idempotency key.
    let fork = raw(&server, &states[0], &all_no.to_string()).await;
    let fork = raw(&server, &state_of(&fork), &json!({"b": yes()}).to_string()).await;
    let fork = raw(&server, &state_of(&fork), &json!({"c": yes()}).to_string()).await;
    assert_eq!(result_text(&fork), "false false true true");
    let keys = KEYS.lock().unwrap();
    assert!(keys.len() == 3 && keys.iter().all(|key| *key == keys[0]), "{keys:?}");
}

#[tokio::test]
async fn a_race_that_was_decided_stays_so_whatever_is_answered_later() {
    let server = server(tool!(|ctx| {
        let (one, two) = (ctx.elicit::<Confirm>("One?").key("one"), ctx.elicit::<Confirm>("Two?").key("two"));
        let first = match ctx.select("first", (one, two)).await {
            Winner::A(one) => format!("one {}", one?.ok),
            Winner::B(two) => format!("two {}", two?.ok),
        };
        let sure: Confirm = ctx.elicit("Sure?").await?;
        Ok(format!("{first} {}", sure.ok))
    }));
    for (answers, winner) in [
        (json!({"two": no()}), "two false"),
        (json!({"one": no()}), "one false"),
        (json!({"two": no(), "one": no()}), "one false"),
    ] {
        let mut talk = ToolCall::new(json!({}));
        let later = json!({"one": yes(), "two": yes(), "confirm": yes()});
        let reply = legs(&server, &mut talk, &[json!({}), answers, later]).await;
        assert_eq!(result_text(&reply), format!("{winner} true"));
        assert_eq!(talk.rounds, [vec!["one", "two"], vec!["confirm"]]);
    }
}

#[tokio::test]
async fn a_guard_that_panics_where_its_leg_ends_costs_one_request() {
    struct Guard;
    impl Drop for Guard {
        fn drop(&mut self) {
            assert!(BROKEN.load(SeqCst) == 0 || std::thread::panicking(), "this test panics here");
        }
    }
    static BROKEN: AtomicUsize = AtomicUsize::new(0);
    let server = server(tool!(|ctx| {
        let guard = Guard;
        let sure: Confirm = ctx.elicit("Sure?").await?;
        std::mem::forget(guard);
        Ok(sure.ok.to_string())
    }));
    let mut talk = ToolCall::new(json!({}));
    talk.leg(&server, Value::Null).await;
    BROKEN.store(1, SeqCst);
    assert_eq!(talk.leg(&server, json!({})).await["error"]["code"], -32603);
    assert_eq!(result_text(&talk.leg(&server, json!({"confirm": yes()})).await), "true");
}
