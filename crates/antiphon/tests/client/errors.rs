//! Ends of a call by an error: callbacks that fail, servers that break the rules, connections that break.

use crate::client_support::{failing::*, *};
use antiphon::{
    client::{CallbackError, ClientError, ClientErrorKind, asks::AskFault},
    wire::{ProtocolVersion, sampling::CreateMessageResult},
};
use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

#[tokio::test]
async fn a_failing_callback_ends_the_call_and_keeps_the_answers() {
    let dropped: Arc<AtomicUsize> = Arc::default();
    let count = Arc::clone(&dropped);
    let client =
        move |bad: fn(&antiphon::client::FormAsk) -> Result<antiphon::wire::ElicitResult, CallbackError>| {
            let count = Arc::clone(&count);
            builder().on_elicit_form(move |ask| {
                let guard = Guard(Arc::clone(&count));
                async move {
                    match &*ask.context.key {
                        "1-good" => {
                            std::mem::forget(guard);
                            Ok(ask.accept(json!({"region": SECRET}))?)
                        }
                        "2-open" => {
                            let _guard = guard;
                            std::future::pending().await
                        }
                        _ => {
                            std::mem::forget(guard);
                            bad(&ask)
                        }
                    }
                }
            })
        };
    let replies = || vec![asking(json!({"1-good": form(), "2-open": form(), "3-bad": form()}), Some(SECRET))];
    let pending = Some((1, &["1-good"][..]));
    let failed: &[&str] = &["the callback for `3-bad` failed: the window was closed"];
    let misfit: &[&str] = &[
        "the answer to `3-bad` does not fit its form: `region` must be text, `size` must be a whole number",
    ];
    check(
        client(|_| Err(CallbackError::new("the window was closed"))),
        replies(),
        Expected { texts: failed, sent: 1, pending, is: None },
    )
    .await;
    check(
        client(|_| Err(std::io::Error::other("the window was closed"))?),
        replies(),
        Expected { texts: failed, sent: 1, pending, is: None },
    )
    .await;
    // Bad content, whether the callback looked or not.
    check(
        client(|ask| Ok(ask.accept(json!({"region": 7, "size": SECRET}))?)),
        replies(),
        Expected { texts: misfit, sent: 1, pending, is: None },
    )
    .await;
    let unchecked = |_: &_| {
        let Value::Object(content) = json!({"region": 7, "size": SECRET}) else { unreachable!() };
        Ok(antiphon::wire::ElicitResult::accept(content))
    };
    let error =
        check(client(unchecked), replies(), Expected { texts: misfit, sent: 1, pending, is: None }).await;
    let ClientErrorKind::Ask(AskFault::Answer(error)) = error.kind() else { panic!("{error:?}") };
    assert_eq!((error.key(), error.fields().len()), ("3-bad", 2));
    assert_eq!(dropped.load(Ordering::SeqCst), 4);
}

#[tokio::test]
async fn what_the_server_may_not_ask_ends_the_call_before_any_callback() {
    let never = || {
        builder()
            .on_elicit_form(async |_| panic!("a callback ran"))
            .on_round(async |_| panic!("on_round ran"))
    };
    let raw = |result: Value| Reply::Result(result);
    let mut with_tools = sampling();
    with_tools["params"]["tools"] = json!([]);
    let sample = || never().on_sample(async |_| panic!("a callback ran"));
    let asked = |ask: Value| asking(json!({"first": form(), "key": ask}), Some(SECRET));
    for (client, reply, texts, pending) in [
        (
            never(),
            asked(url("https://a.example/")),
            &["Elicitation not supported", "`key`", "`on_elicit_url`"][..],
            true,
        ),
        (never(), asked(sampling()), &["Sampling not supported", "`key`", "attach `on_sample`"], true),
        (
            sample(),
            asked(with_tools),
            &["Sampling with tools not supported", "attach `sampling_tools`"],
            true,
        ),
        (never(), asked(roots()), &["List roots not supported", "`key`", "attach `on_roots`"], true),
        (builder(), asked(form()), &["Elicitation not supported", "`first`", "`on_elicit_form`"], true),
        (
            never(),
            asked(json!({"method": "tasks/new"})),
            &["the server asked `key` by `tasks/new`, which is unknown here", "fake:server"],
            true,
        ),
        (
            never(),
            asked(json!({"method": "elicitation/create", "params": {"mode": "voice", "message": ""}})),
            &["the server asked `key` by `elicitation/create` of the mode `voice`"],
            true,
        ),
        (
            never(),
            raw(json!({"resultType": "input_required"})),
            &["neither inputRequests nor requestState"],
            false,
        ),
        (never(), raw(json!({"resultType": "input_required", "inputRequests": {}})), &["neither"], false),
        (
            never(),
            raw(json!({"inputRequests": {"key": form()}, "requestState": SECRET})),
            &["is not `input_required`", "it asks `key`: elicitation/create"],
            false,
        ),
        (
            never(),
            raw(json!({"resultType": "later", "content": []})),
            &["unknown resultType \"later\""],
            false,
        ),
        (
            never(),
            raw(json!({"resultType": "complete", "content": 7})),
            &["the server's answer is invalid", "malformed"],
            false,
        ),
        (
            never(),
            asking((0..65).map(|n| (format!("k{n}"), form())).collect(), None),
            &["asked 65 things at once; 64 are allowed"],
            false,
        ),
        (never().max_asks(1), asked(form()), &["asked 2 things at once; 1 are allowed"], false),
    ] {
        let pending = pending.then_some((1, &[][..]));
        check(client, vec![reply], Expected { texts, sent: 1, pending, is: None }).await;
    }
    // A kept context is the callback's to leave out.
    let mut with_context = sampling();
    with_context["params"]["includeContext"] = "allServers".into();
    let fake = Fake::script([asking(json!({"m": with_context}), None), done("ok")]);
    let client = builder().on_sample(async |ask| {
        assert_eq!(ask.params.include_context.as_deref(), Some("allServers"));
        Ok(CreateMessageResult::text("m1", "Paris"))
    });
    fake.client(client).call_tool("t", ()).await.unwrap();
}

/// A task of 2025-11-25 or of a draft is no result. Nor is a task that the client did not declare.
#[tokio::test]
async fn a_task_is_an_error_that_names_it() {
    for (result, id) in [
        (json!({"task": {"taskId": "t-1", "status": "working", "ttl": 60000}}), "t-1"),
        (json!({"resultType": "complete", "task": {"taskId": "t-2"}}), "t-2"),
        (json!({"resultType": "task", "taskId": "t-3", "status": "working"}), "t-3"),
    ] {
        let fake = Fake::script([Reply::Result(result.clone())]);
        let error = fake.client(builder().tasks(false)).call_tool("slow", ()).await.unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("tools/call `slow` at fake:server: the server made a task"),
            "{result}: {text}"
        );
        assert!(text.contains(&format!("({id:?})")), "{result}: {text}");
        assert!(error.is_task() && error.is_unknown_outcome() && !error.is_limit(), "{result}: {error:?}");
    }
}

/// The frozen refusal has a text and a code; other SDKs send no `data`.
#[tokio::test]
async fn a_refused_state_is_known_by_its_text_as_well() {
    let refused = |code, text, data| Reply::Refused(code, text, data);
    for (reply, is) in [
        (refused(-32602, "Invalid or expired requestState", Value::Null), true),
        (refused(-32602, "says the server", json!({"reason": "invalid_request_state"})), true),
        (refused(-32602, "Invalid params", Value::Null), false),
        (refused(-32603, "Invalid or expired requestState", Value::Null), false),
    ] {
        let fake = Fake::script([not_yet(SECRET), reply.clone()]);
        let error = fake.client(builder()).call_tool("t", ()).await.unwrap_err();
        assert_eq!(error.is_state_refused(), is, "{reply:?}: {error}");
        assert_eq!(error.to_string().contains("without the shared key"), is, "{reply:?}: {error}");
    }
}

#[tokio::test]
async fn errors_of_the_server_and_the_connection() {
    let refused = || Reply::Error(-32602, json!({"reason": "invalid_request_state"}));
    let missing = |required: Value| Reply::Error(-32021, json!({"requiredCapabilities": required}));
    let state_refused: fn(&ClientError) -> bool = ClientError::is_state_refused;
    let missing_callback: fn(&ClientError) -> bool = ClientError::is_missing_callback;
    let plain: fn(&ClientError) -> bool = |error| !error.is_state_refused() && error.server_error().is_some();
    let causes = &[
        "expired",
        "without the shared key",
        "restarted server",
        "arguments or the user changed",
        "Nothing was started over",
    ][..];
    for (client, replies, texts, answered, is) in [
        (forms(), vec![one_form(), refused()], causes, true, state_refused),
        (forms(), vec![not_yet(SECRET), refused()], causes, false, state_refused),
        // Before any state it is an error like others.
        (forms(), vec![refused()], &["answered with an error: says the server (-32602)"], false, plain),
        (
            forms(),
            vec![one_form(), Reply::Error(-32602, json!({"reason": "used"}))],
            &["(-32602)"],
            true,
            plain,
        ),
        (
            forms(),
            vec![missing(json!({"elicitation": {"form": {}, "url": {}}}))],
            &["attach `on_elicit_url`", "(-32021)"],
            false,
            missing_callback,
        ),
        (
            builder(),
            vec![missing(json!({"elicitation": {"form": {}, "url": {}}, "roots": {}}))],
            &["attach `on_elicit` and `on_roots`"],
            false,
            missing_callback,
        ),
        (
            builder(),
            vec![missing(json!({"sampling": {"tools": {}}}))],
            &["attach `on_sample` and `sampling_tools`"],
            false,
            missing_callback,
        ),
        (
            builder(),
            vec![missing(json!({"extensions": {}}))],
            &["did not declare: extensions"],
            false,
            missing_callback,
        ),
        (
            forms(),
            vec![one_form(), Reply::Broken],
            &["no response came back: the pipe broke"],
            true,
            ClientError::is_transport,
        ),
    ] {
        let sent = replies.len();
        let keys: &[&str] = if answered { &["where"] } else { &[] };
        let pending = (sent == 2).then_some((u32::from(answered), keys));
        let error = check(client, replies, Expected { texts, sent, pending, is: Some(is) }).await;
        let again = error.restart().unwrap();
        assert_eq!(
            (again.method(), again.name(), again.arguments().unwrap().get()),
            ("tools/call", "provision", r#"{"name":"orders"}"#)
        );
    }
}

#[tokio::test]
async fn another_version_is_tried_once() {
    let unsupported =
        |versions: Value| Reply::Error(-32022, json!({"supported": versions, "requested": "2030-01-01"}));
    let versions = |fake: &Fake| -> Vec<Value> {
        let of =
            |request: &Value| request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"].clone();
        fake.requests().iter().map(of).collect()
    };
    let client = || builder().protocol_version(ProtocolVersion::new("2030-01-01"));
    let fake = Fake::script([unsupported(json!(["2025-11-25", "2026-07-28"])), done("ok"), done("ok")]);
    let connected = fake.client(client());
    assert_eq!(connected.protocol_version().as_str(), "2030-01-01");
    connected.call_tool("t", ()).await.unwrap();
    connected.call_tool("t", ()).await.unwrap();
    assert_eq!(versions(&fake), ["2030-01-01", "2026-07-28", "2026-07-28"]);
    assert_eq!(connected.protocol_version().as_str(), "2026-07-28");
    let none = "no common protocol version: this client speaks 2026-07-28, the server ";
    for (replies, theirs) in [
        (vec![unsupported(json!(["2024-11-05", "2025-11-25"]))], "2024-11-05, 2025-11-25"),
        (vec![unsupported(json!(["2026-07-28"])), unsupported(json!(["2026-07-28"]))], "2026-07-28"),
        (vec![Reply::Error(-32022, json!(null))], "none that it names"),
    ] {
        let (sent, text) = (replies.len(), format!("{none}{theirs}"));
        check(client(), replies, Expected { texts: &[&text], sent, ..Expected::default() }).await;
    }
}
