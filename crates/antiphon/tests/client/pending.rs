//! Calls that are driven by hand, and what is written of them in between.

use crate::client_support::*;
use antiphon::{
    client::{
        Call, CallProgress, Client, ClientBuilder, ClientErrorKind, Finished, PendingCall, RoundDecision,
        asks::AskFault,
    },
    wire::{AskKind, AskSupport},
};
use serde_json::{Value, json};
use std::time::Duration;

const SECRET: &str = "s3cret";

/// A client that is asked everything, and answers between the legs.
fn by_hand() -> ClientBuilder {
    builder().declare(AskSupport::ALL)
}

fn round() -> Reply {
    asking(json!({"f": form(), "m": sampling(), "r": roots(), "u": url("https://a.example/")}), Some(SECRET))
}

async fn begun(client: &Client) -> PendingCall {
    let call = Call::tool("provision", json!({"name": "orders"})).unwrap();
    client.begin(call).await.unwrap().pending().expect("the server asks")
}

/// Sets one answer on a fresh pending call: what is kept of it, or the error.
async fn check(
    set: fn(&mut PendingCall) -> Result<(), antiphon::client::asks::AnswerError>,
    expected: Result<Value, &str>,
) {
    let fake = Fake::script([round()]);
    let mut pending = begun(&fake.client(by_hand())).await;
    match (set(&mut pending), expected) {
        (Ok(()), Ok(kept)) => assert_eq!(serde_json::to_value(pending.answers()).unwrap(), kept),
        (Err(error), Err(text)) => {
            assert_eq!(error.to_string(), text);
            assert!(!format!("{error:?}").contains(SECRET), "{error:?}");
            assert_eq!(pending.missing(), ["f", "m", "r", "u"]);
        }
        (result, expected) => panic!("{result:?}, not {expected:?}"),
    }
}

#[tokio::test]
async fn answers_are_checked_when_they_are_set() {
    check(
        |p| {
            p.answer("f", &json!({"action": "accept", "content": {"region": "eu", "other": 1, "size": null}}))
        },
        Ok(json!({"f": {"action": "accept", "content": {"region": "eu", "size": 1}}})),
    )
    .await;
    check(
        |p| p.accept("f", &json!({"region": "eu", "size": 2})),
        Ok(json!({"f": {"action": "accept", "content": {"region": "eu", "size": 2}}})),
    )
    .await;
    check(|p| p.decline("f"), Ok(json!({"f": {"action": "decline"}}))).await;
    check(|p| p.cancel("u"), Ok(json!({"u": {"action": "cancel"}}))).await;
    check(|p| p.accept("u", &()), Ok(json!({"u": {"action": "accept"}}))).await;
    check(|p| p.accept("u", &json!({"typed": SECRET})), Ok(json!({"u": {"action": "accept"}}))).await;
    check(
        |p| p.answer("f", &json!({"action": "decline", "content": {"x": 1}})),
        Ok(json!({"f": {"action": "decline"}})),
    )
    .await;
    let message =
        json!({"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m", "extra": 1});
    check(
        |p| p.answer("m", &json!({"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m", "extra": 1})),
        Ok(json!({"m": message})),
    )
    .await;
    check(
        |p| p.decline("f").and_then(|()| p.accept("f", &json!({"region": "us"}))),
        Ok(json!({"f": {"action": "accept", "content": {"region": "us", "size": 1}}})),
    )
    .await;

    check(|p| p.decline("x"), Err("`x` is not asked; asked are `f`, `m`, `r`, `u`")).await;
    check(
        |p| p.accept("f", &json!({})),
        Err("the answer to `f` does not fit its form: `region` must be filled in"),
    )
    .await;
    check(
        |p| p.accept("f", &json!({"region": "a-s3cret-value", "size": "s3cret"})),
        Err("the answer to `f` does not fit its form: `region` must have at most 8 characters, `size` must be a whole number"),
    )
    .await;
    let elicit = r#"the answer to `f` must be {"action": "accept", "content": {..}}, {"action": "decline"} or {"action": "cancel"}"#;
    check(|p| p.answer("f", &json!({"region": "eu"})), Err(elicit)).await;
    check(|p| p.answer("f", &json!({"action": SECRET})), Err(elicit)).await;
    check(|p| p.accept("f", &json!([SECRET])), Err(elicit)).await;
    check(|p| p.answer("f", &json!({"result": {"action": "accept"}})), Err(elicit)).await;
    check(
        |p| p.answer("m", &json!({"action": "accept"})),
        Err("the answer to `m` must be a message with `role`, `content` and `model`"),
    )
    .await;
    check(
        |p| p.decline("m"),
        Err("`m` cannot be declined: model messages have no such answer; give up the call"),
    )
    .await;
    check(
        |p| p.answer("r", &json!({"roots": [{"uri": "https://a.example/"}]})),
        Err("the answer to `r` has a root that is not a `file://` URI"),
    )
    .await;
}

#[tokio::test]
async fn by_hand_from_one_process_to_another() {
    let fake = Fake::script([round(), asking(json!({"g": form()}), None), done("ok")]);
    let first = fake.client(by_hand());
    let mut pending = begun(&first).await;
    assert_eq!(pending.asks().iter().map(|(key, _)| key).collect::<Vec<_>>(), ["f", "m", "r", "u"]);
    pending.accept("f", &json!({"region": SECRET})).unwrap();
    pending.decline("u").unwrap();

    // Nothing secret in what is shown; everything in what is written.
    let shown = format!("{pending:?}");
    assert!(!shown.contains(SECRET) && shown.contains("has_state: true"), "{shown}");
    let written = serde_json::to_string_pretty(&pending).unwrap();
    assert!(written.contains(SECRET));

    // Another process, another day: what is missing is named, and nothing is sent.
    let second = fake.client(by_hand());
    let mut pending: PendingCall = serde_json::from_str(&written).unwrap();
    assert_eq!((pending.round(), pending.missing()), (1, vec!["m".to_owned(), "r".to_owned()]));
    let error = second.resume(pending.clone()).await.unwrap_err();
    assert!(error.to_string().ends_with("nothing was sent: no answer yet to `m`, `r`"), "{error}");
    assert_eq!(error.pending().unwrap().missing(), ["m", "r"]);
    assert_eq!(fake.requests().len(), 1);
    pending
        .answer("m", &json!({"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"}))
        .unwrap();
    pending.answer("r", &json!({"roots": []})).unwrap();
    let mut pending = second.resume(pending).await.unwrap().pending().unwrap();
    assert_eq!((pending.round(), pending.has_state(), pending.answers().len()), (2, false, 0));
    pending.cancel("g").unwrap();
    let CallProgress::Done(Finished::Tool(result)) = second.resume(pending).await.unwrap() else {
        panic!("not done")
    };
    assert_eq!(result.first_text(), Some("ok"));

    let carried = fake.carried();
    assert_eq!(carried[1][1], SECRET);
    assert_eq!(carried[1][0]["u"], json!({"action": "decline"}));
    assert_eq!(carried[2], json!([{"g": {"action": "cancel"}}, null]));
    let [a, b, c] = &fake.texts()[..] else { panic!("three requests") };
    assert!([a, b, c].iter().all(|text| text.contains(r#""arguments":{"name":"orders"}"#)));
}

/// An ask of a kind that a later revision may bring.
#[tokio::test]
async fn an_unknown_ask_is_refused_or_answered_by_hand() {
    let voice = json!({"method": "elicitation/create", "params": {"mode": "voice", "message": "Speak"}});
    let other = json!({"method": "tasks/new", "params": {"a": 1.50}});
    let asks = json!({"f": form(), "o": other, "v": voice});
    let fake = Fake::script([asking(asks, Some("s")), done("ok")]);
    let client = fake.client(by_hand());
    let pending = begun(&client).await;
    let kinds: Vec<_> = pending.asks().iter().map(|(_, ask)| (ask.kind(), ask.method())).collect();
    let unknown = |method| (AskKind::Unknown, method);
    assert_eq!(
        kinds,
        [(AskKind::Form, "elicitation/create"), unknown("tasks/new"), unknown("elicitation/create")]
    );

    let written = serde_json::to_value(&pending).unwrap();
    assert_eq!((&written["asks"]["v"], &written["asks"]["o"]), (&voice, &other));
    let mut pending: PendingCall = serde_json::from_value(written).unwrap();
    pending.decline("f").unwrap();
    pending.cancel("v").unwrap();
    for (refused, text) in [
        (pending.decline("o"), "`o` cannot be declined"),
        (pending.answer("o", &json!([1])), "the answer to `o` must be a JSON object"),
    ] {
        assert!(refused.unwrap_err().to_string().starts_with(text), "{text}");
    }
    assert_eq!(pending.missing(), ["o"]);
    pending.answer("o", &json!({"no": true})).unwrap();
    assert!(client.resume(pending).await.unwrap().done().is_some());
    let answers = json!({"f": {"action": "decline"}, "v": {"action": "cancel"}, "o": {"no": true}});
    assert_eq!(fake.carried()[1], json!([answers, "s"]));
}

/// A round is sent only with all of its answers, so the program decides about the ask that nobody can present.
#[tokio::test]
async fn one_ask_that_cannot_be_read_costs_no_others() {
    let (declined, given) = (json!({"action": "decline"}), json!({"no": true}));
    for (bad, is_elicitation) in [
        (json!({"method": "elicitation/create", "params": {"message": "m"}}), true),
        (json!({"method": "elicitation/create", "params": []}), true),
        (json!({"method": "elicitation/create"}), true),
        (json!({"method": "elicitation/create", "params": {"mode": "url", "url": 3, "message": "m"}}), true),
        (json!({"method": "sampling/createMessage", "params": {}}), false),
        (json!({"method": "roots/list", "params": 3}), false),
        (json!({"method": 3}), false),
        (json!(null), false),
        (json!([]), false),
    ] {
        let asks = json!({"a": form(), "bad": bad, "z": form()});
        let filled = json!({"action": "accept", "content": {"region": "eu", "size": 1}});
        let answered = |answer: &Value| json!([{"a": filled, "bad": answer, "z": filled}, "s"]);
        let fills = || builder().on_elicit_form(async |ask| Ok(ask.accept(json!({"region": "eu"}))?));

        // The loop ends before anybody is asked, and the program continues it.
        let fake = Fake::script([asking(asks.clone(), Some("s")), done("ok")]);
        let client = fake.client(fills());
        let error = client.call_tool("t", ()).await.unwrap_err();
        let ClientErrorKind::Ask(AskFault::UnknownKind { key, unreadable: Some(reason), .. }) = error.kind()
        else {
            panic!("{bad}: {error}")
        };
        let text = chain(&error);
        assert!(key == "bad" && text.contains("`bad` cannot be read") && text.contains(reason), "{text}");
        let pending = error.into_pending().unwrap();
        // It is stored as the server wrote it.
        let written = serde_json::to_value(&pending).unwrap();
        assert_eq!(written["asks"]["bad"], bad);
        let mut pending: PendingCall = serde_json::from_value(written).unwrap();
        assert_eq!(pending.missing(), ["a", "bad", "z"], "{bad}");
        let answer = if is_elicitation { &declined } else { &given };
        match is_elicitation {
            true => pending.decline("bad").unwrap(),
            false => {
                assert!(pending.decline("bad").is_err(), "{bad}");
                pending.answer("bad", &given).unwrap();
            }
        }
        client.drive(pending).await.unwrap();
        assert_eq!(fake.carried()[1], answered(answer), "{bad}");

        // The loop goes on if `on_round` declines the ask.
        if is_elicitation {
            let fake = Fake::script([asking(asks, Some("s")), done("ok")]);
            let declines = fills().on_round(async |_| RoundDecision::go().decline("bad"));
            fake.client(declines).call_tool("t", ()).await.unwrap();
            assert_eq!(fake.carried()[1], answered(&declined), "{bad}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn state_only_legs_are_sent_on_by_themselves() {
    let began = tokio::time::Instant::now();
    let fake = Fake::script([
        not_yet("a"),
        not_yet("b"),
        asking(json!({"f": form()}), Some("c")),
        not_yet("d"),
        done("ok"),
    ]);
    let client = fake.client(by_hand());
    let mut pending = begun(&client).await;
    assert_eq!((pending.round(), fake.requests().len()), (1, 3));
    pending.decline("f").unwrap();
    assert!(client.resume(pending).await.unwrap().done().is_some());
    assert_eq!(began.elapsed(), Duration::from_millis(50 + 100 + 50));
    let decline = json!({"f": {"action": "decline"}});
    assert_eq!(
        fake.carried(),
        [
            json!([null, null]),
            json!([null, "a"]),
            json!([null, "b"]),
            json!([decline, "c"]),
            json!([null, "d"])
        ]
    );
}

#[tokio::test]
async fn what_was_kept_is_checked_again_and_only_for_its_server() {
    let fake = Fake::script([round(), asking(json!({"f": form()}), Some(SECRET)), done("ok")]);
    let client = fake.client(by_hand());
    drop(begun(&client).await);
    let mut pending = begun(&client).await;
    pending.accept("f", &json!({"region": "eu"})).unwrap();
    let written = serde_json::to_string(&pending).unwrap();

    let tampered: PendingCall = serde_json::from_str(&written.replace("\"eu\"", "7")).unwrap();
    let error = client.resume(tampered).await.unwrap_err();
    assert!(matches!(error.kind(), ClientErrorKind::Ask(AskFault::Answer(_))), "{error}");

    let elsewhere = written.replace("fake:server", "fake:other");
    let mut elsewhere: PendingCall = serde_json::from_str(&elsewhere).unwrap();
    let error = client.resume(elsewhere.clone()).await.unwrap_err();
    assert!(
        error.to_string().ends_with("the pending call or task belongs to another server, fake:other"),
        "{error}"
    );
    assert!(client.drive(elsewhere.clone()).await.is_err());
    assert_eq!(fake.requests().len(), 2);
    elsewhere.retarget("fake:server");
    assert!(client.resume(elsewhere).await.unwrap().done().is_some());
}

#[tokio::test]
async fn what_an_error_holds_can_be_driven_on() {
    // The first client has no callback for URLs; the second one has, and is not asked what is answered.
    let fake =
        Fake::script([asking(json!({"f": form(), "u": url("https://a.example/")}), Some("s")), done("ok")]);
    let forms = fake.client(by_hand().on_elicit_form(async |_| unreachable!()));
    let error = forms.call_tool("t", ()).await.unwrap_err();
    assert!(error.is_missing_callback());
    let mut pending = error.into_pending().unwrap();
    pending.decline("f").unwrap();
    let urls = fake.client(by_hand().on_elicit_url(async |ask| {
        assert_eq!(ask.show()?.host, "a.example");
        Ok(ask.consent())
    }));
    assert!(urls.drive(pending).await.unwrap().into_tool().is_some());
    assert_eq!(fake.carried()[1], json!([{"f": {"action": "decline"}, "u": {"action": "accept"}}, "s"]));
}

#[tokio::test]
async fn calls_can_be_spawned() {
    let fake = Fake::script([round(), done("ok")]);
    let client = fake.client(by_hand());
    let step = tokio::spawn(async move {
        let call = Call::tool("t", ()).unwrap();
        let CallProgress::Pending(pending) = client.begin(call).await.unwrap() else { panic!("not pending") };
        (client.drive(pending).await.is_err(), client.list_tools().await.is_err())
    });
    assert_eq!(step.await.unwrap(), (true, true));
}

#[tokio::test]
async fn what_was_not_declared_is_refused_by_hand_too() {
    let call = || Call::tool("provision", json!({"name": "orders"})).unwrap();
    let fake = Fake::script([round()]);
    let error = fake.client(builder().declare(AskSupport::ELICITATION)).begin(call()).await.unwrap_err();
    assert!(
        matches!(error.kind(), ClientErrorKind::Ask(AskFault::NoCallback { key, .. }) if key == "m"),
        "{error}"
    );
    // What came is not lost.
    assert_eq!(error.pending().map(|pending| pending.missing().len()), Some(4));
    assert!(error.to_string().contains("although it was not declared; attach `on_sample`"), "{error}");
    // And a declaration is no callback. Then it is not the server's fault.
    let fake = Fake::script([round()]);
    let error = fake.client(by_hand()).call(call()).await.unwrap_err();
    assert!(
        matches!(error.kind(), ClientErrorKind::Ask(AskFault::NoCallback { key, by_hand: true, .. }) if key == "f"),
        "{error}"
    );
    assert!(
        error.to_string().contains("declared only to be answered by hand (`begin`, `resume`)"),
        "{error}"
    );
}

/// The parts are JSON that another system has stored, of a round with every kind of ask, of one ask, and of a state alone.
#[tokio::test]
async fn a_call_continues_from_parts_that_another_system_stored() {
    let all = json!({"f": form(), "m": sampling(), "r": roots(), "u": url("https://a.example/")});
    let all_answers = json!({
        "f": {"action": "accept", "content": {"region": "eu", "size": 1}},
        "m": {"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"},
        "r": {"roots": []},
        "u": {"action": "accept"},
    });
    for (asks, answers, state) in [
        (all, all_answers, Some(SECRET)),
        (json!({"f": form()}), json!({"f": {"action": "decline"}}), Some(SECRET)),
        (json!({"u": url("https://a.example/")}), json!({"u": {"action": "cancel"}}), None),
        (json!({}), json!({}), Some(SECRET)),
    ] {
        let fake = Fake::script([done("ok")]);
        let client = fake.client(by_hand());
        let call = Call::tool("provision", json!({"name": "orders"})).unwrap();
        let asks = serde_json::from_value(asks).unwrap();
        let mut pending = PendingCall::from_parts(client.server(), call, asks, state.map(str::to_owned));
        let misfit = pending.answer("other", &json!({"action": "decline"}));
        assert!(misfit.is_err(), "no ask has this key");
        for (key, answer) in answers.as_object().unwrap() {
            pending.answer(key, answer).unwrap();
        }
        client.resume(pending).await.unwrap();
        let params = &fake.requests()[0]["params"];
        assert_eq!(
            (&params["name"], &params["arguments"]),
            (&json!("provision"), &json!({"name": "orders"}))
        );
        assert_eq!(params["requestState"], json!(state), "{params}");
        let sent = params.get("inputResponses").cloned().unwrap_or_else(|| json!({}));
        assert_eq!(sent, answers, "{params}");
    }
}
