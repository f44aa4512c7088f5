//! Resources and templates: a URI, and a plain async function that reads it.

use super::{
    Ctx, Handler, HandlerOutcome, IntoOutcome,
    settings::{self, Settings},
    template::UriTemplate,
};
use antiphon_wire::ReadResourceResult;
use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use std::{fmt, sync::Arc};

/// What a resource's function comes to.
pub(super) type Reading = BoxFuture<'static, HandlerOutcome<ReadResourceResult>>;
pub(super) type RunResource = dyn Fn(Ctx) -> Reading + Send + Sync;
pub(super) type RunTemplate = dyn Fn(Ctx, serde_json::Map<String, serde_json::Value>) -> Result<Reading, serde_json::Error>
    + Send
    + Sync;

/// A resource, to be given to [`ServerBuilder::resource`](super::ServerBuilder::resource). It may ask, like a tool.
pub struct Resource {
    pub(super) definition: antiphon_wire::Resource,
    pub(super) settings: Settings,
    pub(super) run: Box<RunResource>,
}

impl Resource {
    /// The resource at exactly this URI.
    pub fn new<F, R>(uri: impl Into<String>, name: impl Into<String>, handler: F) -> Self
    where
        F: for<'a> Handler<'a, (), Output = R>,
        R: IntoOutcome<ReadResourceResult>,
    {
        let handler = Arc::new(handler);
        let run = move |ctx: Ctx| -> Reading {
            let handler = Arc::clone(&handler);
            Box::pin(async move { handler.call(&ctx, ()).await.into_outcome() })
        };
        let definition = antiphon_wire::Resource::new(uri, name);
        Self { definition, settings: Settings::default(), run: Box::new(run) }
    }

    /// What the resource is.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.definition.description = Some(description.into());
        self
    }

    /// Its media type.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.definition.mime_type = Some(mime_type.into());
        self
    }
}

/// A template of resources, to be given to [`ServerBuilder::template`](super::ServerBuilder::template).
pub struct ResourceTemplate {
    pub(super) definition: antiphon_wire::ResourceTemplate,
    pub(super) settings: Settings,
    pub(super) matcher: Result<UriTemplate, String>,
    pub(super) run: Box<RunTemplate>,
}

impl ResourceTemplate {
    /// The resources whose URIs fit the template, such as `report://{id}`. Each `{name}` stands for one or more
    /// characters of the URI other than `/`; `A` takes them as strings, percent-decoded. A decoded value may well hold
    /// `/` and `..`, from `%2F`: a handler that makes a path of it must check.
    pub fn new<A, F, R>(uri_template: impl Into<String>, name: impl Into<String>, handler: F) -> Self
    where
        A: DeserializeOwned + Send + 'static,
        F: for<'a> Handler<'a, (A,), Output = R>,
        R: IntoOutcome<ReadResourceResult>,
    {
        let handler = Arc::new(handler);
        let run = move |ctx: Ctx, variables| -> Result<Reading, serde_json::Error> {
            let variables: A = serde_json::from_value(serde_json::Value::Object(variables))?;
            let handler = Arc::clone(&handler);
            Ok(Box::pin(async move { handler.call(&ctx, (variables,)).await.into_outcome() }))
        };
        let definition = antiphon_wire::ResourceTemplate::new(uri_template, name);
        let matcher = UriTemplate::parse(&definition.uri_template);
        Self { definition, settings: Settings::default(), matcher, run: Box::new(run) }
    }

    /// What the resources are.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.definition.description = Some(description.into());
        self
    }

    /// The media type of them all.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.definition.mime_type = Some(mime_type.into());
        self
    }
}

settings::setters!(Resource);

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resource").field("uri", &self.definition.uri).finish_non_exhaustive()
    }
}

settings::setters!(ResourceTemplate);

impl fmt::Debug for ResourceTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceTemplate").field("uri", &self.definition.uri_template).finish_non_exhaustive()
    }
}
