//! The extension of the tests: a search, with a request that counts, one that fails, and a notification.

use antiphon::{
    Result,
    seal::Principal,
    server::{
        Caller, Server, ServerBuilder,
        extensions::{Extension, ExtensionCtx},
    },
    wire::ErrorObject,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::io;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

pub(crate) const SEARCH: &str = "com.example/search";
pub(crate) const QUERY: &str = "com.example/search.query";
pub(crate) const FAIL: &str = "com.example/search.fail";
pub(crate) const VIEWED: &str = "notifications/com.example/search.viewed";

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Query {
    pub(crate) text: String,
    #[serde(default)]
    pub(crate) filters: Vec<Filter>,
}

#[derive(Deserialize, Serialize)]
pub(crate) struct Filter {
    pub(crate) year: u32,
}

#[derive(Debug, Deserialize, Serialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Found {
    pub(crate) titles: Vec<String>,
    /// The caller that the handler saw, and what it declared.
    pub(crate) seen: Seen,
}

#[derive(Debug, Deserialize, Serialize, PartialEq)]
pub(crate) struct Seen {
    pub(crate) settings: Option<Value>,
    pub(crate) ui: Option<Value>,
    pub(crate) subject: Option<String>,
    pub(crate) client: Option<String>,
    pub(crate) version: String,
    pub(crate) method: String,
    pub(crate) tenant: Option<String>,
    pub(crate) has_headers: bool,
}

/// The value that a layer of the tests adds to a request.
#[derive(Clone)]
pub(crate) struct Tenant(pub(crate) String);

impl Seen {
    fn of(ctx: &ExtensionCtx) -> Result<Self> {
        let request = ctx.request();
        Ok(Self {
            settings: ctx.settings()?,
            ui: ctx.extension_settings("io.modelcontextprotocol/ui")?,
            subject: ctx.principal().and_then(|known| known.subject().map(str::to_owned)),
            client: ctx.client_info().map(|info| info.name),
            version: ctx.protocol_version().as_str().to_owned(),
            method: request.method().to_owned(),
            tenant: request.extension::<Tenant>().map(|tenant| tenant.0.clone()),
            has_headers: request.headers().is_some(),
        })
    }
}

async fn query(ctx: ExtensionCtx, query: Query) -> Result<Found> {
    ctx.report_progress(1.0, Some(1.0), Some("searched"));
    let titles = query.filters.iter().map(|filter| format!("{} {}", query.text, filter.year)).collect();
    Ok(Found { titles, seen: Seen::of(&ctx)? })
}

async fn fail(_: ExtensionCtx, how: Value) -> Result<()> {
    match how["how"].as_str() {
        Some("own") => Err("There is no index yet".into()),
        Some("hidden") => Err(io::Error::other("the secret path").into()),
        Some("code") => {
            Err(ErrorObject::invalid_params("no such index").with_data(json!({"index": "a"})).into())
        }
        Some("panic") => panic!("the secret path"),
        _ => Ok(()),
    }
}

/// The notifications that reached their handler.
pub(crate) struct Viewed(UnboundedReceiver<(String, Seen)>);

impl Viewed {
    /// Waits for the next one.
    pub(crate) async fn next(&mut self) -> (String, Seen) {
        self.0.recv().await.unwrap()
    }

    /// Returns true if none waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[derive(Deserialize)]
struct Title {
    title: String,
}

pub(crate) fn extension(viewed: UnboundedSender<(String, Seen)>) -> Extension {
    Extension::new(SEARCH)
        .settings(json!({"languages": ["en"]}))
        .request(QUERY, query)
        .request(FAIL, fail)
        .notification(VIEWED, move |ctx: ExtensionCtx, Title { title }: Title| {
            let viewed = viewed.clone();
            async move {
                if title == "nothing" {
                    return Err(antiphon::Error::user_facing("nothing was viewed"));
                }
                viewed.send((title, Seen::of(&ctx)?)).map_err(|_| io::Error::other("nobody listens"))?;
                Ok(())
            }
        })
}

/// A server with the extension, and with what `more` adds.
pub(crate) fn server(more: impl FnOnce(ServerBuilder) -> ServerBuilder) -> (Server, Viewed) {
    let (sender, viewed) = unbounded_channel();
    let builder = Server::builder("library", "1.0")
        .bind_principal(|caller: &Caller<'_>| {
            let user = caller.headers.and_then(|headers| headers.get("x-user")?.to_str().ok());
            Ok::<_, String>(user.map(Principal::user))
        })
        .extension(extension(sender));
    (more(builder).build().unwrap(), Viewed(viewed))
}
