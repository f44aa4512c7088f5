//! Layers of a client: around every request, in both eras.

use antiphon::{
    Result,
    client::{
        Client, ClientBuilder, ClientErrorKind, Mode,
        calls::RequestFault,
        events::SubscriptionEvent,
        layers::{Reply, Request, RequestService},
        transport::HttpTransport,
    },
    memory,
    serve::http::{HttpOptions, serve_http},
    server::{CacheHint, Ctx, NoArguments, Server, Tool},
    wire::{CallToolResult, ErrorCode, ErrorObject, ProtocolVersion, SubscriptionFilter},
};
use serde_json::json;
use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::net::TcpListener;
use tower::{Service as _, layer::layer_fn, service_fn};

type Seen = Arc<Mutex<Vec<String>>>;

fn modes() -> [Mode; 2] {
    [Mode::Pinned(ProtocolVersion::V2026_07_28), Mode::Legacy]
}

/// Adds a layer that notes each request, under its name, and what became of it.
fn noting(builder: ClientBuilder, name: &'static str, seen: &Seen) -> ClientBuilder {
    let seen = Arc::clone(seen);
    builder.layer(layer_fn(move |inner: RequestService| {
        let seen = Arc::clone(&seen);
        service_fn(move |request: Request| {
            let (mut inner, seen) = (inner.clone(), Arc::clone(&seen));
            let (method, target) = (request.method(), request.target().unwrap_or_default().to_owned());
            let line = format!("{name} {method} {target} {} {}", request.round(), request.leg());
            async move {
                let reply = inner.call(request).await;
                let outcome = match &reply {
                    Ok(reply) => format!("{:?}", reply.kind()),
                    Err(fault) => fault.to_string(),
                };
                seen.lock().unwrap().push(format!("{line}: {outcome}"));
                reply
            }
        })
    }))
}

/// Adds a layer that does this with each request, and passes it on unless there is a reply.
fn before(
    builder: ClientBuilder,
    act: impl Fn(&mut Request) -> Option<Result<Reply, io::Error>> + Clone + Send + Sync + 'static,
) -> ClientBuilder {
    builder.layer(layer_fn(move |inner: RequestService| {
        let act = act.clone();
        service_fn(move |mut request: Request| {
            let (mut inner, reply) = (inner.clone(), act(&mut request));
            async move {
                match reply {
                    Some(reply) => reply.map_err(Into::into),
                    None => {
                        inner.call(request).await.map_err(Box::<dyn std::error::Error + Send + Sync>::from)
                    }
                }
            }
        })
    }))
}

/// A server with a tool that asks once, then shows what it received.
fn server() -> Server {
    let shows = Tool::new("shows", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
        let sure = ctx.confirm("Really?").key("sure").await?;
        let request = ctx.request();
        let header = request.headers().and_then(|headers| headers.get("x-tenant")?.to_str().ok());
        let tenant: Option<String> = request.meta_key("example.com/tenant")?;
        Ok(format!("{sure} {header:?} {tenant:?}"))
    });
    let fresh = CacheHint::private(Duration::from_secs(60));
    Server::builder("layers", "1").tool(shows).resource_updates(true).cache(fresh).build().unwrap()
}

fn client(mode: &Mode) -> ClientBuilder {
    Client::builder("test", "1")
        .mode(mode.clone())
        .on_elicit_form(async |ask| Ok(ask.accept(json!({"value": true}))?))
}

#[tokio::test]
async fn a_layer_sees_each_request_and_its_reply() {
    let complete = "Complete { is_error: false }";
    for mode in modes() {
        let seen = Seen::default();
        let client = noting(noting(client(&mode), "outer", &seen), "inner", &seen);
        let client = memory::connect(server(), client);
        assert_eq!(client.layers().len(), 2);
        client.list_tools().await.unwrap();
        // From the cache.
        client.list_tools().await.unwrap();
        client.call_tool("shows", ()).await.unwrap();
        client.call_tool("none", ()).await.unwrap_err();
        let legs = match mode {
            // The session asks while the request runs.
            Mode::Legacy => vec![format!("tools/call shows 0 1: {complete}")],
            _ => {
                vec!["tools/call shows 0 1: Asked".to_owned(), format!("tools/call shows 1 2: {complete}")]
            }
        };
        let lists = match mode {
            // An earlier server says nothing of how long its lists are fresh.
            Mode::Legacy => 2,
            _ => 1,
        };
        let lists = std::iter::repeat_n(format!("tools/list  0 1: {complete}"), lists);
        let unknown =
            "tools/call none 0 1: the server answered with an error: Unknown tool: none (-32602)".to_owned();
        let expected: Vec<_> = lists.chain(legs).chain([unknown]).collect();
        let of = |name: &str| {
            let lines = seen.lock().unwrap();
            lines.iter().filter_map(|line| line.strip_prefix(name)).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(of("outer "), expected, "{mode:?}");
        assert_eq!(of("inner "), expected, "{mode:?}");
        // The first layer is the outermost one, and sees the reply last.
        assert!(seen.lock().unwrap()[0].starts_with("inner"), "{mode:?}");
    }
}

#[tokio::test]
async fn a_layer_adds_headers_and_metadata() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(serve_http(listener, server(), HttpOptions::default()).into_future());
    for mode in modes() {
        let tenant = before(client(&mode), |request| {
            request.set_header("X-Tenant", "other");
            request.set_header("x-tenant", "front");
            // Those of the protocol stay.
            request.set_header("mcp-method", "tools/list");
            request.meta_mut().0.insert("example.com/tenant".to_owned(), json!("front"));
            request.meta_mut().0.insert("io.modelcontextprotocol/protocolVersion".to_owned(), json!("1999"));
            None
        });
        let transport = HttpTransport::builder(url.clone()).build().unwrap();
        let result = tenant.connect(transport).call_tool("shows", ()).await.unwrap();
        assert_eq!(result.first_text(), Some(r#"true Some("front") Some("front")"#), "{mode:?}");
        let wrong = before(client(&mode), |request| {
            request.set_header("not a name", "front");
            None
        });
        let transport = HttpTransport::builder(url.clone()).build().unwrap();
        let error = wrong.connect(transport).call_tool("shows", ()).await.unwrap_err();
        assert!(error.to_string().contains("the name of a header cannot be sent"), "{error}");
    }
}

#[tokio::test]
async fn a_layer_refuses_answers_and_fails() {
    let runs = Arc::new(AtomicUsize::new(0));
    for mode in modes() {
        let counted = Arc::clone(&runs);
        let tool = Tool::new("counted", move |_: &Ctx, _: NoArguments| {
            counted.fetch_add(1, SeqCst);
            async { "from the server" }
        });
        let server = Server::builder("layers", "1").tool(tool).build().unwrap();
        let early = before(client(&mode), |request| {
            (request.method() == "tools/call")
                .then(|| Ok(Reply::new(&CallToolResult::text("from the layer")).unwrap()))
        });
        let result = memory::connect(server.clone(), early).call_tool("counted", ()).await.unwrap();
        assert_eq!(result.first_text(), Some("from the layer"), "{mode:?}");
        let failing = before(client(&mode), |request| {
            (request.method() == "tools/call").then(|| Err(io::Error::other("no budget is left")))
        });
        let error = memory::connect(server.clone(), failing).call_tool("counted", ()).await.unwrap_err();
        let ClientErrorKind::Request(RequestFault::Layer(cause)) = error.kind() else { panic!("{error:?}") };
        assert_eq!(cause.to_string(), "no budget is left", "{mode:?}");
        let refusing = client(&mode).layer(layer_fn(|_: RequestService| {
            service_fn(async |_: Request| {
                Err::<Reply, _>(RequestFault::Server(ErrorObject::new(ErrorCode(-32099), "not today")))
            })
        }));
        let error = memory::connect(server, refusing).call_tool("counted", ()).await.unwrap_err();
        assert_eq!(error.server_error().unwrap().code.0, -32099, "{mode:?}");
    }
    assert_eq!(runs.load(SeqCst), 0);
}

/// A layer that waits and sends a request again while the server is busy.
#[tokio::test(start_paused = true)]
async fn a_layer_sends_a_request_again() {
    for mode in modes() {
        let runs = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&runs);
        let busy = layer_fn(move |inner: antiphon::server::layers::CallService| {
            let counted = Arc::clone(&counted);
            service_fn(move |call: antiphon::server::layers::Call| {
                let (mut inner, is_busy) =
                    (inner.clone(), call.method() == "tools/call" && counted.fetch_add(1, SeqCst) < 2);
                async move {
                    match is_busy {
                        true => Err(antiphon::server::layers::Refused::busy(Duration::from_secs(7))),
                        false => inner.call(call).await,
                    }
                }
            })
        });
        let tool = Tool::new("t", async |_: &Ctx, _: NoArguments| "done");
        let server = Server::builder("layers", "1").tool(tool).layer(busy).build().unwrap();
        let patient = client(&mode).layer(layer_fn(|inner: RequestService| {
            service_fn(move |request: Request| {
                let mut inner = inner.clone();
                async move {
                    for _ in 0..5 {
                        match inner.call(request.clone()).await {
                            Err(RequestFault::Server(error)) if error.code == ErrorCode::INTERNAL_ERROR => {
                                tokio::time::sleep(Duration::from_secs(7)).await;
                            }
                            reply => return reply,
                        }
                    }
                    inner.call(request).await
                }
            })
        }));
        let begin = tokio::time::Instant::now();
        let result = memory::connect(server, patient).call_tool("t", ()).await.unwrap();
        assert_eq!((result.first_text(), runs.load(SeqCst)), (Some("done"), 3), "{mode:?}");
        assert_eq!(begin.elapsed().as_secs(), 14, "{mode:?}");
    }
}

/// A layer that gives up cancels the request at the server.
#[tokio::test(start_paused = true)]
async fn a_layer_that_gives_up_cancels_the_request() {
    for mode in modes() {
        let held = Arc::new(());
        let of_handlers = Arc::downgrade(&held);
        let tool = Tool::new("t", move |_: &Ctx, _: NoArguments| {
            let held = Arc::clone(&held);
            async move {
                std::future::pending::<()>().await;
                drop(held);
                "never"
            }
        });
        let server = Server::builder("layers", "1").tool(tool).build().unwrap();
        let impatient = client(&mode).layer(layer_fn(|inner: RequestService| {
            service_fn(move |request: Request| {
                let mut inner = inner.clone();
                async move {
                    let limit = Duration::from_secs(3);
                    match tokio::time::timeout(limit, inner.call(request)).await {
                        Ok(reply) => reply,
                        Err(_) => Err(RequestFault::Timeout(limit)),
                    }
                }
            })
        }));
        let client = memory::connect(server, impatient);
        let error = client.call_tool("t", ()).await.unwrap_err();
        assert!(matches!(error.kind(), ClientErrorKind::Request(RequestFault::Timeout(_))), "{error:?}");
        for _ in 0..100 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(of_handlers.strong_count(), 1, "{mode:?}: only the tool itself has it");
    }
}

#[tokio::test]
async fn a_subscription_passes_the_layers() {
    for mode in modes() {
        let seen = Seen::default();
        let server = server();
        let client = memory::connect(server.clone(), noting(client(&mode), "", &seen));
        let mut changes = client.listen(SubscriptionFilter::new().resource("a://1"));
        assert!(matches!(changes.next().await, Some(Ok(SubscriptionEvent::Acknowledged(_)))), "{mode:?}");
        assert_eq!(*seen.lock().unwrap(), [""; 0], "{mode:?}: it is open");
        server.resource_updated("a://1");
        let update = SubscriptionEvent::ResourceUpdated { uri: "a://1".to_owned() };
        assert_eq!(changes.next().await.unwrap().unwrap(), update, "{mode:?}");
        if mode != Mode::Legacy {
            server.drain();
            assert!(matches!(changes.next().await, Some(Ok(SubscriptionEvent::Closed))));
            let ended = " subscriptions/listen  0 1: Complete { is_error: false }";
            assert_eq!(*seen.lock().unwrap(), [ended]);
        }
        let refused = before(self::client(&mode), |request| {
            (request.method() == "subscriptions/listen").then(|| Err(io::Error::other("no")))
        });
        let client = memory::connect(self::server(), refused);
        let mut changes = client.listen(SubscriptionFilter::new().resource("a://1"));
        let error = changes.next().await.unwrap().unwrap_err();
        assert!(
            matches!(error.kind(), ClientErrorKind::Request(RequestFault::Layer(_))),
            "{mode:?} {error:?}"
        );
    }
}
