//! The official extension `io.modelcontextprotocol/skills`: its two requests, over resources that any client can read. The server is a
//! function on its builder, which adds the extension and the resources together; a client need not declare this extension.
//!
//! Try it: `cargo run -p antiphon-examples --bin extension_skills`

#![allow(clippy::print_stdout, reason = "the program prints what happens")]

use antiphon::{
    Error, Result,
    client::Client,
    memory,
    server::{
        Ctx, Resource, Server, ServerBuilder,
        extensions::{Extension, ExtensionCtx},
    },
    wire::{ErrorObject, content::ResourceContents},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::sync::Arc;

const ID: &str = "io.modelcontextprotocol/skills";

/// A skill of one file.
struct Skill {
    name: &'static str,
    description: &'static str,
    steps: &'static str,
}

#[derive(Deserialize, Serialize)]
struct ByUri {
    uri: String,
}

impl Skill {
    fn uri(&self) -> String {
        format!("skill://{}/SKILL.md", self.name)
    }

    fn text(&self) -> String {
        format!("---\nname: {}\ndescription: {}\n---\n{}\n", self.name, self.description, self.steps)
    }

    /// > A `Skill` entry describes one skill. It is returned by both `skills/list` and `skills/get`
    fn entry(&self) -> Value {
        json!({
            "uri": self.uri(),
            "frontmatter": { "name": self.name, "description": self.description },
            "resources": [{ "uri": self.uri(), "digest": digest(&self.text()), "size": self.text().len() }],
        })
    }
}

/// > SHA-256 digest of the file's raw bytes, formatted as `sha256:{hex}`
fn digest(text: &str) -> String {
    let hex: String = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// Adds these skills to a server.
fn with_skills(builder: ServerBuilder, skills: Vec<Skill>) -> ServerBuilder {
    let skills = Arc::new(skills);
    let listed = Arc::clone(&skills);
    let list = move |_: ExtensionCtx, _: Value| {
        let entries: Vec<Value> = listed.iter().map(Skill::entry).collect();
        async move { Ok::<_, Error>(json!({ "skills": entries, "ttlMs": 0, "cacheScope": "private" })) }
    };
    let all = Arc::clone(&skills);
    let get = move |_: ExtensionCtx, ByUri { uri }: ByUri| {
        let entry = all.iter().find(|skill| skill.uri() == uri).map(Skill::entry);
        async move {
            let unknown = || ErrorObject::invalid_params("no skill of this server");
            Ok::<_, Error>(json!({ "skill": entry.ok_or_else(unknown)? }))
        }
    };
    // > Clients issue `skills/list` and `skills/get` only after observing the server's declaration.
    let extension =
        Extension::new(ID).requires_client(false).request("skills/list", list).request("skills/get", get);
    skills.iter().fold(builder.extension(extension), |builder, skill| {
        let (uri, text) = (skill.uri(), skill.text());
        let read = move |_: &Ctx| {
            let contents = ResourceContents::text(uri.clone(), text.clone()).with_mime_type("text/markdown");
            async move { contents }
        };
        builder.resource(Resource::new(skill.uri(), skill.name, read))
    })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let review = Skill {
        name: "code-review",
        description: "Reviews a change. Use it before a merge.",
        steps: "Read the tests first.",
    };
    let server = with_skills(Server::builder("skills", "1.0"), vec![review]).build()?;
    let client = memory::connect(server, Client::builder("host", "1.0"));
    // > Clients issue `skills/list` and `skills/get` only after observing the server's declaration.
    if client.server_extension::<Value>(ID).await?.is_none() {
        println!("the server has no skills");
        return Ok(());
    }
    let listed: Value = client.request("skills/list", ()).await?;
    for skill in listed["skills"].as_array().into_iter().flatten() {
        println!("{}: {}", skill["frontmatter"]["name"], skill["frontmatter"]["description"]);
        let uri = skill["uri"].as_str().unwrap_or_default();
        let read = client.read_resource(uri).await?;
        let text = read.first_text().unwrap_or_default();
        println!("{uri} is unchanged: {}", skill["resources"][0]["digest"] == digest(text));
    }
    let unknown = ByUri { uri: "skill://none/SKILL.md".to_owned() };
    if let Err(error) = client.request::<Value>("skills/get", unknown).await {
        println!("skill://none/SKILL.md: {}", error.server_error().map_or("?", |error| &error.message));
    }
    Ok(())
}
