//! Requests that ask nothing: `server/discover`, the lists, and completion.

use crate::{
    Client, Inner,
    cache::Key,
    client_error::{ClientError, ClientErrorKind},
    fault::RequestFault,
    leg::{Wanted, Write, pick_version},
};
use antiphon_wire::{
    CompleteParams, CompleteResult, Completion, CompletionArgument, CompletionContext, CompletionReference,
    DiscoverResult, ErrorCode, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    OutcomeFault, PageParams, Prompt, RequestId, Resource, ResourceTemplate, Tool, method, write_request,
};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::collections::HashSet;

/// How many pages of a list are followed.
const MAX_PAGES: usize = 1000;
/// How much of a list is read, in bytes of its pages' text.
const MAX_LIST: usize = 64 * 1024 * 1024;

/// Where a result may come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// From the server, or from what it said before, while that is fresh.
    Either,
    /// From the server.
    Server,
}

impl Client {
    /// Asks the server for its versions, capabilities and identity, and remembers them. No call needs it. A result that
    /// is still fresh is given again. Of a legacy server, it is what `initialize` told.
    ///
    /// # Errors
    /// [`ClientError`]; also if there is no common version.
    pub async fn discover(&self) -> Result<DiscoverResult, ClientError> {
        let error = |fault| self.error(method::DISCOVER, ClientErrorKind::Request(fault));
        let fetched = self.inner.fetch(Key::Discover, Source::Either, method::DISCOVER, &|id, meta| {
            write_request(id, method::DISCOVER, &PageParams::new(meta, None))
        });
        let Fetched { result, sent_for, .. }: Fetched<DiscoverResult> = fetched.await.map_err(error)?;
        if sent_for {
            let is_modern = self.inner.session_now().is_none();
            let version =
                is_modern.then(|| pick_version(&result.supported_versions)).transpose().map_err(error)?;
            let mut known = self.inner.known();
            if let Some(version) = version {
                known.version = version;
            }
            known.capabilities = Some(result.capabilities.clone());
        }
        Ok(result)
    }

    /// Every tool, page after page. Pages that are still fresh are not asked for again.
    ///
    /// Schemas are given as the text the server sent; no `$ref` in them is followed. Calls use what was listed last: it
    /// says which arguments HTTP repeats in headers, and what results must look like. On HTTP, a tool that asks for
    /// impossible headers is left out, with a warning in the log.
    ///
    /// # Errors
    /// [`ClientError`]; also if the list does not end.
    pub async fn list_tools(&self) -> Result<Vec<Tool>, ClientError> {
        self.inner.tools(Source::Either).await.map_err(|kind| self.error(method::TOOLS_LIST, kind))
    }

    /// Every prompt, page after page. Pages that are still fresh are not asked for again.
    ///
    /// # Errors
    /// [`ClientError`]; also if the list does not end.
    pub async fn list_prompts(&self) -> Result<Vec<Prompt>, ClientError> {
        self.list(method::PROMPTS_LIST, |page: ListPromptsResult| (page.prompts, page.next_cursor)).await
    }

    /// Every resource, page after page. Pages that are still fresh are not asked for again.
    ///
    /// # Errors
    /// [`ClientError`]; also if the list does not end.
    pub async fn list_resources(&self) -> Result<Vec<Resource>, ClientError> {
        self.list(method::RESOURCES_LIST, |page: ListResourcesResult| (page.resources, page.next_cursor))
            .await
    }

    /// Every template of resources, page after page. Pages that are still fresh are not asked for again.
    ///
    /// # Errors
    /// [`ClientError`]; also if the list does not end.
    pub async fn list_resource_templates(&self) -> Result<Vec<ResourceTemplate>, ClientError> {
        self.list(method::RESOURCE_TEMPLATES_LIST, |page: ListResourceTemplatesResult| {
            (page.resource_templates, page.next_cursor)
        })
        .await
    }

    /// Suggestions for an argument of a prompt, or a variable of a resource template, as far as it is typed.
    ///
    /// `context` holds the arguments that have a value already. Nothing is kept: whoever asks at every key should wait
    /// until the typing pauses.
    ///
    /// > Clients **SHOULD**: Debounce rapid completion requests
    ///
    /// # Errors
    /// [`ClientError`]; a server that completes nothing refuses the method.
    pub async fn complete(
        &self,
        reference: CompletionReference,
        argument: impl Into<String>,
        value: impl Into<String>,
        context: Option<CompletionContext>,
    ) -> Result<Completion, ClientError> {
        let argument = CompletionArgument::new(argument, value);
        let wanted = Wanted::single(method::COMPLETION_COMPLETE, self.inner.bounds.leg_timeout);
        let write = |id: &RequestId, meta| {
            let mut params = CompleteParams::new(reference.clone(), argument.clone(), meta);
            params.context = context.clone();
            write_request(id, method::COMPLETION_COMPLETE, &params)
        };
        let result = self.inner.request(&wanted, &write).await;
        result
            .and_then(|result| read::<CompleteResult>(&result))
            .map(|result| result.completion)
            .map_err(|fault| self.error(method::COMPLETION_COMPLETE, ClientErrorKind::Request(fault)))
    }

    /// Forgets what was listed, discovered and read, whatever the server said of its freshness: the next request of
    /// each kind is sent. For when this client goes on as somebody else, see
    /// [`no_cache`](super::ClientBuilder::no_cache).
    pub fn clear_cache(&self) {
        self.inner.cache.clear();
    }

    async fn list<P: DeserializeOwned, T>(
        &self,
        method: &'static str,
        open: fn(P) -> (Vec<T>, Option<String>),
    ) -> Result<Vec<T>, ClientError> {
        let pages = self.inner.pages(method, Source::Either, open).await;
        pages.map(|(items, _)| items).map_err(|kind| self.error(method, kind))
    }

    fn error(&self, method: &'static str, kind: ClientErrorKind) -> ClientError {
        ClientError::new(self.server(), method, kind)
    }
}

impl Inner {
    /// The pages of a list as one, and whether any of them was sent for.
    ///
    /// > If a cursor becomes invalid (e.g., the server returns an error for a previously valid cursor), the client
    /// > **SHOULD** discard all cached pages and re-fetch from the beginning.
    pub(crate) async fn pages<P: DeserializeOwned, T>(
        &self,
        method: &'static str,
        from: Source,
        open: fn(P) -> (Vec<T>, Option<String>),
    ) -> Result<(Vec<T>, bool), ClientErrorKind> {
        match self.pages_once(method, from, open).await {
            Err(Broken::Cursor(fault)) => {
                tracing::debug!(method, %fault, "a cursor is not valid any more: the list is read again");
                self.cache.drop_pages(method);
                self.pages_once(method, from, open).await.map_err(Broken::into_kind)
            }
            other => other.map_err(Broken::into_kind),
        }
    }

    async fn pages_once<P: DeserializeOwned, T>(
        &self,
        method: &'static str,
        from: Source,
        open: fn(P) -> (Vec<T>, Option<String>),
    ) -> Result<(Vec<T>, bool), Broken> {
        let (mut items, mut seen, mut cursor, mut any_fetched) = (Vec::new(), HashSet::new(), None, false);
        let mut read = 0;
        for _ in 0..MAX_PAGES {
            let key = Key::Page(method, cursor.clone());
            let write =
                |id: &RequestId, meta| write_request(id, method, &PageParams::new(meta, cursor.clone()));
            let page: Fetched<P> =
                self.fetch(key, from, method, &write).await.map_err(|fault| match &fault {
                    // > Invalid cursors **SHOULD** result in an error with code -32602 (Invalid params).
                    RequestFault::Server(error)
                        if cursor.is_some() && error.code == ErrorCode::INVALID_PARAMS =>
                    {
                        Broken::Cursor(fault)
                    }
                    _ => Broken::Otherwise(ClientErrorKind::Request(fault)),
                })?;
            any_fetched |= page.sent_for;
            read += page.bytes;
            if read > MAX_LIST {
                return Err(Broken::Otherwise(ClientErrorKind::ListTooLong { limit: MAX_LIST }));
            }
            let (more, next) = open(page.result);
            items.extend(more);
            let Some(next) = next else { return Ok((items, any_fetched)) };
            if !seen.insert(next.clone()) {
                return Err(Broken::Otherwise(ClientErrorKind::CursorRepeated));
            }
            cursor = Some(next);
        }
        Err(Broken::Otherwise(ClientErrorKind::TooManyPages { limit: MAX_PAGES }))
    }

    /// A result that may be kept.
    async fn fetch<T: DeserializeOwned>(
        &self,
        key: Key,
        from: Source,
        method: &'static str,
        write: &Write<'_>,
    ) -> Result<Fetched<T>, RequestFault> {
        if from == Source::Either
            && let Some(kept) = self.cache.get(&key)
        {
            return Ok(Fetched { result: read(&kept)?, sent_for: false, bytes: kept.get().len() });
        }
        let asked = self.cache.generation(&key);
        let wanted = Wanted::single(method, self.bounds.leg_timeout);
        let text = self.request(&wanted, write).await?;
        let result = read(&text)?;
        self.cache.put(key, asked, &text);
        Ok(Fetched { result, sent_for: true, bytes: text.get().len() })
    }
}

/// A result that may be kept.
struct Fetched<T> {
    result: T,
    /// It did not come from what was kept.
    sent_for: bool,
    /// How long its text is.
    bytes: usize,
}

/// Why a list ended early.
enum Broken {
    /// The server does not know the cursor of a page.
    Cursor(RequestFault),
    Otherwise(ClientErrorKind),
}

impl Broken {
    fn into_kind(self) -> ClientErrorKind {
        match self {
            Self::Cursor(fault) => ClientErrorKind::Request(fault),
            Self::Otherwise(kind) => kind,
        }
    }
}

/// > Servers **MUST NOT** send `InputRequiredResult` responses on any other client requests.
fn read<T: DeserializeOwned>(result: &RawValue) -> Result<T, RequestFault> {
    serde_json::from_str(result.get())
        .map_err(|fault| RequestFault::Result { fault: OutcomeFault::Malformed(fault), ask: None })
}
