//! Any JSON decodes as a pending call or is rejected. A decoded call is the same after another round trip. A client
//! sends exactly the valid answers to its questions, and the state, and sends nothing while an answer is missing.

#![no_main]

use antiphon::{
    client::{
        Client, PendingCall,
        transport::{IncomingNotification, OutgoingRequest, ServerReply, Transport, TransportError},
    },
    wire::AskSupport,
};
use antiphon_fuzz::block_on;
use futures_util::future::BoxFuture;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json, value::RawValue};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

/// A server that completes every call, and stores the requests.
#[derive(Default)]
struct CompletingTransport(Mutex<Vec<Value>>);

impl Transport for CompletingTransport {
    fn exchange<'a>(
        &'a self,
        request: OutgoingRequest,
        _: &'a mut (dyn FnMut(IncomingNotification) + Send),
    ) -> BoxFuture<'a, Result<ServerReply, TransportError>> {
        let message = serde_json::from_slice(&request.body).expect("a client writes JSON");
        self.0.lock().expect("nothing panics").push(message);
        let result = json!({"resultType": "complete", "content": [], "messages": [], "contents": []});
        let result = serde_json::value::to_raw_value(&result).expect("JSON of ours");
        Box::pin(async { Ok(Ok(result)) })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn target(&self) -> &str {
        "finishing"
    }
}

fuzz_target!(|text: &str| {
    // The input is two JSON texts: the call and the answers.
    let mut texts = serde_json::Deserializer::from_str(text).into_iter::<Box<RawValue>>();
    let Some(Ok(call)) = texts.next() else { return };
    let Ok(mut pending) = serde_json::from_str::<PendingCall>(call.get()) else { return };
    let written = serde_json::to_string(&pending).expect("what was read can be written");
    let again: PendingCall = serde_json::from_str(&written).expect("what was written can be read");
    assert_eq!(serde_json::to_string(&again).expect("it is the same"), written);
    assert!(!format!("{pending:?}").is_empty());

    let keys: Vec<String> = pending.asks().iter().map(|(key, _)| key.to_owned()).collect();
    if let Some(Ok(answer)) = texts.next() {
        for key in &keys {
            let before = pending.answers().get(key).map(|answer| answer.get().to_owned());
            if pending.answer(key, &answer).is_err() {
                assert_eq!(pending.answers().get(key).map(|answer| answer.get().to_owned()), before);
            } else {
                assert!(pending.missing().iter().all(|missing| missing != key.as_str()));
            }
        }
    }

    let transport = Arc::new(CompletingTransport::default());
    let client = Client::builder("fuzzer", "1").declare(AskSupport::ALL).connect(transport.clone());
    pending.retarget("finishing");
    let missing = pending.missing().len();
    let answers = pending.answers().clone();
    let has_state = pending.has_state();
    let outcome = block_on(client.resume(pending));
    let sent = std::mem::take(&mut *transport.0.lock().expect("nothing panics"));
    assert!(sent.len() <= 1);
    let [request] = &sent[..] else {
        assert!(outcome.is_err(), "a call that was not sent is not done");
        return;
    };
    assert_eq!(missing, 0);
    let params = &request["params"];
    assert_eq!(params.get("requestState").is_some(), has_state);
    let responses = params.get("inputResponses").map(|all| all.as_object().expect("an object").clone());
    let responses = responses.unwrap_or_default();
    let sent: BTreeSet<&String> = responses.keys().collect();
    assert_eq!(sent, keys.iter().collect());
    assert!(keys.iter().all(|key| answers.get(key).is_some()));
});
