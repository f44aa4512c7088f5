//! Suggestions for arguments of prompts and variables of templates.

use crate::common;
use crate::common::{Over, by_header, gate::gate, request, send, with};
use antiphon::{
    Error,
    server::{
        Caller, Completing, Ctx, Limits, NoArguments, Prompt, Resource, ResourceTemplate, Server,
        ServerBuilder, layers::Call, offers::Completions,
    },
    wire::content::{PromptArgument, ResourceContents},
};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// A library's error text that clients must not see.
const SECRET: &str = "postgres://admin:hunter2@10.0.0.1";

async fn languages(typed: Completing) -> Vec<&'static str> {
    let known = ["python", "perl", "pascal", "rust"].into_iter();
    known.filter(|name| name.starts_with(typed.value())).collect()
}

/// Returns everything that the completer received.
async fn echo_input(typed: Completing) -> Vec<String> {
    let known: Vec<String> = typed.arguments().map(|(name, value)| format!("{name}={value}")).collect();
    let user = typed.principal().map(|principal| format!("{principal:?}")).is_some();
    vec![
        format!("{}:{}", typed.argument(), typed.value()),
        known.join(","),
        typed.known("language").unwrap_or("?").to_owned(),
        format!("user: {user}"),
    ]
}

fn server(change: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Server {
    let names = [
        "language", "told", "plain", "none", "all", "more", "many", "hundred", "counted", "unknown",
        "told_off", "own", "foreign", "panic",
    ];
    let prompt = names
        .into_iter()
        .fold(Prompt::new("review", async |_: &Ctx, _: Map<String, Value>| String::new()), |prompt, name| {
            prompt.argument(PromptArgument::optional(name))
        });
    let prompt = prompt
        .complete("language", languages)
        .complete("told", echo_input)
        .complete("none", async |_: Completing| Vec::<String>::new())
        .complete("all", async |_: Completing| ["b".to_owned(), "a".to_owned()])
        .complete("more", async |_: Completing| Completions::from(["a"]).total(7))
        .complete("many", async |_: Completing| (0..250).map(|n| n.to_string()).collect::<Completions>())
        .complete("hundred", async |_: Completing| (0..100).map(|n| n.to_string()).collect::<Vec<_>>())
        .complete("counted", async |_: Completing| Completions::from(["a", "b"]).total(2))
        .complete("unknown", async |_: Completing| Completions::from(["a"]).and_more())
        .complete("told_off", async |_: Completing| Err::<Vec<String>, _>("no such database"))
        .complete("own", async |_: Completing| {
            Err::<Completions, _>(Error::user_facing("the index is being built"))
        })
        .complete("foreign", async |_: Completing| -> antiphon::Result<[String; 1]> {
            Err(std::io::Error::other(SECRET))?
        })
        .complete("panic", async |_: Completing| -> [String; 1] { panic!("{SECRET}") });
    let template = ResourceTemplate::new("db://{host}/{table}", "tables", async |_: &Ctx, _: Value| {
        ResourceContents::text("db://", "")
    });
    let builder = Server::builder("completion", "1")
        .prompt(prompt)
        .prompt(Prompt::new("bare", async |_: &Ctx, _: NoArguments| String::new()))
        .template(template.complete("host", echo_input))
        .resource(Resource::new("db://fixed/one", "one", async |_: &Ctx| {
            ResourceContents::text("db://", "")
        }));
    change(builder).build().expect("a server")
}

fn prompt(name: &str) -> Value {
    json!({"type": "ref/prompt", "name": name})
}

fn resource(uri: &str) -> Value {
    json!({"type": "ref/resource", "uri": uri})
}

fn params(reference: Value, argument: &str, value: &str) -> Value {
    json!({"ref": reference, "argument": {"name": argument, "value": value}})
}

/// The reply, the same over every transport.
async fn complete(server: &Server, params: Value) -> Value {
    let message = request(1, "completion/complete", params);
    let (status, over_http) = send(Over::Http, server, &message, None).await;
    let (_, over_stdio) = send(Over::Stdio, server, &message, None).await;
    assert_eq!(over_http, over_stdio);
    assert_eq!(status, if over_http["error"]["code"] == -32602 { 400 } else { 200 }, "{over_http}");
    over_http
}

#[tokio::test]
async fn suggestions_for_what_is_typed() {
    let server = server(|builder| builder);
    let numbers = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>();
    for (argument, value, completion) in [
        ("language", "p", json!({"values": ["python", "perl", "pascal"], "total": 3, "hasMore": false})),
        ("language", "pe", json!({"values": ["perl"], "total": 1, "hasMore": false})),
        ("language", "x", json!({"values": [], "total": 0, "hasMore": false})),
        ("none", "", json!({"values": [], "total": 0, "hasMore": false})),
        // Nobody completes it.
        ("plain", "p", json!({"values": [], "hasMore": false})),
        // Best first: the order is the completer's.
        ("all", "", json!({"values": ["b", "a"], "total": 2, "hasMore": false})),
        ("more", "", json!({"values": ["a"], "total": 7, "hasMore": true})),
        ("many", "", json!({"values": numbers(100), "total": 250, "hasMore": true})),
        ("hundred", "", json!({"values": numbers(100), "total": 100, "hasMore": false})),
        ("counted", "", json!({"values": ["a", "b"], "total": 2, "hasMore": false})),
        ("unknown", "", json!({"values": ["a"], "hasMore": true})),
    ] {
        let reply = complete(&server, params(prompt("review"), argument, value)).await;
        let stamp = json!({"io.modelcontextprotocol/serverInfo": {"name": "completion", "version": "1"}});
        assert_eq!(
            reply["result"],
            json!({"resultType": "complete", "completion": completion, "_meta": stamp}),
            "{argument} {value}: {reply}"
        );
    }
}

#[tokio::test]
async fn a_completer_gets_the_arguments_so_far() {
    let server = server(|builder| builder.bind_principal(by_header));
    let context = |arguments: Value| json!({"context": {"arguments": arguments}});
    for (reference, argument, more, told) in [
        (prompt("review"), "told", json!({}), ["told:x", "", "?"]),
        (prompt("review"), "told", json!({"context": null}), ["told:x", "", "?"]),
        (prompt("review"), "told", json!({"context": {}}), ["told:x", "", "?"]),
        (prompt("review"), "told", context(json!({"language": "rust"})), ["told:x", "language=rust", "rust"]),
        (prompt("review"), "told", context(json!({"b": "", "a": "1"})), ["told:x", "a=1,b=", "?"]),
        (
            json!({"type": "ref/prompt", "name": "review", "title": "T", "uri": "x"}),
            "told",
            json!({}),
            ["told:x", "", "?"],
        ),
        (resource("db://{host}/{table}"), "host", json!({}), ["host:x", "", "?"]),
        // > `uri` is a URI or URI template.
        (resource("db://a/b"), "host", context(json!({"table": "t"})), ["host:x", "table=t", "?"]),
    ] {
        for (user, is_known) in [(None, false), (Some("ann@client"), true)] {
            let params = with(&params(reference.clone(), argument, "x"), more.clone());
            let message = request(1, "completion/complete", params);
            let (_, reply) = send(Over::Http, &server, &message, user).await;
            let values = &reply["result"]["completion"]["values"];
            let expected = json!([told[0], told[1], told[2], format!("user: {is_known}")]);
            assert_eq!(values, &expected, "{message}: {reply}");
        }
    }
}

#[tokio::test]
async fn what_cannot_be_completed_is_refused() {
    let server = server(|builder| builder);
    let good = params(prompt("review"), "language", "p");
    for (params, words, data) in [
        (params(prompt("no"), "language", ""), "Unknown prompt: no", Value::Null),
        (params(prompt("Review"), "language", ""), "Unknown prompt: Review", Value::Null),
        (params(prompt("review"), "no", ""), "Unknown argument: no", Value::Null),
        (params(prompt("bare"), "language", ""), "Unknown argument: language", Value::Null),
        (params(resource("db://{host}"), "host", ""), "Resource not found", json!({"uri": "db://{host}"})),
        (params(resource("no://x"), "host", ""), "Resource not found", json!({"uri": "no://x"})),
        (params(resource("db://{host}/{table}"), "Host", ""), "Unknown argument: Host", Value::Null),
        (params(resource("db://a/b"), "no", ""), "Unknown argument: no", Value::Null),
        (with(&good, json!({"ref": null})), "params", Value::Null),
        (with(&good, json!({"ref": "review"})), "params", Value::Null),
        (with(&good, json!({"ref": {"name": "review"}})), "params", Value::Null),
        (with(&good, json!({"ref": {"type": "ref/tool", "name": "review"}})), "params", Value::Null),
        (with(&good, json!({"ref": {"type": "ref/prompt"}})), "params", Value::Null),
        (with(&good, json!({"ref": {"type": "ref/resource", "name": "review"}})), "params", Value::Null),
        (with(&good, json!({"argument": null})), "params", Value::Null),
        (with(&good, json!({"argument": {"name": "language"}})), "params", Value::Null),
        (with(&good, json!({"argument": {"name": "language", "value": 7}})), "params", Value::Null),
        (with(&good, json!({"argument": ["language", "p"]})), "params", Value::Null),
        (with(&good, json!({"context": {"arguments": {"a": 1}}})), "params", Value::Null),
        (with(&good, json!({"context": {"arguments": ["a"]}})), "params", Value::Null),
        (with(&good, json!({"context": "a"})), "params", Value::Null),
    ] {
        let reply = complete(&server, params.clone()).await;
        let error = &reply["error"];
        assert_eq!((&error["code"], &error["data"]), (&json!(-32602), &data), "{params}: {reply}");
        assert!(error["message"].as_str().unwrap().contains(words), "{params}: {reply}");
    }
    // A resource of its own has nothing to fill in, and is no mistake.
    let reply = complete(&server, params(resource("db://fixed/one"), "host", "")).await;
    assert_eq!(reply["result"]["completion"]["values"], json!([]), "{reply}");
    // Two parties could read two things.
    let twice = r#"{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"review"},"argument":{"name":"language","value":"p"},"context":{"arguments":{"a":"1","a":"2"}},"_meta":META}}"#;
    let twice = twice.replace("META", &common::meta().to_string());
    let reply = server.respond(twice.as_bytes(), &Default::default()).await.unwrap();
    let reply: Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!(reply["error"]["code"], -32602, "{reply}");
}

#[tokio::test]
async fn the_error_of_a_completer_is_shown_or_hidden() {
    let server = server(|builder| builder);
    for (argument, message) in [
        ("told_off", "no such database"),
        ("own", "the index is being built"),
        ("foreign", "Internal error"),
        ("panic", "Internal error"),
    ] {
        let reply = complete(&server, params(prompt("review"), argument, "")).await;
        assert_eq!(reply["error"], json!({"code": -32603, "message": message}), "{argument}");
    }
}

#[tokio::test]
async fn completion_for_an_unidentified_caller_is_refused() {
    let server = server(|builder| builder.bind_principal(by_header));
    for argument in ["told", "plain"] {
        let message = request(1, "completion/complete", params(prompt("review"), argument, ""));
        // A directory that is down; one client software without a person.
        for user in ["?", "client"] {
            let (_, reply) = send(Over::Http, &server, &message, Some(user)).await;
            assert_eq!(
                reply["error"],
                json!({"code": -32603, "message": "Internal error"}),
                "{argument} {user}"
            );
        }
    }
}

#[tokio::test]
async fn a_completer_takes_a_handlers_place() {
    let (hold, mut gate) = gate();
    let limits = Limits::default().handlers(1);
    let server = server(|builder| builder.tool(hold).limits(limits));
    let held = request(2, "tools/call", json!({"name": "hold", "arguments": {"name": "a"}}));
    let holding = server.clone();
    let held = tokio::spawn(async move { send(Over::Http, &holding, &held, None).await });
    gate.started("a").await;
    let reply = complete(&server, params(prompt("review"), "language", "p")).await;
    assert_eq!(reply["error"]["data"]["reason"], "busy", "{reply}");
    // Where nobody completes, nothing runs.
    let reply = complete(&server, params(prompt("review"), "plain", "p")).await;
    assert_eq!(reply["result"]["completion"]["values"], json!([]));
    gate.open("a");
    held.await.unwrap();
    let reply = complete(&server, params(prompt("review"), "language", "pe")).await;
    assert_eq!(reply["result"]["completion"]["values"], json!(["perl"]));
}

#[tokio::test(start_paused = true)]
async fn a_completer_has_as_long_as_a_handler() {
    let time = Duration::from_secs(7);
    let limits = Limits::default().handler_timeout(time);
    let slow = ResourceTemplate::new("slow://{x}", "slow", async |_: &Ctx, _: Value| {
        ResourceContents::text("slow://", "")
    });
    let slow =
        slow.complete("x", async |_: Completing| -> [&'static str; 0] { std::future::pending().await });
    let server = server(|builder| builder.template(slow).limits(limits));
    let begin = tokio::time::Instant::now();
    let message = request(1, "completion/complete", params(resource("slow://{x}"), "x", ""));
    let (_, reply) = send(Over::Http, &server, &message, None).await;
    assert_eq!(reply["error"], json!({"code": -32603, "message": "Internal error"}));
    assert!((time..time * 2).contains(&begin.elapsed()));
}

/// The capability follows what is there.
#[tokio::test]
async fn completers_come_and_go_with_their_prompts() {
    let server = Server::builder("changing", "1").list_changed(true).build().unwrap();
    let message = request(1, "completion/complete", params(prompt("p"), "a", ""));
    for _ in 0..2 {
        let (status, reply) = send(Over::Http, &server, &message, None).await;
        assert_eq!((status, &reply["error"]["code"]), (404, &json!(-32601)));
        let completing = Prompt::new("p", async |_: &Ctx, _: NoArguments| String::new())
            .argument(PromptArgument::optional("a"))
            .complete("a", async |_: Completing| ["1"]);
        server.add_prompt(completing).unwrap();
        let (_, found) = send(Over::Http, &server, &request(1, "server/discover", json!({})), None).await;
        assert_eq!(found["result"]["capabilities"]["completions"], json!({}));
        let (_, reply) = send(Over::Http, &server, &message, None).await;
        assert_eq!(reply["result"]["completion"]["values"], json!(["1"]));
        assert!(server.remove_prompt("p"));
        let (_, found) = send(Over::Http, &server, &request(1, "server/discover", json!({})), None).await;
        assert!(found["result"]["capabilities"].get("completions").is_none());
    }
}

/// A completer sees the headers, the `_meta` and the values of layers, as a handler does.
#[tokio::test]
async fn a_completer_sees_its_request() {
    #[derive(Clone)]
    struct Tenant(String);
    let shown = async |typed: Completing| {
        let request = typed.request();
        let header = request.headers().and_then(|headers| headers.get("x-user")?.to_str().ok());
        let note: Option<String> = request.meta_key("example.com/note").ok().flatten();
        let tenant = request.extension::<Tenant>().map(|tenant| tenant.0.clone());
        [format!("{} {header:?} {note:?} {tenant:?}", request.method())]
    };
    let prompt = Prompt::new("review", async |_: &Ctx, _: Map<String, Value>| String::new())
        .argument(PromptArgument::optional("language"))
        .complete("language", shown);
    let server = Server::builder("completes", "1")
        .prompt(prompt)
        .request_context(|call: &Call| Tenant(format!("of {}", call.method())))
        .build()
        .unwrap();
    let (mut headers, extensions) = (http::HeaderMap::new(), http::Extensions::new());
    headers.insert("x-user", "ada".parse().unwrap());
    let mut meta = common::meta();
    meta["example.com/note"] = json!("hello");
    let params = json!({
        "ref": {"type": "ref/prompt", "name": "review"},
        "argument": {"name": "language", "value": ""},
        "_meta": meta,
    });
    let message = request(1, "completion/complete", params).to_string();
    let reply = server.respond(message.as_bytes(), &Caller::http(&headers, &extensions)).await.unwrap();
    let reply: Value = serde_json::from_slice(&reply.body).unwrap();
    let expected = r#"completion/complete Some("ada") Some("hello") Some("of completion/complete")"#;
    assert_eq!(reply["result"]["completion"]["values"], json!([expected]), "{reply}");
}
