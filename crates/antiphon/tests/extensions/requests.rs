//! Requests of extensions, as messages: the gate, params, results, errors, layers, in both eras and over each transport.

use crate::{
    common::{Over, meta, request, send, session::InSession, tool_call::result_text},
    search::{FAIL, Found, QUERY, SEARCH, Seen, Tenant, VIEWED, server},
};
use antiphon::{
    Result,
    server::{
        Caller, Ctx, NoArguments, Server, Tool,
        extensions::{Extension, ExtensionCtx},
        layers::{Call, CallService, Refused},
    },
    wire::ErrorCode,
};
use serde_json::{Value, json};
use tower::{Service as _, layer::layer_fn, service_fn};

/// A client's metadata, with these extensions.
pub(crate) fn declaring(extensions: Value) -> Value {
    let mut meta = meta();
    meta["io.modelcontextprotocol/clientCapabilities"]["extensions"] = extensions;
    meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "reader", "version": "1"});
    meta
}

fn seen(settings: Value) -> Seen {
    Seen {
        settings: Some(settings),
        ui: None,
        subject: None,
        client: Some("reader".to_owned()),
        version: "2026-07-28".to_owned(),
        method: QUERY.to_owned(),
        tenant: None,
        has_headers: false,
    }
}

#[tokio::test]
async fn a_handler_gets_its_params_the_settings_and_the_caller() {
    let (server, _viewed) = server(|builder| {
        builder.request_context(|call: &Call| {
            assert_eq!((call.method(), call.target()), (QUERY, None));
            Tenant("one".to_owned())
        })
    });
    let declared = json!({SEARCH: {"most": 2}, "io.modelcontextprotocol/ui": {"mimeTypes": []}});
    for over in [Over::Http, Over::Stdio] {
        let params = json!({"text": "sea", "filters": [{"year": 1}, {"year": 2.0}], "_meta": declaring(declared.clone())});
        let (status, reply) = send(over, &server, &request(1, QUERY, params), Some("ada")).await;
        let found: Found =
            serde_json::from_value(reply["result"].clone()).unwrap_or_else(|_| panic!("{reply}"));
        let is_http = over == Over::Http;
        let expected = Seen {
            ui: Some(json!({"mimeTypes": []})),
            subject: is_http.then(|| "ada".to_owned()),
            tenant: Some("one".to_owned()),
            has_headers: is_http,
            ..seen(json!({"most": 2}))
        };
        assert_eq!(
            (status, found.titles, found.seen),
            (200, vec!["sea 1".to_owned(), "sea 2".to_owned()], expected)
        );
        assert_eq!(reply["result"]["resultType"], "complete");
        let name = &reply["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"];
        assert_eq!(name, "library");
    }
}

#[tokio::test]
async fn a_session_has_the_extensions_of_its_handshake() {
    let (server, _viewed) = server(|builder| builder);
    let capabilities = json!({"extensions": {SEARCH: {"most": 1}}});
    let mut session = InSession::open(&server, "2025-11-25", capabilities).await;
    // The metadata of a request declares nothing in a session.
    let mut meta = declaring(json!({SEARCH: {"most": 9}}));
    meta.as_object_mut().unwrap().remove("io.modelcontextprotocol/protocolVersion");
    let params = json!({"text": "sea", "_meta": meta});
    let reply = session.asks(1, QUERY, params).await;
    let found: Found = serde_json::from_value(reply["result"].clone()).unwrap_or_else(|_| panic!("{reply}"));
    let expected =
        Seen { client: Some("old".to_owned()), version: "2025-11-25".to_owned(), ..seen(json!({"most": 1})) };
    assert_eq!(found.seen, expected);
    assert_eq!((&reply["result"]["resultType"], &reply["result"]["_meta"]), (&Value::Null, &Value::Null));
}

#[tokio::test]
async fn only_a_client_that_declares_the_extension_passes_the_gate() {
    let (closed, _viewed) = server(|builder| builder);
    let who = |ctx: ExtensionCtx, _: Value| async move {
        Ok::<_, antiphon::Error>(json!({"settings": ctx.settings::<Value>()?}))
    };
    let open = Extension::new("com.example/open").requires_client(false).request("com.example/open.who", who);
    let (open, _viewed) = (Server::builder("s", "1").extension(open).build().unwrap(), ());
    let ask = async |over, server: &Server, method: &str, extensions: Value| {
        let params = json!({"text": "a", "_meta": declaring(extensions)});
        send(over, server, &request(1, method, params), None).await
    };
    for over in [Over::Http, Over::Stdio] {
        for extensions in
            [json!({}), json!({"com.example/other": {}}), json!({SEARCH: true}), json!([SEARCH]), json!(null)]
        {
            let (status, reply) = ask(over, &closed, QUERY, extensions.clone()).await;
            assert_eq!(reply["error"]["code"], -32021, "{extensions}: {reply}");
            assert_eq!(reply["error"]["data"], json!({"requiredCapabilities": {"extensions": {SEARCH: {}}}}));
            assert_eq!(status, if over == Over::Http { 400 } else { 200 });
        }
        let (_, reply) = ask(over, &closed, QUERY, json!({SEARCH: {}})).await;
        assert_eq!(reply["result"]["seen"]["settings"], json!({}), "{reply}");
        let (_, reply) = ask(over, &open, "com.example/open.who", json!({})).await;
        assert_eq!(reply["result"]["settings"], Value::Null, "{reply}");
        let (_, reply) =
            ask(over, &open, "com.example/open.who", json!({"com.example/open": {"a": 1}})).await;
        assert_eq!(reply["result"]["settings"], json!({"a": 1}), "{reply}");
    }
    let mut session = InSession::newest(&closed).await;
    let reply = session.asks(1, QUERY, json!({"text": "a"})).await;
    // Sessions have no code for it.
    let text = "The client did not declare a required extension: com.example/search";
    assert_eq!((&reply["error"]["code"], &reply["error"]["message"]), (&json!(-32600), &json!(text)));
}

#[tokio::test]
async fn each_fault_is_that_of_its_side() {
    let (server, viewed) = server(|builder| builder);
    let mut session = InSession::open(&server, "2025-11-25", json!({"extensions": {SEARCH: {}}})).await;
    for (id, (method, params, code, text)) in [
        (QUERY, json!({}), -32602, "params: missing field `text`"),
        (QUERY, json!({"text": 7}), -32602, "params.text: invalid type: integer `7`, expected a string"),
        (
            QUERY,
            json!({"text": "a", "filters": [{"year": 1}, {"year": "two"}]}),
            -32602,
            "params.filters[1].year: invalid type: string \"two\", expected u32",
        ),
        (
            QUERY,
            json!({"text": "a", "other": 1}),
            -32602,
            "params: unknown field `other`, expected `text` or `filters`",
        ),
        ("com.example/search.other", json!({}), -32601, "Method not found"),
        // The method of a notification is none of a request.
        (VIEWED, json!({"title": "a"}), -32601, "Method not found"),
        (FAIL, json!({"how": "own"}), -32603, "There is no index yet"),
        (FAIL, json!({"how": "hidden"}), -32603, "Internal error"),
        (FAIL, json!({"how": "panic"}), -32603, "Internal error"),
        (FAIL, json!({"how": "code"}), -32602, "no such index"),
    ]
    .into_iter()
    .enumerate()
    {
        let mut modern = params.clone();
        modern["_meta"] = declaring(json!({SEARCH: {}}));
        for over in [Over::Http, Over::Stdio] {
            let (status, reply) = send(over, &server, &request(1, method, modern.clone()), None).await;
            let found = (&reply["error"]["code"], &reply["error"]["message"]);
            assert_eq!(found, (&json!(code), &json!(text)), "{over:?}: {reply}");
            let expected = match (over, code) {
                (Over::Stdio, _) | (_, -32603) => 200,
                (_, -32601) => 404,
                _ => 400,
            };
            assert_eq!(status, expected, "{reply}");
        }
        let reply = session.asks(u32::try_from(id).unwrap() + 1, method, params).await;
        assert_eq!(
            (&reply["error"]["code"], &reply["error"]["message"]),
            (&json!(code), &json!(text)),
            "{reply}"
        );
    }
    let twice = r#"{"jsonrpc":"2.0","id":1,"method":"com.example/search.query","params":{"text":"a","text":"b","_meta":META}}"#;
    let twice = twice.replace("META", &declaring(json!({SEARCH: {}})).to_string());
    let reply = server.respond(twice.as_bytes(), &Caller::default()).await.unwrap();
    let reply: Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!(reply["error"]["code"], -32602, "{reply}");
    assert!(viewed.is_empty());
}

#[tokio::test]
async fn a_result_may_be_empty_and_must_be_an_object() {
    let text = |_: ExtensionCtx, _: Value| async { Ok::<_, antiphon::Error>("text") };
    let typed = |_: ExtensionCtx, _: Value| async {
        Ok::<_, antiphon::Error>(json!({"resultType": "page", "_meta": {"a": 1}}))
    };
    let odd = Extension::new("com.example/odd")
        .requires_client(false)
        .request("com.example/odd.text", text)
        .request("com.example/odd.typed", typed);
    let (server, _viewed) = server(|builder| builder.extension(odd));
    let ask = async |method: &str| {
        let params = json!({"_meta": declaring(json!({SEARCH: {}}))});
        send(Over::Stdio, &server, &request(1, method, params), None).await.1
    };
    assert_eq!(ask(FAIL).await["result"]["resultType"], "complete");
    assert_eq!(ask("com.example/odd.text").await["error"]["code"], -32603);
    let typed = ask("com.example/odd.typed").await;
    assert_eq!((&typed["result"]["resultType"], &typed["result"]["_meta"]["a"]), (&json!("page"), &json!(1)));
    assert_eq!(typed["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "library");
}

#[tokio::test]
async fn a_layer_can_refuse_a_request_and_changes_no_capability() {
    let (server, _viewed) = server(|builder| {
        builder.layer(layer_fn(|inner: CallService| {
            service_fn(move |mut call: Call| {
                let mut inner = inner.clone();
                call.meta_mut().0.insert("added".to_owned(), json!(1));
                call.meta_mut().0.remove("io.modelcontextprotocol/clientCapabilities");
                async move {
                    match call.method() {
                        FAIL => Err(Refused::new(ErrorCode(-32000), "not now")),
                        _ => inner.call(call).await,
                    }
                }
            })
        }))
    });
    let ask = async |method: &str| {
        let params = json!({"text": "a", "_meta": declaring(json!({SEARCH: {"most": 1}}))});
        send(Over::Http, &server, &request(1, method, params), None).await.1
    };
    assert_eq!(ask(FAIL).await["error"]["message"], "not now");
    assert_eq!(ask(QUERY).await["result"]["seen"]["settings"], json!({"most": 1}));
}

/// Says what the client declared.
async fn declared(ctx: &Ctx, _: NoArguments) -> Result<String> {
    #[derive(serde::Deserialize)]
    struct Settings {
        most: u32,
    }
    let typed = ctx.extension_settings::<Settings>(SEARCH)?.map(|settings| settings.most);
    Ok(format!("{typed:?} {:?}", ctx.extension_settings::<Value>("com.example/other")?))
}

#[tokio::test]
async fn a_tool_reads_what_the_client_declared() {
    let (server, _viewed) = server(|builder| builder.tool(Tool::new("declared", declared)));
    let call = json!({"name": "declared", "arguments": {}});
    for (extensions, expected) in [
        (json!({}), "None None"),
        (json!({SEARCH: {"most": 3}, "com.example/other": {}}), "Some(3) Some(Object {})"),
        (json!({SEARCH: 3, "com.example/other": []}), "None None"),
        (
            json!({SEARCH: {"most": "3"}}),
            "The client's settings of the extension com.example/search do not fit: invalid type: string \"3\", expected u32 at line 1 column 11",
        ),
    ] {
        let mut params = call.clone();
        params["_meta"] = declaring(extensions.clone());
        let (_, reply) = send(Over::Http, &server, &request(1, "tools/call", params), None).await;
        assert_eq!(result_text(&reply), expected);
        let mut session = InSession::open(&server, "2025-11-25", json!({"extensions": extensions})).await;
        let reply = session.asks(1, "tools/call", call.clone()).await;
        assert_eq!(result_text(&reply), expected);
    }
}
