//! Resources and templates: a URI, and a plain async function that reads it.

use crate::{
    BuildError, CacheHint, Completing, Ctx, Handler, IntoCompletions, IntoOutcome,
    call::{DriveResult, drive},
    offer::{completion::Completers, list::ListItem, template::UriTemplate, uri::is_uri},
    settings::{self, Settings},
    subscribe::registry::ListKind,
};
use antiphon_wire::{Annotations, ReadResourceResult};
use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use std::{fmt, future::Future, sync::Arc};

/// What a resource's function comes to.
pub(crate) type ReadFuture = BoxFuture<'static, DriveResult<ReadResourceResult>>;
pub(crate) type RunResource = dyn Fn(Ctx) -> ReadFuture + Send + Sync;
pub(crate) type RunTemplate = dyn Fn(Ctx, serde_json::Map<String, serde_json::Value>) -> Result<ReadFuture, serde_json::Error>
    + Send
    + Sync;

/// A resource, to be given to [`ServerBuilder::resource`](super::ServerBuilder::resource). It may ask, like a tool.
pub struct Resource {
    pub(crate) definition: antiphon_wire::Resource,
    pub(crate) settings: Settings,
    pub(crate) cache: CacheHint,
    pub(crate) run: Box<RunResource>,
}

impl Resource {
    /// The resource at exactly this URI.
    pub fn new<F, R>(uri: impl Into<String>, name: impl Into<String>, handler: F) -> Self
    where
        F: for<'a> Handler<'a, (), Output = R>,
        R: IntoOutcome<ReadResourceResult>,
    {
        let handler = Arc::new(handler);
        let run = move |ctx: Ctx| -> ReadFuture {
            let handler = Arc::clone(&handler);
            Box::pin(async move { drive(&ctx, handler.call(&ctx, ())).await })
        };
        Self::from_parts(uri, name, Box::new(run))
    }

    /// A resource of what was made of its handler.
    pub(crate) fn from_parts(uri: impl Into<String>, name: impl Into<String>, run: Box<RunResource>) -> Self {
        let definition = antiphon_wire::Resource::new(uri, name);
        Self { definition, settings: Settings::default(), cache: CacheHint::default(), run }
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

    /// Its size in bytes, before any encoding.
    #[must_use]
    pub fn size(mut self, bytes: u64) -> Self {
        self.definition.size = Some(bytes);
        self
    }
}

/// A template of resources, to be given to [`ServerBuilder::template`](super::ServerBuilder::template).
pub struct ResourceTemplate {
    pub(crate) definition: antiphon_wire::ResourceTemplate,
    pub(crate) settings: Settings,
    pub(crate) cache: CacheHint,
    pub(crate) completers: Completers,
    pub(crate) matcher: Result<UriTemplate, String>,
    pub(crate) run: Box<RunTemplate>,
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
        let run = move |ctx: Ctx, variables| -> Result<ReadFuture, serde_json::Error> {
            let variables: A = serde_json::from_value(serde_json::Value::Object(variables))?;
            let handler = Arc::clone(&handler);
            Ok(Box::pin(async move { drive(&ctx, handler.call(&ctx, (variables,))).await }))
        };
        Self::from_parts(uri_template, name, Box::new(run))
    }

    /// A template of what was made of its handler.
    pub(crate) fn from_parts(
        uri_template: impl Into<String>,
        name: impl Into<String>,
        run: Box<RunTemplate>,
    ) -> Self {
        let definition = antiphon_wire::ResourceTemplate::new(uri_template, name);
        let matcher = UriTemplate::parse(&definition.uri_template);
        Self {
            definition,
            settings: Settings::default(),
            cache: CacheHint::default(),
            completers: Completers::default(),
            matcher,
            run,
        }
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

    /// Suggests values for a variable while it is typed. See [`Prompt::complete`](super::Prompt::complete).
    #[must_use]
    pub fn complete<F, Fut>(mut self, variable: impl Into<String>, complete: F) -> Self
    where
        F: Fn(Completing) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoCompletions> + Send + 'static,
    {
        self.completers.add(variable.into(), complete);
        self
    }

    /// The variables' values, if the URI fits.
    pub(crate) fn variables(&self, uri: &str) -> Option<serde_json::Map<String, serde_json::Value>> {
        self.matcher.as_ref().ok()?.variables(uri)
    }

    pub(crate) fn has_variable(&self, name: &str) -> bool {
        self.matcher.as_ref().is_ok_and(|matcher| matcher.names().any(|known| known == name))
    }
}

macro_rules! resource_setters {
    ($type:ident) => {
        impl $type {
            /// For whom it is, how important it is, when it last changed.
            #[must_use]
            pub fn annotations(mut self, annotations: Annotations) -> Self {
                self.definition.annotations = Some(annotations);
                self
            }

            /// For how long what was read may be kept, and for whom. Default: not at all.
            ///
            /// A handler that gives a whole [`ReadResourceResult`] with a hint of its own is not overruled; and what was
            /// read with the help of answers is never to be kept.
            #[must_use]
            pub fn cache(mut self, hint: CacheHint) -> Self {
                self.cache = hint;
                self
            }
        }
    };
}

settings::setters!(Resource);
settings::definition_setters!(Resource);
resource_setters!(Resource);

impl ListItem for Resource {
    type Definition = antiphon_wire::Resource;
    const MEMBER: &'static str = "resources";
    const KIND: ListKind = ListKind::Resources;
    const TWO: &'static str = "resources at";
    const ADVICE: &'static str = "";

    fn definition(&self) -> &antiphon_wire::Resource {
        &self.definition
    }

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn key(&self) -> &str {
        &self.definition.uri
    }

    fn check(&self) -> Result<(), BuildError> {
        let uri = self.key();
        if is_uri(uri) { Ok(()) } else { Err(BuildError(format!("{uri:?} is not a URI: see RFC 3986"))) }
    }
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resource").field("uri", &self.definition.uri).finish_non_exhaustive()
    }
}

settings::setters!(ResourceTemplate);
settings::definition_setters!(ResourceTemplate);
resource_setters!(ResourceTemplate);

impl ListItem for ResourceTemplate {
    type Definition = antiphon_wire::ResourceTemplate;
    const MEMBER: &'static str = "resourceTemplates";
    /// Templates are resources too: there is no notification of their own.
    const KIND: ListKind = ListKind::Resources;
    const TWO: &'static str = "templates";
    const ADVICE: &'static str = ": the second would never be read";

    fn definition(&self) -> &antiphon_wire::ResourceTemplate {
        &self.definition
    }

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn key(&self) -> &str {
        &self.definition.uri_template
    }

    fn check(&self) -> Result<(), BuildError> {
        let template = self.key();
        let matcher = self
            .matcher
            .as_ref()
            .map_err(|fault| BuildError(format!("the template `{template}` cannot be matched: {fault}")))?;
        // Every value that is percent-encoded makes a URI, if one value does.
        if !is_uri(&matcher.with_each("x")) {
            return Err(BuildError(format!("the template {template:?} makes no URI: see RFC 3986")));
        }
        let names: Vec<&str> = matcher.names().collect();
        self.completers.check(&format!("template `{template}`"), "variable", &names)
    }
}

impl fmt::Debug for ResourceTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceTemplate").field("uri", &self.definition.uri_template).finish_non_exhaustive()
    }
}
