//! The lists of a server, and the data that calls use from them.

pub(crate) mod tools;

use crate::{
    cache::{Cache, Key},
    request::{BodyWriter, RequestSpec, fault::RequestFault},
    session::Connection,
};
use antiphon_wire::{
    ErrorCode, ForeignText, OutcomeFault, PageParams, RequestId, escaped, lenient,
    method::{self, TASKS_LIST},
    write_request,
};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::{collections::HashSet, sync::Arc};

/// The maximum number of pages of a list that are followed.
const MAX_PAGES: usize = 1000;
/// The maximum size of a list, in bytes of its pages' text.
const MAX_LIST: usize = 64 * 1024 * 1024;

/// The source of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The cache while its result is fresh, else the server.
    Either,
    /// The server.
    Server,
}

/// The lists of a server, and other results that may be kept.
pub(crate) struct ServerLists {
    pub(crate) connection: Arc<Connection>,
}

impl ServerLists {
    pub(crate) fn cache(&self) -> &Cache {
        &self.connection.core.cache
    }

    /// The items of all pages of a list, and `true` if any page was fetched from the server.
    ///
    /// > If a cursor becomes invalid (e.g., the server returns an error for a previously valid cursor), the client
    /// > **SHOULD** discard all cached pages and re-fetch from the beginning.
    pub(crate) async fn pages<P: DeserializeOwned, T: DeserializeOwned>(
        &self,
        method: &'static str,
        from: Source,
        open: fn(P) -> (Vec<T>, Option<String>),
    ) -> Result<(Vec<T>, bool), ListFault> {
        match self.pages_once(method, from, open).await {
            Err(PageFault::Cursor(fault)) => {
                tracing::debug!(method, fault = %escaped(&fault), "a cursor is not valid any more: the list is read again");
                self.cache().drop_pages(method);
                self.pages_once(method, from, open).await.map_err(PageFault::into_kind)
            }
            other => other.map_err(PageFault::into_kind),
        }
    }

    async fn pages_once<P: DeserializeOwned, T: DeserializeOwned>(
        &self,
        method: &'static str,
        from: Source,
        open: fn(P) -> (Vec<T>, Option<String>),
    ) -> Result<(Vec<T>, bool), PageFault> {
        let (mut items, mut seen, mut cursor, mut any_fetched) = (Vec::new(), HashSet::new(), None, false);
        let mut read = 0;
        for _ in 0..MAX_PAGES {
            let key = Key::Page(method, cursor.clone());
            let write =
                |id: &RequestId, meta| write_request(id, method, &PageParams::new(meta, cursor.clone()));
            let decode = |page: &RawValue, is_new: bool| read_page::<P, T>(method, page, is_new);
            let page: FetchedResult<P> =
                self.fetch_with(key, from, method, &write, decode).await.map_err(|fault| match &fault {
                    // > Invalid cursors **SHOULD** result in an error with code -32602 (Invalid params).
                    RequestFault::Server(error)
                        if cursor.is_some() && error.code == ErrorCode::INVALID_PARAMS =>
                    {
                        PageFault::Cursor(fault)
                    }
                    _ => PageFault::Otherwise(ListFault::Request(fault)),
                })?;
            any_fetched |= page.fetched;
            read += page.bytes;
            if read > MAX_LIST {
                return Err(PageFault::Otherwise(ListFault::ListTooLong { limit: MAX_LIST }));
            }
            let (more, next) = open(page.result);
            // Some servers mean the end by an empty cursor, and answer it with the first page again.
            if cursor.as_deref() == Some("") && next.as_ref().is_some_and(|next| seen.contains(next)) {
                return Ok((items, any_fetched));
            }
            items.extend(more);
            let Some(next) = next else { return Ok((items, any_fetched)) };
            if !seen.insert(next.clone()) {
                return Err(PageFault::Otherwise(ListFault::CursorRepeated));
            }
            cursor = Some(next);
        }
        Err(PageFault::Otherwise(ListFault::TooManyPages { limit: MAX_PAGES }))
    }

    /// A result that may be kept, from the cache or from the server.
    pub(crate) async fn fetch<T: DeserializeOwned>(
        &self,
        key: Key,
        from: Source,
        method: &'static str,
        write: &BodyWriter<'_>,
    ) -> Result<FetchedResult<T>, RequestFault> {
        self.fetch_with(key, from, method, write, |result, _| read(result)).await
    }

    /// The same with another reader, whose second argument is `true` if the result is from the server.
    async fn fetch_with<T>(
        &self,
        key: Key,
        from: Source,
        method: &'static str,
        write: &BodyWriter<'_>,
        read: impl Fn(&RawValue, bool) -> Result<T, RequestFault>,
    ) -> Result<FetchedResult<T>, RequestFault> {
        if from == Source::Either
            && let Some(kept) = self.cache().get(&key)
        {
            return Ok(FetchedResult {
                result: read(&kept, false)?,
                fetched: false,
                bytes: kept.get().len(),
            });
        }
        let asked = self.cache().generation(&key);
        let core = &self.connection.core;
        let spec = RequestSpec {
            // The extension has no list of tasks.
            draft: core.draft_tasks && method == TASKS_LIST,
            ..RequestSpec::single(method, core.bounds.leg_timeout)
        };
        let text = self.connection.request(&spec, write).await?;
        let result = read(&text, true)?;
        self.cache().put(key, asked, &text);
        Ok(FetchedResult { result, fetched: true, bytes: text.get().len() })
    }
}

/// A result that may be kept.
pub(crate) struct FetchedResult<T> {
    pub(crate) result: T,
    /// `true` if the result is from the server, not from the cache.
    pub(crate) fetched: bool,
    /// The length of its text in bytes.
    bytes: usize,
}

/// The reason why a list has no result.
pub(crate) enum ListFault {
    /// A request for a page has no result.
    Request(RequestFault),
    /// The list returned the cursor of an earlier page again.
    CursorRepeated,
    /// The list has more pages than are followed.
    TooManyPages { limit: usize },
    /// The list has more bytes than are read.
    ListTooLong { limit: usize },
}

/// The reason why a list ended early.
enum PageFault {
    /// The server refused the cursor of a page as unknown.
    Cursor(RequestFault),
    Otherwise(ListFault),
}

impl PageFault {
    fn into_kind(self) -> ListFault {
        match self {
            Self::Cursor(fault) => ListFault::Request(fault),
            Self::Otherwise(kind) => kind,
        }
    }
}

/// Reads a page. Entries that do not decode are left out, with a warning if the page is new.
fn read_page<P: DeserializeOwned, T: DeserializeOwned>(
    method: &str,
    page: &RawValue,
    is_new: bool,
) -> Result<P, RequestFault> {
    let list = match method {
        method::RESOURCE_TEMPLATES_LIST => "resourceTemplates",
        other => other.strip_suffix("/list").unwrap_or(other),
    };
    let (page, left_out) = lenient::page::<P, T>(page, list).map_err(malformed)?;
    let others = left_out.count - left_out.first.len();
    for entry in left_out.first.into_iter().filter(|_| is_new) {
        let (index, reason) = (entry.index, ForeignText::new(entry.reason));
        let name = ForeignText::new(entry.name.unwrap_or_default());
        tracing::warn!(list, %name, index, %reason, "an entry of the server's list is left out");
    }
    if is_new && others > 0 {
        tracing::warn!(list, others, "other entries of the server's list are left out");
    }
    Ok(page)
}

fn malformed(fault: serde_json::Error) -> RequestFault {
    RequestFault::Result { fault: OutcomeFault::Malformed(fault), ask: None }
}

/// Reads the result of a request that asks nothing.
///
/// > Servers **MUST NOT** send `InputRequiredResult` responses on any other client requests.
pub(crate) fn read<T: DeserializeOwned>(result: &RawValue) -> Result<T, RequestFault> {
    serde_json::from_str(result.get()).map_err(malformed)
}
