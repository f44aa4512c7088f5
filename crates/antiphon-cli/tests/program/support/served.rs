//! A server in this process over HTTP, whose lists a test can change.

use antiphon::{
    serve::http::{HttpOptions, serve_http},
    server::{Completing, Ctx, NoArguments, Prompt, Resource, ResourceTemplate, Server, Tool},
    wire::content::{PromptArgument, ResourceContents},
};
use serde_json::{Map, Value};
use std::net::TcpListener;
use tokio::runtime::Runtime;

/// A running server. Dropping the value stops it.
pub(crate) struct RunningServer {
    runtime: Option<Runtime>,
    /// Keeps the port bound while no runtime serves it.
    listener: TcpListener,
    pub(crate) server: Server,
    pub(crate) url: String,
}

impl RunningServer {
    pub(crate) fn start(server: Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let mut served = Self { runtime: None, listener, server, url };
        served.restart();
        served
    }

    /// Closes every connection, and serves again.
    pub(crate) fn restart(&mut self) {
        drop(self.runtime.take());
        let runtime = Runtime::new().unwrap();
        let (listener, server) = (self.listener.try_clone().unwrap(), self.server.clone());
        runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            serve_http(listener, server, HttpOptions::default()).await.unwrap();
        });
        self.runtime = Some(runtime);
    }
}

/// Returns a tool that does nothing.
pub(crate) fn tool(name: &str) -> Tool {
    Tool::new(name, async |_: &Ctx, _: NoArguments| "")
}

/// Returns a server that offers nothing.
pub(crate) fn empty() -> Server {
    Server::builder("empty", "1").build().unwrap()
}

/// Returns a server with one tool, prompt, resource and template, which sends all change notifications.
pub(crate) fn changing() -> Server {
    let prompt = Prompt::new("review", async |_: &Ctx, _: Map<String, Value>| String::new())
        .title("Review\nof code")
        .argument(PromptArgument::optional("language"))
        .argument(PromptArgument::optional("framework"))
        .complete("language", async |typed: Completing| {
            let known = ["python", "perl", "rust"].into_iter();
            known.filter(|name| name.starts_with(typed.value())).collect::<Vec<_>>()
        })
        .complete("framework", async |typed: Completing| {
            let known = typed.arguments().map(|(name, value)| format!("{name}={value}"));
            known.chain((0..100).map(|number| number.to_string())).collect::<Vec<_>>()
        });
    let read = async |_: &Ctx| ResourceContents::text("file:///a", "");
    let template = ResourceTemplate::new("db://{table}", "table", async |_: &Ctx, _: Value| {
        ResourceContents::text("db://", "")
    })
    .description("A table.")
    .complete("table", async |_: Completing| ["orders\u{1b}[31m", "users"]);
    Server::builder("changing", "1")
        .tool(tool("echo"))
        .prompt(prompt)
        .resource(Resource::new("file:///a", "a", read))
        .template(template)
        .list_changed(true)
        .resource_updates(true)
        .build()
        .unwrap()
}
