//! MCP Apps: the view of a tool, which the server must offer, its settings, and the declaration of the extension.

use crate::common::{request, session::InSession};
use antiphon::{
    client::Client,
    memory, resource,
    server::{
        Caller, Ctx, NoArguments, Resource, Server, ServerBuilder, Tool,
        apps::{EXTENSION, MIME_TYPE, Permission, View, Visibility, extension, shown_to},
        offers::{CallerInfo, Offers},
    },
    tool,
    wire::{Meta, content::ResourceContents},
};
use serde_json::{Value, json};

const CARD: &str = "ui://shop/card.html";

/// Shows orders.
#[tool(meta = json!({"com.example/unit": "EUR", "ui": 5}), ui = "ui://shop/card.html", ui_visibility(app))]
async fn orders() {}

fn view() -> View {
    View::new(CARD, "<!DOCTYPE html><title>Orders</title>")
        .connect(["https://api.shop.example", "wss://live.shop.example"])
        .load(["https://*.shop.example"])
        .load(["https://cdn.example"])
        .frame(["https://pay.example"])
        .base_uri(["https://shop.example"])
        .permission(Permission::Camera)
        .permission(Permission::ClipboardWrite)
        .prefers_border(false)
        .domain("a9.host.example")
}

fn ui() -> Value {
    json!({
        "csp": {
            "connectDomains": ["https://api.shop.example", "wss://live.shop.example"],
            "resourceDomains": ["https://*.shop.example", "https://cdn.example"],
            "frameDomains": ["https://pay.example"],
            "baseUriDomains": ["https://shop.example"],
        },
        "permissions": {"camera": {}, "clipboardWrite": {}},
        "prefersBorder": false,
        "domain": "a9.host.example",
    })
}

/// The same view, made for each caller.
#[resource("ui://shop/card.html", mime_type = "text/html;profile=mcp-app")]
async fn made() -> View {
    view()
}

async fn ask(server: &Server, method: &str, params: Value) -> Value {
    let message = request(1, method, params).to_string();
    let reply = server.respond(message.as_bytes(), &Caller::default()).await.unwrap();
    serde_json::from_slice(&reply.body).unwrap()
}

fn named(name: &str) -> Tool {
    Tool::new(name, async |_: &Ctx, _: NoArguments| "done").description("Does.")
}

#[tokio::test]
async fn a_tool_names_its_view_and_the_view_has_its_settings() {
    let new = || Server::builder("shop", "1").tool(orders);
    for server in [new().resource(view()), new().resource(made)] {
        let server = server.build().unwrap();
        let listed = ask(&server, "tools/list", json!({})).await;
        let expected = json!({
            "com.example/unit": "EUR", "ui": {"resourceUri": CARD, "visibility": ["app"]},
        });
        assert_eq!(listed["result"]["tools"][0]["_meta"], expected, "{listed}");
        let read = ask(&server, "resources/read", json!({"uri": CARD})).await;
        let contents = &read["result"]["contents"][0];
        assert_eq!(contents["mimeType"], MIME_TYPE, "{read}");
        assert_eq!(contents["_meta"], json!({ "ui": ui() }), "{read}");
        assert!(contents["text"].as_str().unwrap().starts_with("<!DOCTYPE html>"), "{read}");
        let discovered = ask(&server, "server/discover", json!({})).await;
        let extensions = &discovered["result"]["capabilities"]["extensions"];
        assert_eq!(extensions[EXTENSION], json!({}), "{discovered}");
        let session = InSession::newest(&server).await;
        let declared = &session.opened["result"]["capabilities"]["extensions"];
        assert_eq!(declared[EXTENSION], json!({}), "{}", session.opened);
    }
    // A host reads the settings in the list too.
    let server = new().resource(view()).build().unwrap();
    let listed = ask(&server, "resources/list", json!({})).await["result"]["resources"][0].take();
    assert_eq!((&listed["name"], &listed["mimeType"]), (&json!("card.html"), &json!(MIME_TYPE)));
    assert_eq!(listed["_meta"], json!({ "ui": ui() }));
    // A view without settings has none.
    let plain = ResourceContents::from(View::new(CARD, "<!DOCTYPE html>"));
    assert_eq!((plain.meta, plain.mime_type.as_deref()), (None, Some(MIME_TYPE)));
}

#[test]
fn a_view_that_is_not_there_is_an_error_of_the_build() {
    struct Found;
    impl Offers for Found {
        async fn resource(&self, uri: &str, _: &CallerInfo) -> antiphon::Result<Option<Resource>> {
            Ok((uri == CARD).then(|| view().into()))
        }
    }
    let text = || {
        Resource::new(CARD, "card", async |_: &Ctx| ResourceContents::text(CARD, "")).mime_type("text/html")
    };
    let by_hand = || named("t").meta(Meta::from(json!({"ui": {"resourceUri": "ui://shop/none.html"}})));
    #[resource("ui://shop/{page}", mime_type = "text/html;profile=mcp-app")]
    async fn pages(page: String) -> View {
        View::new(format!("ui://shop/{page}"), "<!DOCTYPE html>")
    }
    type Change = fn(ServerBuilder) -> ServerBuilder;
    let check = |change: &dyn Fn(ServerBuilder) -> ServerBuilder, expected: &str| {
        let built = change(Server::builder("shop", "1")).build();
        match (built, expected) {
            (Ok(_), "") => {}
            (Ok(_), _) => panic!("it is built, instead of: {expected}"),
            (Err(error), "") => panic!("{error}"),
            (Err(error), _) => assert!(error.to_string().contains(expected), "{error}"),
        }
    };
    let found: [(Change, &str); 5] = [
        (|builder| builder.tool(orders).resource(view()), ""),
        (|builder| builder.resource(made).tool(orders), ""),
        (|builder| builder.tool(orders).template(pages), ""),
        (|builder| builder.tool(orders).offers(Found), ""),
        (|builder| builder.tool(orders).resource(view()).extension(extension()), ""),
    ];
    for (change, expected) in found {
        check(&change, expected);
    }
    check(
        &|builder| builder.tool(orders),
        "the tool `orders` has the view `ui://shop/card.html`, which the server does not offer",
    );
    check(&|builder| builder.tool(orders).resource(text()), "another media type");
    check(
        &|builder| builder.tool(by_hand()).resource(view()),
        "`ui://shop/none.html`, which the server does not offer",
    );
    check(&|builder| builder.tool(named("t").ui("https://a.example")), "does not begin with `ui://`");

    // The same while the server runs.
    let server = Server::builder("shop", "1").extension(extension()).list_changed(true).build().unwrap();
    let refused = server.add_tool(orders).unwrap_err().to_string();
    assert!(refused.contains("does not offer"), "{refused}");
    server.add_resource(view()).unwrap();
    server.add_tool(orders).unwrap();
}

#[test]
fn a_tool_with_a_view_comes_later_only_if_the_extension_is_declared() {
    let later = || named("late").ui(CARD);
    let server = |builder: ServerBuilder| builder.resource(view()).list_changed(true).build().unwrap();
    let fault = server(Server::builder("t", "1")).add_tool(later()).unwrap_err().to_string();
    assert!(fault.contains("late") && fault.contains(".extension(apps::extension())"), "{fault}");
    server(Server::builder("t", "1").extension(extension())).add_tool(later()).unwrap();
}

#[tokio::test]
async fn a_view_and_further_meta_stand_beside_each_other() {
    let tool = named("t").ui(CARD).meta(Meta::from(json!({"com.example/unit": "EUR"})));
    let server = Server::builder("t", "1").tool(tool).resource(view()).build().unwrap();
    let listed = ask(&server, "tools/list", json!({})).await;
    let expected = json!({"ui": {"resourceUri": CARD}, "com.example/unit": "EUR"});
    assert_eq!(listed["result"]["tools"][0]["_meta"], expected, "{listed}");
}

#[tokio::test]
async fn a_handler_sees_if_its_client_shows_views() {
    let tool = Tool::new("shown", async |ctx: &Ctx, _: NoArguments| shown_to(ctx).to_string())
        .ui_visibility([Visibility::Model]);
    let server = Server::builder("shop", "1").tool(tool).build().unwrap();
    for (settings, expected) in [
        (Some(json!({"mimeTypes": ["text/plain", MIME_TYPE]})), "true"),
        (Some(json!({"mimeTypes": ["text/html"]})), "false"),
        (Some(json!({})), "false"),
        (Some(json!({"mimeTypes": 5})), "false"),
        (None, "false"),
    ] {
        let mut client = Client::builder("host", "1");
        if let Some(settings) = settings.clone() {
            client = client.extension(EXTENSION, settings).unwrap();
        }
        let client = memory::connect(server.clone(), client);
        let result = client.call_tool("shown", json!({})).await.unwrap();
        assert_eq!(result.first_text(), Some(expected), "{settings:?}");
    }
}
