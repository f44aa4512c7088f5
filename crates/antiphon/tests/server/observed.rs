//! What an operator sees of calls: a span for each request, a line for each call that ends, and no secret in either.

use crate::common::{
    log::take_log,
    one_tool::{built, tool},
    tool_call::{ToolCall, accept},
    *,
};
use antiphon::{
    Error, Result,
    seal::Principal,
    server::{
        Caller, Ctx, NoArguments, Server, ServerBuilder, Tool,
        offers::{CallerInfo, Offers},
    },
    wire::forms::{FormField, FormSchema},
};
use http::{Extensions, HeaderMap};
use serde_json::{Map, Value, json};

/// The lines of calls that ended.
fn ends(log: &str) -> Vec<String> {
    let lines = log.lines().filter_map(|line| line.split_once("message=a call ended"));
    lines.map(|(_, fields)| fields.trim().to_owned()).collect()
}

async fn call(server: &Server, name: &str, arguments: Value) -> Vec<String> {
    take_log();
    let params = json!({"name": name, "arguments": arguments});
    let message = request(1, "tools/call", params).to_string();
    server.respond(message.as_bytes(), &Caller::default()).await;
    ends(&take_log())
}

#[tokio::test]
async fn each_call_that_ends_has_one_line() {
    let failing = Tool::new("fails", async |_: &Ctx, _: Map<String, Value>| -> Result<String> {
        Err(Error::user_facing("no"))
    });
    let server = fixture(|builder: ServerBuilder| builder.tool(failing)).server;
    for (name, arguments, expected) in [
        ("echo", json!({"name": "a"}), Some(("echo", "complete", 1))),
        ("echo", json!({}), Some(("echo", "error", 1))),
        ("fails", json!({}), Some(("fails", "error", 1))),
        // A question ends no call.
        ("ask", json!({"name": "a"}), None),
        // Nothing of this name is called.
        ("none", json!({}), None),
    ] {
        let lines = call(&server, name, arguments).await;
        assert_eq!(lines.len(), usize::from(expected.is_some()), "{name}: {lines:?}");
        let Some((target, outcome, legs)) = expected else { continue };
        for field in [format!("target={target:?}"), format!("outcome=\"{outcome}\""), format!("legs={legs}")]
        {
            assert!(lines[0].contains(&field), "{field} in {lines:?}");
        }
    }
}

#[tokio::test]
async fn the_line_has_the_legs_and_the_same_name_for_the_same_person() {
    let asking = tool!(|ctx| { Ok(ctx.confirm("Really?").key("sure").await?.to_string()) });
    let person = |_: &Caller<'_>| Ok::<_, String>(Some(Principal::user("anna").with_issuer("https://i")));
    let server = built(asking, |builder| builder.bind_principal(person));
    let mut names = Vec::new();
    for _ in 0..2 {
        take_log();
        ToolCall::new(json!({})).through(&server, &json!({"sure": accept(json!({"value": true}))})).await;
        let lines = ends(&take_log());
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains("legs=2"), "{lines:?}");
        let (_, name) = lines[0].split_once("principal=").unwrap();
        names.push(name.split(' ').next().unwrap().to_owned());
    }
    assert_eq!(names[0], names[1]);
    assert_eq!(names[0].trim_matches('"').len(), 16, "{names:?}");
}

#[tokio::test]
async fn no_secret_is_in_a_span_or_a_line() {
    let asking = Tool::new("t", async |ctx: &Ctx, _: Map<String, Value>| -> Result<String> {
        let schema = FormSchema::new(vec![FormField::text("value")]);
        let answer: String = ctx.elicit_with("s3cret-question", schema).key("name").await?;
        let id = ctx.step("pay", async |_| Ok::<_, Error>("s3cret-step".to_owned())).await?;
        let failed = ctx.step("fail", async |_| Err::<(), Error>(Error::user_facing("s3cret-failure"))).await;
        assert!(failed.is_err());
        Ok(format!("s3cret-result {answer} {id}"))
    });
    let person = |_: &Caller<'_>| Ok::<_, String>(Some(Principal::user("s3cret-subject")));
    let server = built(asking, |builder| builder.bind_principal(person));
    let (mut headers, extensions) = (HeaderMap::new(), Extensions::new());
    headers.insert("authorization", "Bearer s3cret-token".parse().unwrap());
    headers.insert("x-key", "s3cret-header".parse().unwrap());
    let caller = Caller::http(&headers, &extensions);
    let mut meta = meta();
    meta["example.com/key"] = json!("s3cret-meta");
    meta["traceparent"] = json!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    let mut params = json!({"name": "t", "arguments": {"password": "s3cret-argument"}, "_meta": meta});
    take_log();
    let mut log = String::new();
    for _ in 0..2 {
        let message = request(1, "tools/call", params.clone()).to_string();
        let reply = server.respond(message.as_bytes(), &caller).await.unwrap();
        let reply: Value = serde_json::from_slice(&reply.body).unwrap();
        log += &take_log();
        params["requestState"] = reply["result"]["requestState"].clone();
        params["inputResponses"] = json!({"name": accept(json!({"value": "s3cret-answer"}))});
    }
    assert_eq!(ends(&log).len(), 1, "{log}");
    for field in
        ["gen_ai.tool.name=t", "mcp.method.name=tools/call", "otel.name=\"tools/call t\"", "0af7651916cd43dd"]
    {
        assert!(log.contains(field), "{field} in {log}");
    }
    // The person's time, the step and the round are there too, and nothing secret in the log or in the metrics.
    let metrics = server.metrics().to_string();
    for emitted in ["otel.name=\"step pay\"", "a round leaves", "a round was answered"] {
        assert!(log.contains(emitted), "{emitted} in {log}");
    }
    for text in [&log, &metrics] {
        assert!(!text.contains("s3cret"), "{text}");
    }
}

/// Names of requests become names of spans and series, of which a client must not make as many as it likes.
#[tokio::test]
async fn a_name_that_the_server_does_not_have_is_in_no_span() {
    struct Found;
    impl Offers for Found {
        async fn tool(&self, name: &str, _: &CallerInfo) -> Result<Option<Tool>> {
            let is_one = name == "found";
            Ok(is_one.then(|| Tool::new(name, async |_: &Ctx, _: NoArguments| "done")))
        }
    }
    let server = fixture(|builder: ServerBuilder| builder.offers(Found)).server;
    for (method, params, fields) in [
        (
            "tools/call",
            json!({"name": "echo"}),
            &["otel.name=\"tools/call echo\"", "gen_ai.tool.name=echo"][..],
        ),
        (
            "tools/call",
            json!({"name": "found"}),
            &["otel.name=\"tools/call found\"", "gen_ai.tool.name=found"],
        ),
        (
            "tools/call",
            json!({"name": "invented"}),
            &["otel.name=\"tools/call\"", "mcp.method.name=tools/call"],
        ),
        ("prompts/get", json!({"name": "invented"}), &["otel.name=\"prompts/get\""]),
        ("invented/method", json!({"name": "echo"}), &["otel.name=\"_OTHER\"", "mcp.method.name=_OTHER"]),
    ] {
        take_log();
        let message = request(1, method, params).to_string();
        server.respond(message.as_bytes(), &Caller::default()).await;
        let log = take_log();
        for field in fields {
            assert!(log.contains(field), "{field} in {log}");
        }
        let spans: Vec<&str> = log.lines().filter(|line| line.contains("otel.name")).collect();
        assert!(!spans.is_empty() && !spans.concat().contains("invented"), "{spans:?}");
    }
    let metrics = server.metrics().to_string();
    assert!(metrics.contains("_OTHER") && !metrics.contains("invented"), "{metrics}");
}
