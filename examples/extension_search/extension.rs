//! The extension, as a crate of its own would export it: its names and types, the server's half and the client's half.

use antiphon::{
    Error,
    client::{Client, ClientError},
    server::extensions::{Extension, ExtensionCtx},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

pub(crate) const ID: &str = "com.example/search";
pub(crate) const QUERY: &str = "com.example/search.query";
pub(crate) const VIEWED: &str = "notifications/com.example/search.viewed";

/// The settings of a server.
#[derive(Deserialize, Serialize)]
pub(crate) struct ServerSettings {
    /// The number of titles that can be found.
    pub(crate) titles: usize,
}

/// The settings of a client.
#[derive(Deserialize, Serialize)]
pub(crate) struct ClientSettings {
    /// The maximum number of titles that the client shows.
    pub(crate) most: usize,
}

#[derive(Deserialize, Serialize)]
struct Query<'a> {
    text: std::borrow::Cow<'a, str>,
}

#[derive(Deserialize, Serialize)]
struct Viewed {
    title: String,
}

/// The result of a query: the titles that were viewed most come first.
#[derive(Deserialize, Serialize)]
pub(crate) struct Found {
    pub(crate) titles: Vec<String>,
}

/// The titles of a server, with the number of their views.
pub(crate) struct Index(Mutex<BTreeMap<String, u32>>);

impl Index {
    pub(crate) fn new(titles: &[&str]) -> Arc<Self> {
        Arc::new(Self(Mutex::new(titles.iter().map(|title| ((*title).to_owned(), 0)).collect())))
    }

    fn find(&self, ctx: &ExtensionCtx, text: &str) -> Result<Found, Error> {
        if text.is_empty() {
            return Err("Search for one letter or more".into());
        }
        let most = ctx.settings::<ClientSettings>()?.map_or(usize::MAX, |settings| settings.most);
        let index = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found: Vec<_> = index.iter().filter(|(title, _)| title.contains(text)).collect();
        found.sort_by_key(|(_, views)| std::cmp::Reverse(**views));
        Ok(Found { titles: found.into_iter().take(most).map(|(title, _)| title.clone()).collect() })
    }

    fn view(&self, title: &str) {
        if let Some(views) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get_mut(title) {
            *views += 1;
        }
    }
}

/// The server's half.
pub(crate) fn extension(index: Arc<Index>) -> Extension {
    let titles = index.0.lock().unwrap_or_else(PoisonError::into_inner).len();
    let viewed = Arc::clone(&index);
    Extension::new(ID)
        .settings(ServerSettings { titles })
        .request(QUERY, move |ctx: ExtensionCtx, query: Query<'static>| {
            let index = Arc::clone(&index);
            async move { index.find(&ctx, &query.text) }
        })
        .notification(VIEWED, move |_: ExtensionCtx, Viewed { title }: Viewed| {
            let index = Arc::clone(&viewed);
            async move {
                index.view(&title);
                Ok::<_, Error>(())
            }
        })
}

/// The client's half.
pub(crate) async fn query(client: &Client, text: &str) -> Result<Found, ClientError> {
    client.request(QUERY, Query { text: text.into() }).await
}

/// Reports that a person viewed a title.
pub(crate) async fn viewed(client: &Client, title: &str) -> Result<(), ClientError> {
    client.notify(VIEWED, Viewed { title: title.to_owned() }).await
}
