//! A handler receives only answers that are valid for the forms, as another validator confirms. Invalid answers are
//! asked again, alone, or rejected. No question is lost.

#![no_main]

use antiphon::{
    server::{
        Answer, Ask, Caller, Ctx, NoArguments, Reply, Server, Tool,
        asks::{InputRequired, InputResponse},
    },
    wire::{forms::FormSchema, sampling::SamplingMessage},
};
use antiphon_fuzz::{block_on, server};
use jsonschema::Validator;
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value, json, value::RawValue};
use std::{
    collections::BTreeSet,
    sync::{LazyLock, Mutex},
};

/// The forms, by key.
static FORMS: LazyLock<[(&str, Value); 2]> = LazyLock::new(|| {
    [
        (
            "text",
            json!({"type": "object", "required": ["name"], "properties": {
                "name": {"type": "string", "minLength": 2, "maxLength": 8},
                "day": {"type": "string", "format": "date"},
                "at": {"type": "string", "format": "date-time"},
                "kind": {"type": "string", "enum": ["a", "b"]},
                "kinds": {"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}, "maxItems": 2},
            }}),
        ),
        (
            "numbers",
            json!({"type": "object", "required": ["count"], "properties": {
                "count": {"type": "integer", "minimum": -3, "maximum": 9007199254740991i64},
                "share": {"type": "number", "minimum": 0.5, "maximum": 1.5},
                "sure": {"type": "boolean"},
            }}),
        ),
    ]
});
/// The other validators, without formats, because validators differ in formats.
static VALIDATORS: LazyLock<Vec<Validator>> = LazyLock::new(|| {
    let options = jsonschema::options().should_validate_formats(false);
    FORMS.iter().map(|(_, schema)| options.build(schema).expect("a schema of ours")).collect()
});
static SERVER: LazyLock<Server> = LazyLock::new(|| {
    let tool = Tool::new("ask", async |ctx: &Ctx, _: NoArguments| handle(ctx));
    server().tool(tool).build().expect("one tool")
});
/// The state of the first leg.
static STATE: LazyLock<String> = LazyLock::new(|| {
    let first = respond("").expect("the first leg is answered");
    first["result"]["requestState"].as_str().expect("the first leg asks").to_owned()
});
/// True if the handler has received the answers of the present leg.
static HANDLER_RAN: Mutex<bool> = Mutex::new(false);

fn asks() -> Vec<Ask> {
    let form = |(key, schema): &(&str, Value)| {
        let schema: FormSchema = serde_json::from_value(schema.clone()).expect("a form");
        Ask::form(*key, "?", schema)
    };
    let sample = antiphon::wire::sampling::CreateMessageParams::new(vec![SamplingMessage::user("?")], 10);
    let others =
        [Ask::url("url", "?", "https://pay.example/"), Ask::sample("sample", sample), Ask::roots("roots")];
    FORMS.iter().map(form).chain(others).collect()
}

fn handle(ctx: &Ctx) -> Result<Reply<String>, antiphon::Error> {
    let asks = asks();
    if ctx.leg() == 1 {
        let mut asks = asks.into_iter();
        let first = InputRequired::ask(asks.next().expect("five asks"));
        return Ok(asks.fold(first, InputRequired::and).into());
    }
    *HANDLER_RAN.lock().expect("nothing panics") = true;
    for (ask, validator) in asks.iter().zip(&*VALIDATORS) {
        match ctx.by_hand().form::<Map<String, Value>>(ask)?.expect("every ask has an answer") {
            Answer::Accept(form) => assert!(validator.is_valid(&Value::Object(form.clone())), "{form:?}"),
            Answer::Decline | Answer::Cancel => {}
        }
    }
    assert!(
        ctx.by_hand().url(&asks[2]).is_some()
            && ctx.by_hand().sampled(&asks[3]).is_some()
            && ctx.by_hand().listed_roots(&asks[4]).is_some()
    );
    assert_eq!(ctx.by_hand().input_responses().len(), asks.len());
    let forms = ctx.by_hand().input_responses().filter(|(_, response)| matches!(response, InputResponse::Elicit(_)));
    assert_eq!(forms.count(), 3);
    Ok(Reply::Complete("done".to_owned()))
}

/// Returns the reply to a leg with these members of `params`.
fn respond(members: &str) -> Option<Value> {
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}}"#;
    let message = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"ask","_meta":{meta}{members}}}}}"#
    );
    let reply = block_on(SERVER.respond(message.as_bytes(), &Caller::default()))?;
    Some(serde_json::from_slice(&reply.body).expect("a reply is JSON"))
}

fuzz_target!(|text: &str| {
    // Any JSON value. Other texts are not valid messages.
    let Ok(answers) = serde_json::from_str::<&RawValue>(text) else { return };
    let mut state = STATE.clone();
    let mut open: BTreeSet<String> = ["text", "numbers", "url", "sample", "roots"].map(str::to_owned).into();
    // Sends the same answers until the server rejects the call.
    for _ in 0..20 {
        let reply = respond(&format!(r#","inputResponses":{answers},"requestState":"{state}""#));
        let reply = reply.expect("a request is answered");
        let seen = std::mem::take(&mut *HANDLER_RAN.lock().expect("nothing panics"));
        let result = &reply["result"];
        if result["resultType"] != "input_required" {
            assert_eq!(seen, result["content"][0]["text"] == "done", "{reply}");
            // The call was rejected: asked too often, malformed answers, or too deeply nested.
            assert!(seen || reply["error"]["code"].is_i64(), "{reply}");
            return;
        }
        assert!(!seen, "the handler ran and its questions are asked again");
        let asked = result["inputRequests"].as_object().expect("asks are an object");
        let asked: BTreeSet<String> = asked.keys().cloned().collect();
        assert!(!asked.is_empty() && asked.is_subset(&open), "{asked:?} of {open:?}");
        check_repeated(answers, &asked);
        open = asked;
        state = result["requestState"].as_str().expect("a state").to_owned();
    }
});

/// Checks that no form was asked again whose answer another validator accepts.
fn check_repeated(answers: &RawValue, asked: &BTreeSet<String>) {
    let Ok(answers) = serde_json::from_str::<Value>(answers.get()) else { return };
    for ((key, form), validator) in FORMS.iter().zip(&*VALIDATORS) {
        let Some(answer) = answers.get(key).filter(|_| asked.contains(*key)) else { continue };
        let Some(answer) = answer.as_object().filter(|answer| answer.len() == 2) else { continue };
        let (Some(action), Some(Value::Object(content))) = (answer.get("action"), answer.get("content"))
        else {
            continue;
        };
        // Unknown fields are not validated, and formats are validated by antiphon only.
        let field =
            |name: &String| form["properties"].get(name).is_some_and(|field| field.get("format").is_none());
        let is_known = content.keys().all(field);
        assert!(action != "accept" || !is_known || !validator.is_valid(&answer["content"]), "{answer:?}");
    }
}
