//! Layers around every request, and the request that a handler sees.

use crate::common::{
    one_tool::{built, tool},
    tool_call::{ToolCall, accept, result_text},
    *,
};
use antiphon::{
    Result,
    client::{Client, Mode, events::SubscriptionEvent},
    memory,
    seal::Principal,
    serve::http::{HttpOptions, HttpService},
    server::{
        Bearer, Caller, Ctx, NoArguments, Server, ServerBuilder, Tool,
        layers::{AuditLog, Call, CallReply, CallService, RateLimit, Refused, ResultCache, ToolConcurrency},
    },
    wire::{
        CallToolResult, ErrorCode, SubscriptionFilter,
        forms::{FormField, FormSchema},
    },
};
use futures_util::{StreamExt as _, stream::FuturesUnordered};
use http::{Extensions, HeaderMap};
use serde_json::{Map, Value, json};
use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
    time::Duration,
};
use tower::{Service as _, layer::layer_fn, service_fn};

type Seen = Arc<Mutex<Vec<String>>>;

/// Adds a layer that notes each request, under its name, and what became of it.
fn noting(builder: ServerBuilder, name: &'static str, seen: &Seen) -> ServerBuilder {
    let seen = Arc::clone(seen);
    builder.layer(layer_fn(move |inner: CallService| {
        let seen = Arc::clone(&seen);
        service_fn(move |call: Call| {
            let (mut inner, seen) = (inner.clone(), Arc::clone(&seen));
            let target = call.target().unwrap_or_default().to_owned();
            let line =
                format!("{name} {} {target} {} {}", call.method(), call.leg(), call.call_id().is_some());
            async move {
                let reply = inner.call(call).await;
                let outcome = match &reply {
                    Ok(reply) => format!("{:?}", reply.outcome()),
                    Err(refused) => format!("refused {}", refused.error().code.0),
                };
                seen.lock().unwrap().push(format!("{line}: {outcome}"));
                reply
            }
        })
    }))
}

/// Adds a layer that does this with each call, and passes it on unless there is a reply.
fn before(
    builder: ServerBuilder,
    act: impl Fn(&mut Call) -> Option<Result<CallReply, Refused>> + Clone + Send + Sync + 'static,
) -> ServerBuilder {
    builder.layer(layer_fn(move |inner: CallService| {
        let act = act.clone();
        service_fn(move |mut call: Call| {
            let (mut inner, reply) = (inner.clone(), act(&mut call));
            async move {
                match reply {
                    Some(reply) => reply,
                    None => inner.call(call).await,
                }
            }
        })
    }))
}

async fn send(server: &Server, method: &str, params: Value, caller: &Caller<'_>) -> Value {
    let message = request(1, method, params).to_string();
    serde_json::from_slice(&server.respond(message.as_bytes(), caller).await.unwrap().body).unwrap()
}

#[tokio::test]
async fn a_layer_sees_each_request_and_what_became_of_it() {
    let seen = Seen::default();
    let server = fixture(|builder| noting(noting(builder, "outer", &seen), "inner", &seen)).server;
    assert_eq!(server.layers().len(), 2);
    let caller = Caller::default();
    let complete = "Complete { is_error: false }";
    for (method, params, expected) in [
        ("server/discover", json!({}), format!("server/discover  1 false: {complete}")),
        ("tools/list", json!({}), format!("tools/list  1 false: {complete}")),
        (
            "tools/call",
            json!({"name": "echo", "arguments": {"name": "a"}}),
            format!("tools/call echo 1 false: {complete}"),
        ),
        (
            "tools/call",
            json!({"name": "echo", "arguments": {}}),
            "tools/call echo 1 false: Complete { is_error: true }".to_owned(),
        ),
        ("tools/call", json!({"name": "none"}), "tools/call none 1 false: refused -32602".to_owned()),
        (
            "prompts/get",
            json!({"name": "ask", "arguments": {"name": "a"}}),
            "prompts/get ask 1 false: Asked".to_owned(),
        ),
        (
            "resources/read",
            json!({"uri": "ask://many/1"}),
            "resources/read ask://many/1 1 false: Asked".to_owned(),
        ),
        ("tasks/get", json!({"taskId": "t-1"}), "tasks/get t-1 1 false: refused -32601".to_owned()),
        ("nothing/known", json!({}), "nothing/known  1 false: refused -32601".to_owned()),
    ] {
        send(&server, method, params, &caller).await;
        let lines = std::mem::take(&mut *seen.lock().unwrap());
        // The first layer is the outermost one, and sees the outcome last.
        assert_eq!(lines, [format!("inner {expected}"), format!("outer {expected}")]);
    }
}

#[tokio::test]
async fn the_legs_of_a_call_have_its_id() {
    let seen = Seen::default();
    let asking = tool!(|ctx| { Ok(ctx.confirm("Really?").key("sure").await?.to_string()) });
    let server = built(asking, |builder| noting(builder, "", &seen));
    let mut call = ToolCall::new(json!({}));
    let reply = call.through(&server, &json!({"sure": accept(json!({"value": true}))})).await;
    assert!(reply["result"]["content"].is_array(), "{reply}");
    assert_eq!(
        *seen.lock().unwrap(),
        [" tools/call t 1 false: Asked", " tools/call t 2 true: Complete { is_error: false }"]
    );
    // A state of nobody names no call.
    call.state = Some("r1.AAAA".to_owned());
    call.leg(&server, Value::Null).await;
    assert_eq!(seen.lock().unwrap()[2], " tools/call t 1 false: refused -32602");
}

#[tokio::test]
async fn sessions_pass_through_the_same_layers() {
    let seen = Seen::default();
    let asking = tool!(|ctx| { Ok(ctx.confirm("Really?").key("sure").await?.to_string()) });
    let server = built(asking, |builder| {
        before(noting(builder, "", &seen), |call| {
            let early = call.target() == Some("t")
                && call.arguments().is_some_and(|text| text.get().contains("early"));
            early.then(|| Ok(CallReply::tool(CallToolResult::text("by the layer"))))
        })
    });
    let client = Client::builder("test", "1").mode(Mode::Legacy);
    let client = memory::connect(server, client);
    let early = client.call_tool("t", json!({"early": true})).await.unwrap();
    assert_eq!(early.first_text(), Some("by the layer"));
    client.list_tools().await.unwrap();
    let lines = seen.lock().unwrap().clone();
    assert_eq!(lines[0], " tools/call t 1 false: Complete { is_error: false }");
    assert!(lines[1].starts_with(" tools/list"), "{lines:?}");
}

#[tokio::test]
async fn a_layer_refuses_and_the_handler_does_not_run() {
    for (refused, expected) in [
        (
            (|| Refused::busy(Duration::from_millis(1500))) as fn() -> Refused,
            json!({"code": -32603, "reason": "busy", "retryAfterMs": 1500}),
        ),
        (|| Refused::new(ErrorCode(-32099), "not today"), json!({"code": -32099})),
        (|| Refused::internal(), json!({"code": -32603})),
    ] {
        let Fixture { server, runs: handler_runs, .. } =
            fixture(|builder| before(builder, move |_| Some(Err(refused()))));
        let params = json!({"name": "echo", "arguments": {"name": "a"}});
        let reply = send(&server, "tools/call", params, &Caller::default()).await;
        let error = &reply["error"];
        assert_eq!(error["code"], expected["code"], "{reply}");
        for member in ["reason", "retryAfterMs"] {
            assert_eq!(error["data"][member], expected[member], "{reply}");
        }
        assert_eq!(runs(&handler_runs), 0);
    }
}

#[tokio::test]
async fn a_layer_that_fails_or_panics_is_an_internal_error() {
    let failing = |builder: ServerBuilder| {
        builder.layer(layer_fn(|_: CallService| {
            service_fn(|call: Call| async move {
                assert_ne!(call.method(), "tools/list", "the layer panics");
                Err::<CallReply, _>(io::Error::other("/srv/secret"))
            })
        }))
    };
    let server = fixture(failing).server;
    for method in ["tools/list", "tools/call"] {
        let reply = send(&server, method, json!({"name": "echo"}), &Caller::default()).await;
        assert_eq!(reply["error"]["code"], -32603, "{reply}");
        assert!(!reply.to_string().contains("secret"), "{reply}");
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Tenant(String);

/// Shows what the handler sees of its request.
fn shown() -> Tool {
    Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
        let request = ctx.request();
        let header = request.headers().and_then(|headers| headers.get("x-region")?.to_str().ok());
        let note: Option<String> = request.meta_key("example.com/note")?;
        let tenant = request.extension::<Tenant>().map(|tenant| tenant.0.clone());
        let client = ctx.client_info().map(|client| client.name);
        Ok(format!("{} {header:?} {note:?} {tenant:?} {client:?}", request.method()))
    })
}

#[tokio::test]
async fn a_handler_sees_headers_meta_and_what_layers_added() {
    let (mut headers, mut extensions) = (HeaderMap::new(), Extensions::new());
    headers.insert("x-region", "eu".parse().unwrap());
    extensions.insert(Tenant("front".to_owned()));
    let http = Caller::http(&headers, &extensions);
    let mut meta = meta();
    meta["example.com/note"] = json!("hello");
    meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "c", "version": "1"});
    let params = json!({"name": "t", "_meta": meta});
    type Change = fn(ServerBuilder) -> ServerBuilder;
    for (change, caller, expected) in [
        (
            (|builder| builder) as Change,
            &http,
            r#"tools/call Some("eu") Some("hello") Some("front") Some("c")"#,
        ),
        (|builder| builder, &Caller::default(), r#"tools/call None Some("hello") None Some("c")"#),
        (
            |builder| builder.request_context(|call: &Call| Tenant(call.method().to_owned())),
            &Caller::default(),
            r#"tools/call None Some("hello") Some("tools/call") Some("c")"#,
        ),
        (
            |builder| {
                before(builder, |call| {
                    call.meta_mut().0.insert("example.com/note".to_owned(), json!("changed"));
                    let Tenant(front) = call.extensions().get().cloned().unwrap_or(Tenant("none".to_owned()));
                    call.extensions_mut().insert(Tenant(format!("{front} and layer")));
                    None
                })
            },
            &http,
            r#"tools/call Some("eu") Some("changed") Some("front and layer") Some("c")"#,
        ),
    ] {
        let server = built(shown(), change);
        let reply = send(&server, "tools/call", params.clone(), caller).await;
        assert_eq!(result_text(&reply), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_layer_that_gives_up_cancels_the_handler() {
    let ended = Arc::new(());
    let held = Arc::downgrade(&ended);
    let waiting = Tool::new("t", move |_: &Ctx, _: NoArguments| {
        let ended = Arc::clone(&ended);
        async move {
            std::future::pending::<()>().await;
            drop(ended);
            "never"
        }
    });
    let server = built(waiting, |builder| {
        builder.layer(layer_fn(|inner: CallService| {
            service_fn(move |call: Call| {
                let mut inner = inner.clone();
                async move {
                    match tokio::time::timeout(Duration::from_secs(3), inner.call(call)).await {
                        Ok(reply) => reply,
                        Err(_) => Ok(CallReply::tool(CallToolResult::error("too slow"))),
                    }
                }
            })
        }))
    });
    let reply = ToolCall::new(json!({})).leg(&server, Value::Null).await;
    assert_eq!(result_text(&reply), "too slow");
    assert_eq!(held.strong_count(), 1, "only the tool itself has it");
}

#[tokio::test(start_paused = true)]
async fn results_are_kept_for_the_same_caller_and_arguments() {
    let Fixture { server, runs: handler_runs, .. } = fixture(|builder| {
        let minute = Duration::from_secs(60);
        let cache = ResultCache::new(2, [("echo", minute), ("ask", minute)]);
        builder.bind_principal(by_header).list_changed(true).layer(cache)
    });
    let mut before = 0;
    for (user, tool, name, ran) in [
        ("anna@c", "echo", "a", true),
        ("anna@c", "echo", "a", false),
        ("anna@c", "echo", "b", true),
        ("bob@c", "echo", "a", true),
        // Two results are kept.
        ("anna@c", "echo", "a", true),
        ("anna@c", "echo", "a", false),
        // A question is not kept.
        ("anna@c", "ask", "a", true),
        ("anna@c", "ask", "a", true),
        ("anna@c", "echo", "a", false),
        ("", "", "", false),
        ("anna@c", "echo", "a", true),
    ] {
        if user.is_empty() {
            tokio::time::advance(Duration::from_secs(61)).await;
            continue;
        }
        let mut headers = HeaderMap::new();
        headers.insert("x-user", user.parse().unwrap());
        let extensions = Extensions::new();
        let params = json!({"name": tool, "arguments": {"name": name}});
        let reply = send(&server, "tools/call", params, &Caller::http(&headers, &extensions)).await;
        assert!(reply["result"].is_object(), "{reply}");
        assert_eq!(runs(&handler_runs) - before, usize::from(ran), "{user} {tool} {name}");
        before = runs(&handler_runs);
    }
    // Nor does a result outlive its tool.
    assert!(server.remove_tool("echo"));
    let mut headers = HeaderMap::new();
    headers.insert("x-user", "anna@c".parse().unwrap());
    let params = json!({"name": "echo", "arguments": {"name": "a"}});
    let reply = send(&server, "tools/call", params, &Caller::http(&headers, &Extensions::new())).await;
    assert_eq!(reply["error"]["code"], -32602, "{reply}");
}

#[tokio::test]
async fn a_kept_result_is_not_for_a_token_with_fewer_scopes() {
    let tool = Tool::new("t", async |_: &Ctx, _: NoArguments| "secret").scopes(["read"]);
    let cache = ResultCache::new(9, [("t", Duration::from_secs(60))]);
    let server = built(tool, |builder| builder.layer(cache));
    for (scopes, is_served) in [
        (&["read"][..], true),
        (&[], false),
        (&["write"], false),
        (&["write", "read"], true),
        (&["read"], true),
    ] {
        let (person, mut extensions) = (Principal::user("anna"), Extensions::new());
        extensions.insert(person.clone());
        extensions.insert(Bearer::new(person).with_scopes(scopes.iter().copied()));
        let reply = send(&server, "tools/call", json!({"name": "t"}), &Caller::remote(&extensions)).await;
        assert_eq!(reply["result"].is_object(), is_served, "{scopes:?}: {reply}");
    }
}

/// The rule of an offer is asked before a layer answers for it, also with a value that an outer layer has added.
#[tokio::test]
async fn a_kept_result_is_not_for_those_who_do_not_see_the_tool() {
    #[derive(Clone)]
    struct Open(bool);
    let is_open = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let tool = Tool::new("t", async |_: &Ctx, _: NoArguments| "secret")
        .visible_if(|caller| caller.extension::<Open>().is_some_and(|open| open.0));
    let cache = ResultCache::new(9, [("t", Duration::from_secs(60))]);
    let read = Arc::clone(&is_open);
    let server = built(tool, |builder| {
        builder
            .request_context(move |_: &Call| Open(read.load(std::sync::atomic::Ordering::SeqCst)))
            .layer(ToolConcurrency::new([("t", 0)]))
            .layer(cache)
    });
    let free = {
        let tool = Tool::new("t", async |_: &Ctx, _: NoArguments| "secret");
        let read = Arc::clone(&is_open);
        let rule =
            move |_: &antiphon::server::offers::CallerInfo| read.load(std::sync::atomic::Ordering::SeqCst);
        let cache = ResultCache::new(9, [("t", Duration::from_secs(60))]);
        built(tool.visible_if(rule), |builder| builder.layer(cache))
    };
    for (sees, of_free, of_full) in [
        (true, json!(null), json!("busy")),
        (false, json!("Unknown tool: t"), json!("Unknown tool: t")),
        (true, json!(null), json!("busy")),
    ] {
        is_open.store(sees, std::sync::atomic::Ordering::SeqCst);
        let reply = send(&free, "tools/call", json!({"name": "t"}), &Caller::default()).await;
        assert_eq!(reply["error"]["message"], of_free, "{reply}");
        let reply = send(&server, "tools/call", json!({"name": "t"}), &Caller::default()).await;
        let error = &reply["error"];
        let told = if sees { &error["data"]["reason"] } else { &error["message"] };
        assert_eq!(*told, of_full, "{reply}");
    }
}

#[tokio::test]
async fn invented_names_do_not_evade_a_limit_for_ever() {
    let quota = governor::Quota::per_hour(std::num::NonZeroU32::MIN);
    let server = built(shown(), |builder| builder.layer(RateLimit::per_caller_and_tool(quota)));
    let mut busy = 0;
    for number in 0..10_010 {
        let reply =
            send(&server, "tools/call", json!({"name": format!("n{number}")}), &Caller::default()).await;
        busy += usize::from(reply["error"]["data"]["reason"] == "busy");
    }
    // The names beyond the bound share one quota.
    assert!((5..10).contains(&busy), "{busy}");
}

#[tokio::test]
async fn one_call_more_than_a_tool_takes_is_busy() {
    let (begun, wait) = (Arc::new(tokio::sync::Notify::new()), Arc::new(tokio::sync::Notify::new()));
    let tool = {
        let (begun, wait) = (Arc::clone(&begun), Arc::clone(&wait));
        Tool::new("t", move |_: &Ctx, _: NoArguments| {
            let (begun, wait) = (Arc::clone(&begun), Arc::clone(&wait));
            async move {
                begun.notify_one();
                wait.notified().await;
                "done"
            }
        })
    };
    let server = built(tool, |builder| builder.layer(ToolConcurrency::new([("t", 1)])));
    let (mut first_call, mut second_call) = (ToolCall::new(json!({})), ToolCall::new(json!({})));
    let first = first_call.leg(&server, Value::Null);
    let second = async {
        begun.notified().await;
        let reply = second_call.leg(&server, Value::Null).await;
        wait.notify_one();
        reply
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!(result_text(&first), "done");
    assert_eq!(second["error"]["data"]["reason"], "busy", "{second}");
    wait.notify_one();
    assert_eq!(result_text(&ToolCall::new(json!({})).leg(&server, Value::Null).await), "done");
}

#[tokio::test]
async fn over_http_a_busy_reply_says_when_and_the_handler_sees_the_headers() {
    let quota = governor::Quota::per_hour(std::num::NonZeroU32::MIN);
    let server =
        built(shown(), |builder| builder.bind_principal(by_header).layer(RateLimit::per_caller(quota)));
    let mut service = HttpService::new(server, HttpOptions::default());
    for (user, limited) in [("anna@c", false), ("anna@c", true), ("bob@c", false)] {
        let body = request(1, "tools/call", json!({"name": "t"})).to_string();
        let message = http::Request::post("/")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", "t")
            .header("x-region", "eu")
            .header("x-user", user)
            .body(http_body_util::Full::<bytes::Bytes>::from(body))
            .unwrap();
        let response = service.call(message).await.unwrap();
        let retry_after = response.headers().get("retry-after").cloned();
        let body = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
        let reply: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(retry_after.is_some(), limited, "{user}: {reply}");
        if limited {
            assert_eq!(reply["error"]["data"]["reason"], "busy", "{reply}");
        } else {
            assert_eq!(result_text(&reply), r#"tools/call Some("eu") None None None"#);
        }
    }
}

/// An output that a test reads.
#[derive(Clone, Default)]
struct Output(Arc<Mutex<Vec<u8>>>, bool);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.1 {
            return Err(io::Error::other("the disk is full"));
        }
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn the_audit_log_is_a_chain_without_contents() {
    let asking = Tool::new("t", async |ctx: &Ctx, args: Map<String, Value>| -> Result<String> {
        let name: String =
            ctx.elicit_with("Name?", FormSchema::new(vec![FormField::text("value")])).key("name").await?;
        Ok(format!("{name} {}", args.len()))
    });
    let output = Output::default();
    let audit = AuditLog::new(output.clone());
    let server = built(asking, |builder| builder.layer(audit.clone()));
    let mut call = ToolCall::new(json!({"password": "s3cret-argument"}));
    call.through(&server, &json!({"name": accept(json!({"value": "s3cret-answer"}))})).await;
    ToolCall::named("none").leg(&server, Value::Null).await;
    audit.flush().await.unwrap();
    let text = String::from_utf8(output.0.lock().unwrap().clone()).unwrap();
    assert!(!text.contains("s3cret"), "{text}");
    let mut previous = String::new();
    let mut seen = Vec::new();
    for line in text.lines() {
        let mut entry: Value = serde_json::from_str(line).unwrap();
        assert_eq!(entry["previous"], json!(previous), "{line}");
        let hash = entry.as_object_mut().unwrap().remove("hash").unwrap();
        previous = hash.as_str().unwrap().to_owned();
        let digest = ring::digest::digest(&ring::digest::SHA256, entry.to_string().as_bytes());
        let hex: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(previous, hex, "{line}");
        let answers = entry["answers"].as_array().unwrap();
        let answer = answers.first().map(|answer| format!(" {} {}", answer["key"], answer["action"]));
        let outcome = entry["outcome"].as_str().unwrap_or_default();
        let answer = answer.unwrap_or_default();
        seen.push(format!("{} {} {} {outcome}{answer}", entry["event"], entry["target"], entry["leg"]));
    }
    assert_eq!(
        seen,
        [
            r#""begins" "t" 1 "#,
            r#""ends" "t" 1 asked"#,
            r#""begins" "t" 2  "name" "accept""#,
            r#""ends" "t" 2 complete "name" "accept""#,
            r#""begins" "none" 1 "#,
            r#""ends" "none" 1 refused"#,
        ]
    );
}

/// An output that writes nothing before it may.
struct Blocked(std::sync::mpsc::Receiver<()>, Output);

impl Write for Blocked {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Once the sender is dropped, nothing is held.
        let _ = self.0.recv();
        self.1.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A slow output holds no thread of the runtime, and the lines that wait for it are bounded.
#[tokio::test]
async fn a_slow_audit_log_holds_calls_and_refuses_those_beyond_its_bound() {
    let (hold, held) = std::sync::mpsc::channel();
    let output = Output::default();
    let audit = AuditLog::new(Blocked(held, output.clone()));
    let Fixture { server, runs: handler_runs, .. } = fixture(|builder| builder.layer(audit.clone()));
    let params = json!({"name": "echo", "arguments": {"name": "a"}});
    let caller = Caller::default();
    let call = || send(&server, "tools/call", params.clone(), &caller);
    let mut calls: FuturesUnordered<_> = (0..1030).map(|_| call()).collect();
    let first = calls.next().await.unwrap();
    assert_eq!(
        (first["error"]["data"]["reason"].as_str(), runs(&handler_runs)),
        (Some("busy"), 0),
        "{first}"
    );
    drop(hold);
    let (mut busy, mut served) = (1, 0);
    while let Some(reply) = calls.next().await {
        busy += usize::from(reply["error"]["data"]["reason"] == "busy");
        served += usize::from(reply["result"].is_object());
    }
    // The calls that were not begun before may have found a place.
    assert!(busy + served == 1030 && (1..=6).contains(&busy), "{busy} {served}");
    audit.flush().await.unwrap();
    let lines = String::from_utf8(output.0.lock().unwrap().clone()).unwrap().lines().count();
    assert_eq!((lines, runs(&handler_runs)), (2 * served, served));
}

/// An output that is full in the middle of its second line, once.
#[derive(Clone, Default)]
struct Torn(Arc<Mutex<(Vec<u8>, usize)>>);

impl Write for Torn {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (written, writes) = &mut *self.0.lock().unwrap();
        *writes += 1;
        match *writes {
            3 => {
                written.extend(&bytes[..20]);
                Ok(20)
            }
            4 => Err(io::ErrorKind::StorageFull.into()),
            _ => {
                written.extend(bytes);
                Ok(bytes.len())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The rest of a torn line stands alone, and the chain goes on with the last whole one.
#[tokio::test]
async fn a_line_of_the_audit_log_that_fails_spoils_no_other_one() {
    let output = Torn::default();
    let server = fixture(|builder| builder.layer(AuditLog::new(output.clone()))).server;
    let params = json!({"name": "echo", "arguments": {"name": "a"}});
    let mut codes = Vec::new();
    for _ in 0..3 {
        let reply = send(&server, "tools/call", params.clone(), &Caller::default()).await;
        codes.push(reply["error"]["code"].as_i64());
    }
    assert_eq!(codes, [None, Some(-32603), None]);
    let text = String::from_utf8(output.0.lock().unwrap().0.clone()).unwrap();
    let lines: Vec<Option<Value>> = text.lines().map(|line| serde_json::from_str(line).ok()).collect();
    assert!(lines.len() == 5 && lines[2].is_none(), "{text}");
    let whole: Vec<Value> = lines.into_iter().flatten().collect();
    for (before, next) in whole.iter().zip(&whole[1..]) {
        assert_eq!(
            (&next["previous"], next["number"].as_u64()),
            (&before["hash"], before["number"].as_u64().map(|number| number + 1))
        );
    }
}

#[tokio::test]
async fn a_call_that_cannot_be_audited_does_not_run() {
    let full = Output(Arc::default(), true);
    let Fixture { server, runs: handler_runs, .. } = fixture(|builder| builder.layer(AuditLog::new(full)));
    let params = json!({"name": "echo", "arguments": {"name": "a"}});
    let reply = send(&server, "tools/call", params, &Caller::default()).await;
    assert_eq!((reply["error"]["code"].as_i64(), runs(&handler_runs)), (Some(-32603), 0), "{reply}");
}

/// Lists, subscriptions and the changes on them, in both eras: a layer sees each, and keeps one resource from a client.
#[tokio::test]
async fn subscriptions_and_notifications_pass_the_layers() {
    let hidden = "notifications/resources/updated b://2 1 false: refused -32603";
    let shown = [
        "notifications/resources/updated a://1 1 false: Notified",
        "notifications/tools/list_changed  1 false: Notified",
    ];
    for (mode, opened) in [
        (Mode::Auto, &["subscriptions/listen  1 false: Subscribed"][..]),
        (
            Mode::Legacy,
            &[
                "resources/subscribe a://1 1 false: Complete { is_error: false }",
                "resources/subscribe b://2 1 false: Complete { is_error: false }",
            ],
        ),
    ] {
        let seen = Seen::default();
        let server = fixture(|builder| {
            let builder = builder.list_changed(true).resource_updates(true);
            before(noting(builder, "", &seen), |call| {
                let is_hidden =
                    call.method() == "notifications/resources/updated" && call.target() == Some("b://2");
                is_hidden.then(|| Err(Refused::internal()))
            })
        })
        .server;
        let client = memory::connect(server.clone(), Client::builder("test", "1").mode(mode.clone()));
        let filter = SubscriptionFilter::new().tools().resource("a://1").resource("b://2");
        let mut changes = client.listen(filter.clone());
        let first = changes.next().await.unwrap().unwrap();
        assert_eq!(first, SubscriptionEvent::Acknowledged(filter), "{mode:?}");
        server.resource_updated("b://2");
        server.resource_updated("a://1");
        let next = changes.next().await.unwrap().unwrap();
        assert_eq!(next, SubscriptionEvent::ResourceUpdated { uri: "a://1".to_owned() }, "{mode:?}");
        server.add_tool(Tool::new("new", async |_: &Ctx, _: NoArguments| "")).unwrap();
        assert_eq!(changes.next().await.unwrap().unwrap(), SubscriptionEvent::ToolsListChanged, "{mode:?}");
        let lines = seen.lock().unwrap().clone();
        for line in opened.iter().chain(&shown).chain([&hidden]) {
            assert!(lines.contains(&format!(" {line}")), "{mode:?}: {line}\n{lines:#?}");
        }
    }
}

/// A limit of reads, and a cache of them, touch neither the subscriptions to a resource nor its notifications.
#[tokio::test]
async fn limits_and_caches_are_for_what_an_offer_answers() {
    for mode in [Mode::Auto, Mode::Legacy] {
        let server = fixture(|builder| {
            let cache = ResultCache::new(9, [("a://1", Duration::from_secs(3600))]);
            builder.resource_updates(true).layer(cache).layer(ToolConcurrency::new([("a://1", 0)]))
        })
        .server;
        // Each connection is one of the same anonymous caller. It subscribes again while it unsubscribes.
        for _ in 0..3 {
            let client = memory::connect(server.clone(), Client::builder("test", "1").mode(mode.clone()));
            for _ in 0..2 {
                let mut changes = client.listen(SubscriptionFilter::new().resource("a://1"));
                changes.next().await.unwrap().unwrap();
                server.resource_updated("a://1");
                let next = changes.next().await.unwrap().unwrap();
                assert_eq!(next, SubscriptionEvent::ResourceUpdated { uri: "a://1".to_owned() }, "{mode:?}");
            }
            let refused = client.read_resource("a://1").await.unwrap_err();
            assert_eq!(refused.server_error().unwrap().data.as_ref().unwrap()["reason"], "busy", "{mode:?}");
        }
    }
}

#[tokio::test]
async fn a_refused_subscription_is_not_opened() {
    for (mode, refused) in [(Mode::Auto, "subscriptions/listen"), (Mode::Legacy, "resources/subscribe")] {
        let server = fixture(|builder| {
            before(builder.resource_updates(true), move |call| {
                (call.method() == refused)
                    .then(|| Err(Refused::new(ErrorCode(-32099), "no subscriptions today")))
            })
        })
        .server;
        let client = memory::connect(server.clone(), Client::builder("test", "1").mode(mode.clone()));
        let mut changes = client.listen(SubscriptionFilter::new().resource("a://1"));
        let refused = changes.next().await.unwrap().unwrap_err();
        match mode {
            // A session has no resource then, so nothing is left to listen to.
            Mode::Legacy => assert!(refused.is_nothing_acknowledged(), "{refused}"),
            _ => assert_eq!(refused.server_error().unwrap().code.0, -32099, "{refused}"),
        }
    }
}

/// A layer that panics at a notification keeps it back; the next one is sent.
#[tokio::test]
async fn a_panic_at_a_notification_is_not_the_end_of_the_subscription() {
    let server = fixture(|builder| {
        before(builder.resource_updates(true), |call| {
            assert_ne!(call.target(), Some("a://1"), "the layer panics");
            None
        })
    })
    .server;
    let client = memory::connect(server.clone(), Client::builder("test", "1"));
    let mut changes = client.listen(SubscriptionFilter::new().resource("a://1").resource("b://2"));
    changes.next().await.unwrap().unwrap();
    server.resource_updated("a://1");
    tokio::task::yield_now().await;
    server.resource_updated("b://2");
    let next = changes.next().await.unwrap().unwrap();
    assert_eq!(next, SubscriptionEvent::ResourceUpdated { uri: "b://2".to_owned() });
}
