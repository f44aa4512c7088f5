//! Bookmarks: an extension with settings on both sides, a request and a notification, for the builders of servers and clients.

use antiphon::{
    Error,
    client::{Client, ClientBuilder, ClientError},
    server::{
        ServerBuilder,
        extensions::{Extension, ExtensionCtx},
    },
    wire::extensions::InvalidExtension,
};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, PoisonError};

const ID: &str = "com.example/bookmarks";
const LIST: &str = "com.example/bookmarks.list";
const ADDED: &str = "notifications/com.example/bookmarks.added";

/// The settings of a server.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct ServerSettings {
    /// The maximum number of bookmarks that are kept.
    pub kept: usize,
}

/// The settings of a client.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct ClientSettings {
    /// The maximum number of bookmarks that the client shows.
    pub shown: usize,
}

#[derive(Deserialize, Serialize)]
struct List {
    prefix: String,
}

#[derive(Deserialize, Serialize)]
struct Bookmarks {
    urls: Vec<String>,
}

#[derive(Deserialize, Serialize)]
struct Added {
    url: String,
}

/// The server's half.
pub trait ServeBookmarks {
    /// Adds the extension, which keeps at most this number of bookmarks.
    #[must_use]
    fn bookmarks(self, kept: usize) -> Self;
}

impl ServeBookmarks for ServerBuilder {
    fn bookmarks(self, kept: usize) -> Self {
        let urls = Arc::new(Mutex::new(Vec::<String>::new()));
        let added = Arc::clone(&urls);
        let list = move |ctx: ExtensionCtx, List { prefix }: List| {
            let urls = urls.lock().unwrap_or_else(PoisonError::into_inner).clone();
            async move {
                let shown = ctx.settings::<ClientSettings>()?.map_or(0, |settings| settings.shown);
                let found = urls.into_iter().filter(|url| url.starts_with(&prefix)).take(shown);
                Ok::<_, Error>(Bookmarks { urls: found.collect() })
            }
        };
        let add = move |_: ExtensionCtx, Added { url }: Added| {
            let mut urls = added.lock().unwrap_or_else(PoisonError::into_inner);
            let is_kept = urls.len() < kept;
            if is_kept {
                urls.push(url);
            }
            async move { if is_kept { Ok(()) } else { Err(Error::user_facing("no more bookmarks are kept")) } }
        };
        let settings = ServerSettings { kept };
        self.extension(Extension::new(ID).settings(settings).request(LIST, list).notification(ADDED, add))
    }
}

/// Declares the extension for a client.
///
/// # Errors
/// If the client declares it already.
pub fn declare(client: ClientBuilder, shown: usize) -> Result<ClientBuilder, InvalidExtension> {
    client.extension(ID, ClientSettings { shown })
}

/// The client's half.
#[derive(Debug)]
pub struct BookmarkClient<'c>(&'c Client);

impl<'c> BookmarkClient<'c> {
    /// Returns the client's half of a client that declares the extension.
    pub fn new(client: &'c Client) -> Self {
        Self(client)
    }

    /// Returns what the server declares; `None` if it does not have the extension.
    ///
    /// # Errors
    /// If the server cannot be reached.
    pub async fn settings(&self) -> Result<Option<ServerSettings>, ClientError> {
        self.0.server_extension(ID).await
    }

    /// Returns the bookmarks that begin with this text.
    ///
    /// # Errors
    /// If the server cannot be reached, or does not have the extension.
    pub async fn list(&self, prefix: &str) -> Result<Vec<String>, ClientError> {
        let found: Bookmarks = self.0.request(LIST, List { prefix: prefix.to_owned() }).await?;
        Ok(found.urls)
    }

    /// Reports a bookmark. The server may not have read it yet when this returns.
    ///
    /// # Errors
    /// If the server cannot be reached.
    pub async fn added(&self, url: &str) -> Result<(), ClientError> {
        self.0.notify(ADDED, Added { url: url.to_owned() }).await
    }
}
