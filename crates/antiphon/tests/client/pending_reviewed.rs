//! A pending call that was changed while it was kept, and what a call leaves behind.

use crate::client_support::*;
use antiphon::{
    client::{
        Call, CallOptions, CallProgress, CancelToken, Client, ClientErrorKind, PendingCall, asks::AskFault,
    },
    wire::AskSupport,
};
use serde_json::{Value, json, value::RawValue};
use std::{sync::Arc, time::Duration};

fn by_hand(fake: &Arc<Fake>) -> Client {
    fake.client(builder().declare(AskSupport::ELICITATION))
}

/// Begins a call that asks `a`, then keeps it, changed by `change`.
async fn kept(
    replies: impl IntoIterator<Item = Reply>,
    change: impl Fn(&mut Value),
) -> (Arc<Fake>, PendingCall) {
    let first = asking(json!({"a": form()}), Some("s1"));
    let fake = Fake::script(std::iter::once(first).chain(replies));
    let call = Call::tool("t", json!({"n": 1})).unwrap();
    let mut pending = by_hand(&fake).begin(call).await.unwrap().pending().unwrap();
    pending.accept("a", &json!({"region": "eu"})).unwrap();
    let mut written = serde_json::to_value(&pending).unwrap();
    change(&mut written);
    (fake, serde_json::from_value(written).unwrap())
}

#[tokio::test]
async fn only_answers_to_what_is_asked_leave() {
    let (fake, pending) = kept([done("ok")], |written| {
        written["answers"]["b"] = json!({"action": "decline"});
        written["unknown"] = json!(7);
        written["call"]["unknown"] = json!(7);
    })
    .await;
    assert!(by_hand(&fake).resume(pending).await.unwrap().done().is_some());
    let sent = fake.carried()[1].clone();
    assert_eq!(sent[0].as_object().unwrap().keys().collect::<Vec<_>>(), ["a"], "{sent}");
    assert_eq!(sent[1], "s1");
}

#[tokio::test]
async fn an_ask_that_was_added_is_missing_and_one_that_was_changed_is_checked() {
    let (fake, pending) = kept([], |written| written["asks"]["b"] = form()).await;
    let error = by_hand(&fake).resume(pending).await.unwrap_err();
    assert!(matches!(error.kind(), ClientErrorKind::MissingAnswers { keys } if keys == &["b"]), "{error}");
    let (fake, pending) = kept([], |written| written["asks"]["a"] = roots()).await;
    let error = by_hand(&fake).resume(pending).await.unwrap_err();
    assert!(matches!(error.kind(), ClientErrorKind::Ask(AskFault::Answer(_))), "{error}");
    assert_eq!(fake.requests().len(), 1);
}

#[tokio::test]
async fn what_the_latest_result_does_not_have_is_not_sent() {
    // Asks without state, then state without asks, then asks with another state.
    let fake = Fake::script([
        asking(json!({"a": form()}), Some("s1")),
        asking(json!({"a": form()}), None),
        Reply::Result(json!({"resultType": "input_required", "requestState": ""})),
        asking(json!({"b": form()}), Some("s4")),
        done("ok"),
    ]);
    let client = by_hand(&fake);
    let mut step = client.begin(Call::tool("t", ()).unwrap()).await.unwrap();
    let mut rounds = Vec::new();
    while let CallProgress::Pending(mut pending) = step {
        rounds.push(pending.round());
        let key = pending.missing().remove(0);
        pending.decline(&key).unwrap();
        step = client.resume(pending).await.unwrap();
    }
    let no = json!({"action": "decline"});
    assert_eq!(
        fake.carried(),
        [
            json!([null, null]),
            json!([{"a": no}, "s1"]),
            json!([{"a": no}, null]),
            json!([null, ""]),
            json!([{"b": no}, "s4"])
        ]
    );
    assert_eq!(rounds, [1, 2, 3]);
}

#[tokio::test]
async fn arguments_survive_being_kept_byte_for_byte() {
    let text = "{\"z\" : 1.0,\t\"a\":9007199254740993, \"e\\u0301\": 1.50e+4,\"\u{e9}\":[ ]}";
    let arguments = RawValue::from_string(text.into()).unwrap();
    let fake = Fake::script([asking(json!({"a": form()}), Some("s")), done("ok")]);
    let client = by_hand(&fake);
    let call = Call::tool("t", arguments).unwrap();
    let pending = client.begin(call).await.unwrap().pending().unwrap();
    let written = serde_json::to_string(&pending).unwrap();
    let mut read: PendingCall = serde_json::from_str(&written).unwrap();
    assert_eq!(read.call().arguments().unwrap().get(), text);
    read.decline("a").unwrap();
    client.resume(read).await.unwrap();
    assert!(fake.texts().iter().all(|sent| sent.contains(text)), "{:?}", fake.texts());
}

#[tokio::test]
async fn cancelling_a_leg_keeps_its_answers_and_cancels_its_request() {
    let (fake, pending) = kept([Reply::Hang], |_| {}).await;
    let token = CancelToken::new();
    let pending = pending.with_options(CallOptions::default().cancelled_by(&token));
    let client = by_hand(&fake);
    let resumed = tokio::spawn(async move { client.resume(pending).await });
    while fake.requests().len() < 2 {
        tokio::task::yield_now().await;
    }
    token.cancel();
    let error = tokio::time::timeout(Duration::from_secs(5), resumed).await.unwrap().unwrap().unwrap_err();
    assert!(error.is_cancelled() && fake.cancelled() == 1, "{error}");
    let kept = error.pending().unwrap();
    assert!(kept.missing().is_empty() && kept.has_state());
    assert!(!format!("{error:?}").contains("s1") && !format!("{error:?}").contains("eu"), "{error:?}");
    // Cancelled for good: nothing is sent by a call that begins after it.
    let late = Call::tool("t", ()).unwrap().cancelled_by(&token);
    assert!(by_hand(&fake).begin(late).await.unwrap_err().is_cancelled());
    assert_eq!(fake.requests().len(), 2);
}
