//! Marked functions whose definitions are completed by hand, and calls with arguments that a function does not have.

use crate::common::request;
use antiphon::{
    prompt, resource,
    server::{
        BuildError, Caller, Prompt, Resource, ResourceTemplate, Server, State, Tool,
        offers::{AnyResource, With},
    },
    tool,
    wire::{Icon, Meta, content::ResourceContents},
};
use serde_json::{Value, json};

/// Finds entries.
#[tool]
async fn find(word: String, limit: Option<u8>) -> String {
    format!("{word} {limit:?}")
}

/// Finds entries.
#[tool(name = "find_any", additional = "ignore")]
async fn find_any(word: String, limit: Option<u8>) -> String {
    format!("{word} {limit:?}")
}

#[tool(additional = "refuse")]
async fn nothing() {}

/// Names the owner.
#[tool]
async fn owner(name: State<String>) -> String {
    name.to_string()
}

/// Says something.
#[prompt]
async fn say(what: String) -> String {
    what
}

/// A page.
#[resource("page://one")]
async fn page() -> ResourceContents {
    ResourceContents::text("page://one", "one")
}

/// A page.
#[resource("page://{id}/each")]
async fn each(id: String) -> ResourceContents {
    ResourceContents::text(format!("page://{id}/each"), id)
}

async fn ask(server: &Server, method: &str, params: Value) -> Value {
    let message = request(1, method, params).to_string();
    let reply = server.respond(message.as_bytes(), &Caller::default()).await.unwrap();
    serde_json::from_slice(&reply.body).unwrap()
}

#[tokio::test]
async fn a_misspelt_argument_is_refused_by_name_unless_the_tool_ignores_it() {
    let server = Server::builder("misspelt", "1").tool(find).tool(find_any).tool(nothing).build().unwrap();
    for (name, arguments, is_error, text) in [
        ("find", json!({"word": "a", "limit": 5}), false, "a Some(5)"),
        ("find", json!({"word": "a", "limt": 5}), true, "limt"),
        ("find_any", json!({"word": "a", "limt": 5}), false, "a None"),
        ("nothing", json!({"limt": 5}), true, "limt"),
    ] {
        let reply = ask(&server, "tools/call", json!({"name": name, "arguments": arguments})).await;
        let result = &reply["result"];
        assert_eq!(result["isError"].as_bool().unwrap_or_default(), is_error, "{reply}");
        assert!(result["content"][0]["text"].as_str().unwrap().contains(text), "{reply}");
    }
    let listed = ask(&server, "tools/list", json!({})).await["result"]["tools"].take();
    let additional = |at: usize| listed[at]["inputSchema"].get("additionalProperties").cloned();
    assert_eq!([additional(0), additional(1), additional(2)], [Some(json!(false)), None, Some(json!(false))]);
}

#[tokio::test]
async fn a_marked_function_is_completed_with_what_no_attribute_has() {
    let meta = || Meta::from(json!({"com.example/unit": "EUR"}));
    let titled = |resource: AnyResource| match resource {
        AnyResource::One(resource) => AnyResource::One(resource.title("One")),
        AnyResource::Many(template) => AnyResource::Many(template.title("Many")),
    };
    let server = Server::builder("completed", "1")
        .state("Ann".to_owned())
        .tool(
            find.with(|tool| tool.icon(Icon::new("https://a.example/i.png")))
                .with(move |tool| tool.meta(meta())),
        )
        .tool(owner.with(|tool| tool.title("Owner")))
        .prompt(say.with(|prompt| prompt.complete("what", async |_| ["hello"])))
        .resource(page.with(titled))
        .template(each.with(titled))
        .build()
        .unwrap();
    for (method, list, at, member, expected) in [
        ("tools/list", "tools", 0, "icons", json!([{"src": "https://a.example/i.png"}])),
        ("tools/list", "tools", 0, "_meta", json!({"com.example/unit": "EUR"})),
        ("tools/list", "tools", 1, "title", json!("Owner")),
        ("resources/list", "resources", 0, "title", json!("One")),
        ("resources/templates/list", "resourceTemplates", 0, "title", json!("Many")),
    ] {
        let reply = ask(&server, method, json!({})).await;
        assert_eq!(reply["result"][list][at][member], expected, "{reply}");
    }
    let params =
        json!({"ref": {"type": "ref/prompt", "name": "say"}, "argument": {"name": "what", "value": ""}});
    assert_eq!(
        ask(&server, "completion/complete", params).await["result"]["completion"]["values"],
        json!(["hello"])
    );
    let reply = ask(&server, "tools/call", json!({"name": "owner"})).await;
    assert_eq!(reply["result"]["content"][0]["text"], "Ann");
}

#[test]
fn a_marked_function_becomes_a_value() -> Result<(), BuildError> {
    let server = Server::builder("values", "1")
        .tool(Tool::of(find)?.title("Find"))
        .prompt(Prompt::of(say)?)
        .resource(Resource::of(page)?)
        .template(ResourceTemplate::of(each)?);
    assert!(server.build().is_ok());
    for (refused, text) in [
        (Tool::of(owner).unwrap_err(), "takes the state"),
        (Resource::of(each).unwrap_err(), "has variables"),
        (ResourceTemplate::of(page).unwrap_err(), "has no variables"),
    ] {
        assert!(refused.to_string().contains(text), "{refused}");
    }
    Ok(())
}
