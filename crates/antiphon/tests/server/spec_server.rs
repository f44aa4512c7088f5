//! Requirements of the specification on every server, with any offers: page by page in docs/conformance/spec.md.

use crate::common;
use crate::common::{Over, answers, fixture, gate::soon, lines, meta, request, send, with};
use antiphon::{
    Error,
    server::{CacheHint, Completing, Ctx, NoArguments, Prompt, Resource, ResourceTemplate, Server, Tool},
    wire::{LogLevel, content::ResourceContents},
};
use serde_json::{Map, Value, json};
use std::time::Duration;

const BOTH: [Over; 2] = [Over::Http, Over::Stdio];

/// Offers everything there is.
fn whole() -> Server {
    let suggest = async |_: Completing| ["a", "b"];
    let read = async |_: &Ctx, _: Map<String, Value>| ResourceContents::text("done://1", "text");
    let prompt =
        Prompt::new("greet", async |_: &Ctx, _: common::Named| String::new()).complete("name", suggest);
    fixture(|builder| {
        builder
            .prompt(prompt)
            .template(ResourceTemplate::new("done://{id}", "done", read).complete("id", suggest))
            .tool(Tool::new("none", async |_: &Ctx, _: NoArguments| ()))
            .list_changed(true)
            .resource_updates(true)
            .logging(true)
            .page_size(1)
            .cache(CacheHint::public(Duration::from_secs(9)))
    })
    .server
}

/// One request of every kind, and whether its result may be cached.
fn every_request() -> Vec<(&'static str, Value, bool)> {
    let mut all = vec![
        ("server/discover", json!({}), true),
        ("tools/list", json!({}), true),
        ("prompts/list", json!({}), true),
        ("resources/list", json!({}), true),
        ("resources/templates/list", json!({}), true),
        ("resources/read", json!({"uri": "done://1"}), true),
        ("tools/call", json!({"name": "echo", "arguments": {"name": "x"}}), false),
        ("tools/call", json!({"name": "none"}), false),
        ("tools/call", json!({"name": "none", "arguments": {"x": 1}}), false),
        ("prompts/get", json!({"name": "greet", "arguments": {"name": "x"}}), false),
        ("subscriptions/listen", json!({"notifications": {}}), false),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "name", "value": ""}}),
            false,
        ),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/resource", "uri": "ask://many/{id}"}, "argument": {"name": "id", "value": ""}}),
            false,
        ),
    ];
    all.extend(common::askable().map(|(method, params)| (method, params, false)));
    all
}

/// The last message: the reply, after the notifications of a subscription that ends at once.
async fn reply_to(over: Over, server: &Server, message: &Value) -> Value {
    if message["method"] != "subscriptions/listen" {
        return send(over, server, message, None).await.1;
    }
    server.drain();
    if over == Over::Stdio {
        let mut peer = lines::serve(server.clone(), 1 << 16);
        peer.send(message.to_string()).await;
        peer.receive().await.unwrap();
        return peer.receive().await.unwrap();
    }
    let service = antiphon::serve::http::HttpService::new(server.clone(), Default::default());
    let got = common::post::post(&service, common::post::correct(message)).await;
    let text = String::from_utf8(got.body.to_vec()).unwrap();
    let last = text.trim_end().rsplit_once("\n\n").unwrap().1;
    serde_json::from_str(last.strip_prefix("data: ").unwrap()).unwrap()
}

#[tokio::test]
async fn every_result_says_its_type_and_who_answers_and_carries_hints_where_it_may_be_cached() {
    for over in BOTH {
        for (method, params, cacheable) in every_request() {
            let message = request(5, method, params);
            let reply = reply_to(over, &whole(), &message).await;
            let result = &reply["result"];
            assert_eq!((&reply["id"], &reply["jsonrpc"]), (&json!(5), &json!("2.0")), "{message}");
            let is_round = result["resultType"] == "input_required";
            assert!(is_round || result["resultType"] == "complete", "{message} {reply}");
            let info = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
            assert_eq!(*info, json!({"name": "fixture", "version": "1.0"}), "{message}");
            let hints = (result["ttlMs"].as_u64().is_some(), result["cacheScope"].is_string());
            assert_eq!(hints, (cacheable, cacheable), "{message} {reply}");
        }
    }
}

/// > Servers **MUST** apply the same `cacheScope` to all response pages for a given list request.
#[tokio::test]
async fn pages_of_a_list_that_changed_meanwhile_carry_the_same_hints() {
    let server = whole();
    for method in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
        let mut cursor = Value::Null;
        for turn in 0.. {
            let params = if turn == 0 { json!({}) } else { json!({ "cursor": cursor }) };
            let (_, reply) = send(Over::Http, &server, &request(1, method, params), None).await;
            let result = &reply["result"];
            assert_eq!(
                (&result["ttlMs"], &result["cacheScope"]),
                (&json!(9000), &json!("public")),
                "{reply}"
            );
            cursor = result.get("nextCursor").cloned().unwrap_or_default();
            if cursor.is_null() {
                break;
            }
            assert!(turn < 20, "{method} ends");
            if turn == 0 {
                let name = format!("late-{}", method.replace('/', "-"));
                server.add_tool(Tool::new(name.clone(), async |_: &Ctx, _: NoArguments| ())).unwrap();
                let prompt = async |_: &Ctx, _: NoArguments| String::new();
                server.add_prompt(Prompt::new(name.clone(), prompt)).unwrap();
                let uri = format!("late://{name}");
                let read = async |_: &Ctx| ResourceContents::text("late://x", "");
                server.add_resource(Resource::new(uri.clone(), name.clone(), read)).unwrap();
                let read = async |_: &Ctx, _: Map<String, Value>| ResourceContents::text("late://x", "");
                server.add_template(ResourceTemplate::new(format!("{uri}/{{id}}"), name, read)).unwrap();
            }
        }
    }
    // Discovery of a server that changed says the same as before.
    let (_, reply) = send(Over::Http, &server, &request(1, "server/discover", json!({})), None).await;
    assert_eq!(reply["result"]["ttlMs"], 9000);
    assert_eq!(reply["result"]["cacheScope"], "public");
}

/// > Progress tokens **MUST** be a string or integer value
#[tokio::test]
async fn a_progress_token_is_text_or_a_whole_number() {
    for (token, code) in [
        (json!("a"), Value::Null),
        (json!(""), Value::Null),
        (json!(0), Value::Null),
        (json!(-7), Value::Null),
        (json!(u64::MAX), Value::Null),
        (json!(1.5), json!(-32602)),
        (json!(true), json!(-32602)),
        (json!(["a"]), json!(-32602)),
        (json!({"a": "b"}), json!(-32602)),
    ] {
        let meta = with(&meta(), json!({ "progressToken": token }));
        for (method, params) in [("tools/list", json!({})), ("tools/call", json!({"name": "none"}))] {
            let message = request(1, method, with(&params, json!({ "_meta": meta })));
            for over in BOTH {
                let (status, reply) = send(over, &whole(), &message, None).await;
                assert_eq!(reply["error"].get("code").cloned().unwrap_or_default(), code, "{token}");
                let refused = over == Over::Http && !code.is_null();
                assert_eq!(status, if refused { 400 } else { 200 }, "{token}");
            }
        }
    }
}

/// > If the requested resource does not exist, servers **MUST** return a JSON-RPC error with code `-32602`
#[tokio::test]
async fn a_handler_says_that_its_resource_does_not_exist() {
    struct Mine;
    impl From<Mine> for Error {
        fn from(_: Mine) -> Self {
            Self::user_facing("mine")
        }
    }
    let template =
        ResourceTemplate::new("row://{id}", "row", async |_: &Ctx, at: Map<String, Value>| {
            match at["id"].as_str().unwrap() {
                "1" => Ok(ResourceContents::text("row://1", "one")),
                _ => Err(Error::resource_not_found()),
            }
        });
    let gone = async |_: &Ctx| Err::<ResourceContents, _>(Error::resource_not_found());
    let fails = async |_: &Ctx| Err::<ResourceContents, _>(Mine);
    let tool = async |_: &Ctx, _: NoArguments| Err::<String, _>(Error::resource_not_found());
    let prompt = async |_: &Ctx, _: NoArguments| Err::<String, _>(Error::resource_not_found());
    let server = Server::builder("rows", "1")
        .template(template)
        .resource(Resource::new("gone://1", "gone", gone))
        .resource(Resource::new("fails://1", "fails", fails))
        .tool(Tool::new("t", tool))
        .prompt(Prompt::new("p", prompt))
        .build()
        .unwrap();
    for over in BOTH {
        let ask =
            async |method: &str, params: Value| send(over, &server, &request(1, method, params), None).await;
        for uri in ["row://2", "gone://1", "nowhere://1", "row://a/b"] {
            let (status, reply) = ask("resources/read", json!({ "uri": uri })).await;
            assert_eq!(status, if over == Over::Http { 400 } else { 200 });
            let expected = json!({"code": -32602, "message": "Resource not found", "data": {"uri": uri}});
            assert_eq!(reply["error"], expected, "{uri}");
        }
        let (_, reply) = ask("resources/read", json!({"uri": "row://1"})).await;
        assert_eq!(reply["result"]["contents"][0]["text"], "one");
        let (_, reply) = ask("resources/read", json!({"uri": "fails://1"})).await;
        assert_eq!((&reply["error"]["code"], &reply["error"]["message"]), (&json!(-32603), &json!("mine")));
        // Elsewhere it is what the caller reads.
        let (_, reply) = ask("tools/call", json!({"name": "t"})).await;
        assert_eq!(reply["result"]["content"][0]["text"], "Resource not found", "{reply}");
        let (_, reply) = ask("prompts/get", json!({"name": "p"})).await;
        assert_eq!(reply["error"]["message"], "Resource not found", "{reply}");
    }
}

/// > On notifications delivered via a `subscriptions/listen` stream [...]. **MUST NOT** deliver it [a log message] on a
/// > `subscriptions/listen` stream
#[tokio::test]
async fn a_subscription_carries_neither_progress_nor_log_messages() {
    let chatty = Tool::new("chatty", async |ctx: &Ctx, _: NoArguments| {
        ctx.report_progress(1.0, None, None);
        ctx.log(LogLevel::Emergency, "loud");
        "said"
    });
    let server = fixture(|builder| builder.tool(chatty).list_changed(true).logging(true)).server;
    let mut peer = lines::serve(server.clone(), 1 << 16);
    let wants =
        with(&meta(), json!({"progressToken": "listen", "io.modelcontextprotocol/logLevel": "debug"}));
    let params = json!({"notifications": {"toolsListChanged": true}, "_meta": wants});
    peer.send(request(1, "subscriptions/listen", params).to_string()).await;
    assert_eq!(peer.receive().await.unwrap()["method"], "notifications/subscriptions/acknowledged");
    // A call that wants to hear of nothing, while a subscription beside it asked for everything.
    peer.send(request(2, "tools/call", json!({"name": "chatty"})).to_string()).await;
    assert_eq!(peer.receive().await.unwrap()["id"], 2);
    assert_eq!(peer.ends().await, Vec::<Value>::new());
}

/// > Progress notifications **MUST** stop after completion
#[tokio::test]
async fn nothing_follows_the_reply_of_a_request() {
    let telling = Tool::new("telling", async |ctx: &Ctx, _: NoArguments| {
        for step in 0..3_000 {
            ctx.report_progress(f64::from(step), None, None);
            ctx.log(LogLevel::Error, "x");
        }
        "said"
    });
    let server = fixture(|builder| builder.tool(telling).logging(true)).server;
    let mut peer = lines::serve(server, 1 << 12);
    for id in 1..=3 {
        let wants = with(&meta(), json!({"progressToken": id, "io.modelcontextprotocol/logLevel": "debug"}));
        let call = request(id, "tools/call", json!({"name": "telling", "_meta": wants}));
        peer.send(call.to_string()).await;
    }
    let mut done = Vec::new();
    while done.len() < 3 {
        let message = peer.receive().await.unwrap();
        if let Some(id) = message.get("id") {
            done.push(id.clone());
        } else if message["method"] == "notifications/progress" {
            assert!(!done.contains(&message["params"]["progressToken"]), "{message} after {done:?}");
        }
    }
    assert_eq!(peer.ends().await, Vec::<Value>::new());
}

/// > **MUST NOT** send any further messages for it.
#[tokio::test]
async fn a_cancelled_request_is_silent_in_every_phase() {
    let telling = Tool::new("telling", async |ctx: &Ctx, _: NoArguments| {
        ctx.report_progress(1.0, None, None);
        std::future::pending::<()>().await;
    });
    let server = fixture(|builder| builder.tool(telling).list_changed(true)).server;
    let mut peer = lines::serve(server, 1 << 16);
    let cancel =
        |id: Value| lines::cancelled(&json!({"requestId": id}).to_string().replacen('{', ",\"params\":{", 1));
    let call = |id: u32| {
        let wants = with(&meta(), json!({ "progressToken": id }));
        request(id, "tools/call", json!({"name": "telling", "_meta": wants})).to_string()
    };
    // Before anything of it was heard: both lines in one write.
    peer.send(format!("{}\n{}", call(1), cancel(json!(1)))).await;
    // Before it was sent, of another type, of nobody, and malformed: ignored.
    for what in [json!(2), json!("3"), json!(null), json!({"a": 1}), json!(1.5)] {
        peer.send(cancel(what)).await;
    }
    peer.send(lines::cancelled("")).await;
    peer.send(call(3)).await;
    let progress = peer.receive().await.unwrap();
    assert_eq!(progress["params"]["progressToken"], 3, "{progress}");
    // While it runs; twice; and its id is free again at once.
    peer.send(format!("{0}\n{0}\n{1}", cancel(json!(3)), lines::discover(3))).await;
    assert_eq!(peer.receive().await.unwrap()["result"]["resultType"], "complete");
    // After its reply.
    peer.send(cancel(json!(3))).await;
    peer.send(lines::discover(4)).await;
    assert_eq!(peer.receive().await.unwrap()["id"], 4);
    assert_eq!(peer.ends().await, Vec::<Value>::new());
}

/// > Servers **MUST NOT** rely on prior requests over the same connection to establish context
#[tokio::test]
async fn one_request_says_nothing_about_the_next() {
    let mut peer = lines::serve(whole(), 1 << 16);
    let call = |id: u32, meta: Value| {
        let (method, params) = common::askable()[0].clone();
        request(id, method, with(&params, json!({ "_meta": meta }))).to_string()
    };
    peer.send(call(1, meta())).await;
    assert_eq!(peer.receive().await.unwrap()["result"]["resultType"], "input_required");
    let mut bare = meta();
    bare["io.modelcontextprotocol/clientCapabilities"] = json!({});
    peer.send(call(2, bare)).await;
    assert_eq!(peer.receive_outcome().await, (json!(2), -32021));
    peer.send(call(3, json!({"progressToken": 3}))).await;
    assert_eq!(peer.receive_outcome().await, (json!(3), -32602));
    peer.send(call(4, meta())).await;
    assert_eq!(peer.receive().await.unwrap()["result"]["resultType"], "input_required");
}

/// Other members of `_meta`, of any name and form, are ignored.
#[tokio::test]
async fn unknown_members_of_meta_are_no_fault() {
    let more = json!({
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01", "tracestate": "a=b",
        "baggage": 7, "com.example/x": {"deep": [1]}, "dev.mcp/x": null, "": 1, "-bad-": 2,
        "io.modelcontextprotocol/subscriptionId": 9
    });
    for over in BOTH {
        for (method, params, _) in every_request() {
            let message = request(5, method, with(&params, json!({"_meta": with(&meta(), more.clone())})));
            let reply = reply_to(over, &whole(), &message).await;
            assert!(reply["result"].is_object(), "{message} {reply}");
        }
    }
}

/// > Invalid cursors **SHOULD** result in an error with code -32602
#[tokio::test]
async fn cursors_are_read_by_all_lists_alike() {
    let long = "0".repeat(100_000);
    for method in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
        for cursor in [json!(""), json!("x"), json!(7), json!({}), json!(long), json!("\u{0}"), json!([])] {
            let message = request(1, method, json!({ "cursor": cursor }));
            let (status, reply) = send(Over::Http, &whole(), &message, None).await;
            assert_eq!((status, &reply["error"]["code"]), (400, &json!(-32602)), "{method}");
            assert!(reply.to_string().len() < 200, "{method}");
        }
        let (_, reply) = send(Over::Http, &whole(), &request(1, method, json!({"cursor": null})), None).await;
        assert!(reply["result"].is_object(), "{reply}");
    }
}

/// The result of a read with answers carries no permission to cache it.
#[tokio::test]
async fn a_read_with_answers_is_complete_and_not_to_be_kept() {
    let read = async |ctx: &Ctx| {
        Ok::<_, Error>(match ctx.by_hand().form::<common::Region>(&common::region())? {
            None => antiphon::server::Reply::from(common::region()),
            Some(_) => antiphon::server::Reply::Complete(ResourceContents::text("q://1", "x")),
        })
    };
    let resource = Resource::new("q://1", "q", read).cache(CacheHint::public(Duration::from_secs(60)));
    let server = fixture(|builder| builder.resource(resource)).server;
    let first = json!({"uri": "q://1"});
    let (_, reply) = send(Over::Http, &server, &request(1, "resources/read", first.clone()), None).await;
    assert!(reply["result"].get("ttlMs").is_none() && reply["result"].get("cacheScope").is_none(), "{reply}");
    let more = json!({"inputResponses": answers(), "requestState": common::state_of(&reply)});
    let (_, reply) = send(Over::Http, &server, &request(2, "resources/read", with(&first, more)), None).await;
    let result = &reply["result"];
    assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(0), &json!("private")), "{reply}");
}

/// Every notification of a subscription repeats its id.
#[tokio::test]
async fn a_subscription_with_a_long_id_is_refused() {
    let server = fixture(|builder| builder.resource_updates(true)).server;
    for length in [2000, 1 << 20] {
        let mut message = request(1, "subscriptions/listen", json!({"notifications": {}}));
        message["id"] = json!("x".repeat(length));
        for over in BOTH {
            let (status, reply) = soon(send(over, &server, &message, None)).await;
            assert_eq!(status, if over == Over::Http { 400 } else { 200 });
            assert_eq!(reply["error"]["code"], -32602);
            assert_eq!(reply["error"]["data"], json!({"reason": "limit", "limit": "subscription"}));
        }
    }
}

/// > Custom URI schemes **MUST** be in accordance with RFC3986
#[tokio::test]
async fn what_is_no_uri_is_no_resource() {
    let read = async |_: &Ctx| ResourceContents::text("a://b", "");
    let read_one = async |_: &Ctx, _: Map<String, Value>| ResourceContents::text("a://b", "");
    for (uri, fits) in [
        ("a://b", true),
        ("mail:x@y", true),
        ("b", false),
        ("a://b c", false),
        ("a://\u{e9}", false),
        ("a:%4", false),
    ] {
        let built = Server::builder("u", "1").resource(Resource::new(uri, "b", read)).build();
        assert_eq!(built.is_ok(), fits, "{uri}: {built:?}");
        let template = ResourceTemplate::new(format!("{uri}/{{id}}"), "b", read_one);
        let built = Server::builder("u", "1").template(template).build();
        assert_eq!(built.is_ok(), fits, "{uri}: {built:?}");
        let server = Server::builder("u", "1").list_changed(true).build().unwrap();
        assert_eq!(server.add_resource(Resource::new(uri, "b", read)).is_ok(), fits, "{uri}");
    }
}

/// A transport that carries replies alone refuses a subscription: without an error it would be silent for ever.
#[tokio::test]
async fn a_subscription_is_refused_where_only_replies_are_sent() {
    let message = request(1, "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    let server = whole();
    let text = message.to_string();
    let reply = soon(server.respond(text.as_bytes(), &antiphon::server::Caller::default())).await.unwrap();
    let body: Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!((reply.http_status().as_u16(), &body["error"]["code"]), (404, &json!(-32601)), "{body}");
}
