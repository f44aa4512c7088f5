//! Requests that ask nothing: `server/discover` and the lists.

use super::{
    Client,
    client_error::{ClientError, ClientErrorKind},
    fault::RequestFault,
    leg::{Wanted, pick_version},
};
use antiphon_wire::{
    DiscoverResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    OutcomeFault, PageParams, Prompt, Resource, ResourceTemplate, Tool, method, write_request,
};
use serde::de::DeserializeOwned;
use std::collections::HashSet;

/// How many pages of a list are followed.
const MAX_PAGES: usize = 1000;

impl Client {
    /// Asks the server for its versions, capabilities and identity, and remembers them. No call needs it.
    ///
    /// # Errors
    /// [`ClientError`]; also if there is no common version.
    pub async fn discover(&self) -> Result<DiscoverResult, ClientError> {
        let result: DiscoverResult = self.ask(method::DISCOVER, None).await?;
        let version = pick_version(&result.supported_versions)
            .map_err(|fault| self.error(method::DISCOVER, ClientErrorKind::Request(fault)))?;
        let mut known = self.inner.known();
        known.version = version;
        known.capabilities = Some(result.capabilities.clone());
        Ok(result)
    }

    /// Every tool, page after page.
    ///
    /// # Errors
    /// [`ClientError`]; also if the list does not end.
    pub async fn list_tools(&self) -> Result<Vec<Tool>, ClientError> {
        self.pages(method::TOOLS_LIST, |page: ListToolsResult| (page.tools, page.next_cursor)).await
    }

    /// Every prompt, page after page.
    ///
    /// # Errors
    /// [`ClientError`]; also if the list does not end.
    pub async fn list_prompts(&self) -> Result<Vec<Prompt>, ClientError> {
        self.pages(method::PROMPTS_LIST, |page: ListPromptsResult| (page.prompts, page.next_cursor)).await
    }

    /// Every resource, page after page.
    ///
    /// # Errors
    /// [`ClientError`]; also if the list does not end.
    pub async fn list_resources(&self) -> Result<Vec<Resource>, ClientError> {
        self.pages(method::RESOURCES_LIST, |page: ListResourcesResult| (page.resources, page.next_cursor))
            .await
    }

    /// Every template of resources, page after page.
    ///
    /// # Errors
    /// [`ClientError`]; also if the list does not end.
    pub async fn list_resource_templates(&self) -> Result<Vec<ResourceTemplate>, ClientError> {
        self.pages(method::RESOURCE_TEMPLATES_LIST, |page: ListResourceTemplatesResult| {
            (page.resource_templates, page.next_cursor)
        })
        .await
    }

    async fn pages<P: DeserializeOwned, T>(
        &self,
        method: &'static str,
        open: fn(P) -> (Vec<T>, Option<String>),
    ) -> Result<Vec<T>, ClientError> {
        let (mut items, mut seen, mut cursor) = (Vec::new(), HashSet::new(), None);
        for _ in 0..MAX_PAGES {
            let page: P = self.ask(method, cursor).await?;
            let (more, next) = open(page);
            items.extend(more);
            let Some(next) = next else { return Ok(items) };
            if !seen.insert(next.clone()) {
                return Err(self.error(method, ClientErrorKind::CursorRepeated));
            }
            cursor = Some(next);
        }
        Err(self.error(method, ClientErrorKind::TooManyPages { limit: MAX_PAGES }))
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        method: &'static str,
        cursor: Option<String>,
    ) -> Result<T, ClientError> {
        let wanted = Wanted { method, name: None, timeout: self.inner.bounds.leg_timeout };
        let reply = self
            .inner
            .request(&wanted, &|id, meta| write_request(id, method, &PageParams::new(meta, cursor.clone())))
            .await;
        // > Servers **MUST NOT** send `InputRequiredResult` responses on any other client requests.
        let read = |text: &str| {
            serde_json::from_str(text)
                .map_err(|fault| RequestFault::Result { fault: OutcomeFault::Malformed(fault), ask: None })
        };
        reply
            .and_then(|result| read(result.get()))
            .map_err(|fault| self.error(method, ClientErrorKind::Request(fault)))
    }

    fn error(&self, method: &'static str, kind: ClientErrorKind) -> ClientError {
        ClientError::new(self.server(), method, kind)
    }
}
