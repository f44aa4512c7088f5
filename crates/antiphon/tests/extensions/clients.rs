//! A client and a server with the same extension, in both eras and over each transport.

use crate::{
    common::gate::soon,
    search::{FAIL, Found, QUERY, SEARCH, VIEWED, Viewed, server},
};
use antiphon::{
    Result,
    client::{
        Client, ClientBuilder, ClientErrorKind, Era, Mode,
        calls::RequestFault,
        transport::{HttpTransport, memory},
    },
    serve::{
        http::{HttpOptions, serve_http},
        stdio::serve_streams,
    },
    server::{
        Server,
        extensions::{Extension, ExtensionCtx},
    },
    wire::{ErrorCode, ProtocolVersion},
};
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::{net::TcpListener, task::JoinHandle};

struct Serving(JoinHandle<()>);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn connect(over_http: bool, server: Server, client: ClientBuilder) -> (Client, Serving) {
    if over_http {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let serving =
            tokio::spawn(async move { drop(serve_http(listener, server, HttpOptions::default()).await) });
        return (client.connect(HttpTransport::new(url).unwrap()), Serving(serving));
    }
    let (transport, input, output) = memory::duplex();
    let serving = tokio::spawn(async move { drop(serve_streams(input, output, server).await) });
    (client.connect(transport), Serving(serving))
}

fn reader() -> ClientBuilder {
    Client::builder("reader", "1.0").extension(SEARCH, json!({"most": 2})).unwrap()
}

/// Each era over each transport.
fn ways() -> Vec<(bool, Mode, Era, &'static str)> {
    let pinned = |version| Mode::Pinned(ProtocolVersion::new(version));
    [false, true]
        .into_iter()
        .flat_map(|over_http| {
            [
                (over_http, Mode::Auto, Era::Modern, "2026-07-28"),
                (over_http, pinned("2026-07-28"), Era::Modern, "2026-07-28"),
                (over_http, Mode::Legacy, Era::Legacy, "2025-11-25"),
                (over_http, pinned("2025-03-26"), Era::Legacy, "2025-03-26"),
            ]
        })
        .collect()
}

async fn round_trip(client: &Client, viewed: &mut Viewed, version: &str) {
    let query = json!({"text": "sea", "filters": [{"year": 1905}], "_meta": {"com.example/own": 1}});
    let found: Found = client.request(QUERY, query).await.unwrap();
    assert_eq!(found.titles, ["sea 1905"]);
    assert_eq!(found.seen.settings, Some(json!({"most": 2})));
    assert_eq!((found.seen.client.as_deref(), found.seen.version.as_str()), (Some("reader"), version));
    client.notify(VIEWED, json!({"title": "The sea"})).await.unwrap();
    let (title, seen) = viewed.next().await;
    assert_eq!((title.as_str(), seen.settings), ("The sea", Some(json!({"most": 2}))));
    assert_eq!((seen.client.as_deref(), seen.version.as_str()), (Some("reader"), version));
}

#[tokio::test]
async fn a_request_and_a_notification_in_both_eras_over_each_transport() {
    for (over_http, mode, era, version) in ways() {
        let (server, mut viewed) = server(|builder| builder);
        let (client, _serving) = connect(over_http, server, reader().mode(mode.clone())).await;
        soon(round_trip(&client, &mut viewed, version)).await;
        assert_eq!(client.era(), Some(era), "{mode:?}");
        let settings: Option<Value> = soon(client.server_extension(SEARCH)).await.unwrap();
        assert_eq!(settings, Some(json!({"languages": ["en"]})));
        assert_eq!(soon(client.server_extension::<Value>("com.example/other")).await.unwrap(), None);
        assert!(soon(client.server_extension::<Vec<u8>>(SEARCH)).await.is_err());
        soon(client.request::<IgnoredAny>(FAIL, ())).await.unwrap();
    }
}

#[tokio::test]
async fn a_notification_may_be_the_first_message() {
    for (over_http, mode, _, _) in ways() {
        let (server, mut viewed) = server(|builder| builder);
        let (client, _serving) = connect(over_http, server, reader().mode(mode)).await;
        soon(client.notify(VIEWED, json!({"title": "first"}))).await.unwrap();
        assert_eq!(soon(viewed.next()).await.0, "first");
    }
}

#[tokio::test]
async fn the_errors_of_a_server_are_those_of_the_request() {
    for (over_http, mode, era, _) in ways() {
        let (server, _viewed) = server(|builder| builder);
        let (client, _serving) = connect(over_http, server, reader().mode(mode)).await;
        for (method, params, code, text) in [
            (QUERY, json!({"text": 1}), -32602, "params.text: invalid type: integer `1`, expected a string"),
            (FAIL, json!({"how": "own"}), -32603, "There is no index yet"),
            (FAIL, json!({"how": "code"}), -32602, "no such index"),
            ("com.example/search.other", json!({}), -32601, "Method not found"),
        ] {
            let error = soon(client.request::<Value>(method, params)).await.unwrap_err();
            let found = error.server_error().unwrap();
            assert_eq!((found.code, found.message.as_str(), error.method()), (ErrorCode(code), text, method));
        }
        // On pipes nothing says that a notification was not accepted.
        let refused = soon(client.notify(VIEWED, json!({"title": 1}))).await;
        let text = refused.err().map(|error| error.server_error().unwrap().message.clone());
        let expected = "params.title: invalid type: integer `1`, expected a string";
        assert_eq!(text.as_deref(), over_http.then_some(expected), "{era:?}");
    }
}

#[tokio::test]
async fn a_client_that_declares_nothing_is_refused() {
    for (over_http, mode, era, _) in ways() {
        let (server, viewed) = server(|builder| builder);
        let bare = Client::builder("bare", "1.0").extension("com.example/other", json!({})).unwrap();
        let (client, _serving) = connect(over_http, server, bare.mode(mode)).await;
        let error = soon(client.request::<Value>(QUERY, json!({"text": "a"}))).await.unwrap_err();
        let code = if era == Era::Modern { -32021 } else { -32600 };
        assert_eq!(error.server_error().unwrap().code, ErrorCode(code), "{error}");
        drop(soon(client.notify(VIEWED, json!({"title": "a"}))).await);
        assert!(viewed.is_empty());
    }
}

#[tokio::test]
async fn what_is_no_extension_is_not_sent() {
    let (server, _viewed) = server(|builder| builder);
    let (client, _serving) = connect(false, server, reader()).await;
    for (method, params, expected) in [
        ("tools/list", json!({}), "the method \"tools/list\" belongs to the core protocol"),
        ("search", json!({}), "the method \"search\" is no prefix and name"),
        (QUERY, json!([1]), "the request cannot be written as JSON"),
    ] {
        let error = soon(client.request::<Value>(method, params.clone())).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert!(soon(client.notify(method, params)).await.unwrap_err().to_string().contains(expected));
    }
    assert_eq!(client.era(), None);
    for (id, settings, expected) in [
        ("search", json!({}), "no reversed domain and name"),
        (SEARCH, json!({}), "declared twice"),
        ("com.example/b", json!(1), "must be an object"),
        ("io.modelcontextprotocol/tasks", json!({}), "`ClientBuilder::tasks` declares it"),
    ] {
        let error = reader().extension(id, settings).err().unwrap();
        assert!(error.to_string().contains(expected), "{error}");
    }
}

async fn count(ctx: ExtensionCtx, _: Value) -> Result<Value> {
    for number in 1..=3 {
        ctx.notify("com.example/count.reached", &json!({"number": number}))?;
    }
    // The params of this one do not fit, and the core has methods of its own.
    ctx.notify("com.example/count.reached", &json!({}))?;
    assert!(ctx.notify("notifications/message", &json!({})).is_err());
    Ok(json!({"resultType": "counted"}))
}

#[tokio::test]
async fn notifications_of_the_server_come_before_the_response() {
    #[derive(serde::Deserialize)]
    struct Reached {
        number: u32,
    }
    for (over_http, mode, _, _) in ways() {
        let counting = Extension::new("com.example/count").request("com.example/count.start", count);
        let server = Server::builder("s", "1").extension(counting).build().unwrap();
        let reached = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&reached);
        let counter = Client::builder("counter", "1.0")
            .extension("com.example/count", ())
            .unwrap()
            .on_notification("com.example/count.reached", move |Reached { number }| {
                seen.lock().unwrap().push(number)
            });
        let (client, _serving) = connect(over_http, server, counter.mode(mode.clone())).await;
        // Its own `resultType`, which an extension may have.
        let counted: Value = soon(client.request("com.example/count.start", json!({}))).await.unwrap();
        assert_eq!(counted["resultType"], "counted", "{mode:?}");
        assert_eq!(*reached.lock().unwrap(), [1, 2, 3], "{mode:?} {over_http}");
    }
}

#[tokio::test]
async fn a_result_type_is_unknown_to_a_client_without_extensions() {
    let open =
        Extension::new("com.example/count").requires_client(false).request("com.example/count.start", count);
    let server = Server::builder("s", "1").extension(open).build().unwrap();
    let (client, _serving) = connect(false, server, Client::builder("bare", "1.0")).await;
    let error = soon(client.request::<Value>("com.example/count.start", json!({}))).await.unwrap_err();
    assert!(matches!(error.kind(), ClientErrorKind::Request(RequestFault::Result { .. })), "{error}");
}
