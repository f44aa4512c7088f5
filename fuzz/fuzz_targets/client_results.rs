//! A client's call ends, for any results of a server: with a complete result that is valid for the tool's schema, as
//! another validator confirms, or with an error. Each request of the call carries the last state and the answers to the
//! last questions, and nothing else.

#![no_main]

use antiphon::{
    client::{
        Client, RoundDecision,
        transport::{
            IncomingNotification, OutgoingRequest, ServerReply, Transport, TransportError, TransportErrorKind,
        },
    },
    wire::{
        ErrorCode, ErrorObject,
        sampling::{CreateMessageResult, ListRootsResult},
    },
};
use antiphon_fuzz::block_on;
use futures_util::future::BoxFuture;
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value, json, value::RawValue};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard},
};

/// A server that returns these results one after the other, for any request.
struct ScriptedTransport {
    script: Mutex<Script>,
}

#[derive(Default)]
struct Script {
    /// The results, the last one first.
    results: Vec<Box<RawValue>>,
    /// The last result that was returned.
    given: Option<Value>,
}

impl ScriptedTransport {
    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().expect("nothing panics")
    }
}

impl Transport for ScriptedTransport {
    fn exchange<'a>(
        &'a self,
        request: OutgoingRequest,
        _: &'a mut (dyn FnMut(IncomingNotification) + Send),
    ) -> BoxFuture<'a, Result<ServerReply, TransportError>> {
        let mut script = self.script();
        let request: Value = serde_json::from_slice(&request.body).expect("a client writes JSON");
        if request["method"] == "tools/call" {
            check_request(&request["params"], script.given.as_ref());
        }
        let result = script.results.pop();
        script.given = result.as_ref().and_then(|result| serde_json::from_str(result.get()).ok());
        let reply = match result {
            // A JSON array stands for an error.
            Some(result) if result.get().starts_with("[") => {
                let parts: Vec<Value> = serde_json::from_str(result.get()).unwrap_or_default();
                let code = parts.first().and_then(Value::as_i64).unwrap_or(-32603);
                let mut error = ErrorObject::new(ErrorCode(code), "error");
                error.data = parts.get(1).cloned();
                Ok(Err(error))
            }
            Some(result) => Ok(Ok(result)),
            None => Err(TransportError::new(TransportErrorKind::Closed, "the script has ended")),
        };
        Box::pin(async { reply })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn target(&self) -> &str {
        "scripted"
    }
}

/// Checks a request of a call that follows this result.
///
/// > the client MUST echo back the exact value of `requestState`
fn check_request(params: &Value, last: Option<&Value>) {
    let asked = last.filter(|last| last["resultType"] == "input_required");
    let Some(asked) = asked.filter(|_| params.get("inputResponses").or(params.get("requestState")).is_some())
    else {
        return;
    };
    assert_eq!(params.get("requestState"), asked.get("requestState").filter(|state| !state.is_null()));
    let none = Map::new();
    let keys = |value: &Value| value.as_object().unwrap_or(&none).keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(keys(&params["inputResponses"]), keys(&asked["inputRequests"]));
}

fuzz_target!(|text: &str| {
    let texts = serde_json::Deserializer::from_str(text).into_iter::<Box<RawValue>>();
    let mut results: Vec<Box<RawValue>> = texts.map_while(Result::ok).take(24).collect();
    results.reverse();
    let transport = Arc::new(ScriptedTransport { script: Mutex::new(Script { results, given: None }) });
    let client = Client::builder("fuzzer", "1")
        .on_elicit_form(async |ask| {
            // Fills in every field with a text. Declines a form for which that is invalid.
            let filled =
                Map::from_iter(ask.schema.fields().iter().map(|field| (field.name.clone(), json!("text"))));
            Ok(ask.accept(filled).unwrap_or_else(|_| ask.decline()))
        })
        .on_elicit_url(async |ask| Ok(if ask.show().is_ok() { ask.consent() } else { ask.decline() }))
        .on_sample(async |_| Ok(CreateMessageResult::text("model", "text")))
        .on_roots(async |_| Ok(ListRootsResult::new(Vec::new())))
        .on_round(async |_| RoundDecision::go())
        .connect(transport.clone());
    block_on(async {
        let tools = client.list_tools().await.unwrap_or_default();
        let given = |what: &str| {
            let given = transport.script().given.clone();
            given.unwrap_or_else(|| panic!("{what} is done, and nothing came"))
        };
        for tool in tools.iter().map(|tool| tool.name.as_str()).chain(["unknown"]).take(4) {
            let Ok(result) = client.call_tool(tool, ()).await else { continue };
            let given = given(tool);
            is_complete(&given);
            let schema =
                tools.iter().find(|known| known.name == tool).and_then(|tool| tool.output_schema.as_ref());
            if let Some(schema) = schema.filter(|_| !result.failed()) {
                fits(schema, &given["structuredContent"]);
            }
        }
        if client.get_prompt("prompt", ()).await.is_ok() {
            is_complete(&given("a prompt"));
        }
        if client.read_resource("test://resource").await.is_ok() {
            is_complete(&given("a resource"));
        }
        let _ = client.list_prompts().await;
        let _ = client.list_resources().await;
        let _ = client.list_resource_templates().await;
        let _ = client.discover().await;
    });
});

/// > Clients MUST treat an unrecognized `resultType` as an error
fn is_complete(result: &Value) {
    let kind = &result["resultType"];
    assert!(kind.is_null() || kind == "complete", "{kind}");
}

fn fits(schema: impl serde::Serialize, content: &Value) {
    let schema = serde_json::to_value(schema).expect("a schema is JSON");
    // A schema that the other validator rejects is not checked.
    if let Ok(validator) = jsonschema::validator_for(&schema) {
        assert!(validator.is_valid(content), "{content} does not fit {schema}");
    }
}
