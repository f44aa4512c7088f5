//! The declarations of a server with extensions, and the extensions that do not fit together.

use crate::{
    common::{request, session::InSession},
    search::{QUERY, SEARCH, server},
};
use antiphon::{
    Result,
    server::{
        Caller, Ctx, NoArguments, Server, TaskMode, Tool,
        extensions::{Extension, ExtensionCtx},
    },
};
use serde_json::{Value, json};

async fn nothing(_: ExtensionCtx, _: Value) -> Result<()> {
    Ok(())
}

#[test]
fn what_does_not_fit_is_an_error_of_the_build() {
    let a = || Extension::new("com.example/a");
    let b = || Extension::new("com.example/b");
    let text = |extensions: Vec<Extension>| {
        let builder = Server::builder("s", "1");
        let built = extensions.into_iter().fold(builder, |builder, one| builder.extension(one)).build();
        built.err().map(|error| error.to_string()).unwrap_or_default()
    };
    for (extensions, expected) in [
        (vec![a(), b()], ""),
        (vec![a().request("com.example/a.x", nothing), b().request("com.example/b.x", nothing)], ""),
        // Official extensions are anybody's to serve, and have methods like those of the core.
        (
            vec![
                Extension::new("io.modelcontextprotocol/skills").request("resources/directory/read", nothing),
            ],
            "",
        ),
        (vec![a(), a()], r#"the extension `com.example/a`: it is registered twice"#),
        (
            vec![a().request("x/y", nothing), b().notification("x/y", nothing)],
            r#"the extension `com.example/b`: the extension `com.example/a` has the method "x/y" too"#,
        ),
        (
            vec![a().request("x/y", nothing).request("x/y", nothing)],
            r#"the extension `com.example/a` has the method "x/y" too"#,
        ),
        (vec![a().request("tools/call", nothing)], r#"the method "tools/call" belongs to the core protocol"#),
        (
            vec![a().notification("notifications/cancelled", nothing)],
            r#"the method "notifications/cancelled" belongs to the core protocol"#,
        ),
        // Also where the server has no tasks.
        (
            vec![a().request("tasks/get", nothing)],
            r#"the extension `io.modelcontextprotocol/tasks` has the method "tasks/get" too"#,
        ),
        (
            vec![Extension::new("io.modelcontextprotocol/tasks")],
            r#"the extension `io.modelcontextprotocol/tasks`: it belongs to the tasks of this crate"#,
        ),
        (vec![a().request("search", nothing)], r#"the method "search" is no prefix and name"#),
        (vec![a().request("x/ y", nothing)], r#"the method "x/ y" is no prefix and name"#),
        (
            vec![a().settings(3)],
            r#"the extension `com.example/a`: its settings do not fit: they must be an object"#,
        ),
        (vec![Extension::new("search")], r#"the extension id "search" is no reversed domain and name"#),
        (vec![Extension::new("com.1example/search")], "is no reversed domain and name"),
        (vec![Extension::new("com.example-/search")], "is no reversed domain and name"),
        (vec![Extension::new("com.example/search.")], "is no reversed domain and name"),
        (vec![Extension::new("com.example/")], "is no reversed domain and name"),
        (vec![Extension::new("com..example/a")], "is no reversed domain and name"),
        (vec![Extension::new("com.example/a/b")], "is no reversed domain and name"),
        (vec![Extension::new(format!("com.example/{}", "a".repeat(200)))], "is no reversed domain and name"),
    ] {
        let found = text(extensions);
        assert!(
            found.contains(expected) && found.is_empty() == expected.is_empty(),
            "{found:?}, not {expected:?}"
        );
    }
}

async fn ask(server: &Server, message: String) -> Value {
    let reply = server.respond(message.as_bytes(), &Caller::default()).await.unwrap();
    serde_json::from_slice(&reply.body).unwrap()
}

async fn render(_: &Ctx, _: NoArguments) -> String {
    "done".to_owned()
}

#[tokio::test]
async fn a_server_declares_what_is_registered_and_nothing_else() {
    let tasks = || Tool::new("render", render).task(TaskMode::Optional);
    let search = json!({"languages": ["en"]});
    let both = json!({SEARCH: search, "io.modelcontextprotocol/tasks": {}});
    for (server, modern, legacy) in [
        (Server::builder("s", "1").build().unwrap(), Value::Null, Value::Null),
        (server(|builder| builder).0, json!({SEARCH: search}), json!({SEARCH: search})),
        (
            Server::builder("s", "1").tool(tasks()).build().unwrap(),
            json!({"io.modelcontextprotocol/tasks": {}}),
            Value::Null,
        ),
        (server(|builder| builder.tool(tasks())).0, both, json!({SEARCH: search})),
    ] {
        let discovered = ask(&server, request(1, "server/discover", json!({})).to_string()).await;
        assert_eq!(discovered["result"]["capabilities"]["extensions"], modern);
        let session = InSession::newest(&server).await;
        assert_eq!(session.opened["result"]["capabilities"]["extensions"], legacy);
    }
    // A server without the extension has no such method.
    let bare = Server::builder("s", "1").build().unwrap();
    let refused = ask(&bare, request(1, QUERY, json!({"text": "a"})).to_string()).await;
    assert_eq!(
        (&refused["error"]["code"], &refused["error"]["data"]["method"]),
        (&json!(-32601), &json!(QUERY))
    );
}
