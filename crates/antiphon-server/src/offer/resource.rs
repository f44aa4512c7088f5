//! Resources and templates: a URI, and an async function that reads it.

use crate::{
    call::{
        DriveResult,
        ctx::Ctx,
        drive,
        handler::{Handler, IntoOutcome},
    },
    errors::BuildError,
    feed::ListKind,
    in_place::boxed,
    offer::{
        CacheHint, PerCaller,
        completion::{Completers, Completing, IntoCompletions},
        list::ListItem,
        per_caller_setters,
    },
    options::{self, Settings},
};
use antiphon_wire::{
    Annotations, ReadResourceResult,
    uri_template::{InvalidTemplate, UriTemplate},
};
use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use std::{borrow::Borrow, fmt, future::Future, pin::pin, sync::Arc};

/// The future of a resource's handler.
pub(crate) type ReadFuture = BoxFuture<'static, DriveResult<ReadResourceResult>>;
pub(crate) type RunResource = dyn Fn(Ctx) -> ReadFuture + Send + Sync;
pub(crate) type RunTemplate = dyn Fn(Ctx, serde_json::Map<String, serde_json::Value>) -> Result<ReadFuture, serde_json::Error>
    + Send
    + Sync;

/// A resource, registered with [`ServerBuilder::resource`](crate::ServerBuilder::resource). Its handler may ask, like
/// that of a tool.
pub struct Resource {
    pub(crate) definition: antiphon_wire::Resource,
    pub(crate) settings: Settings,
    pub(crate) per_caller: PerCaller<antiphon_wire::Resource>,
    pub(crate) cache: CacheHint,
    pub(crate) run: Box<RunResource>,
}

impl Resource {
    /// Returns the resource at exactly this URI.
    ///
    /// A value, such as a connection pool, comes from [`with_state`](crate::with_state): an async closure that captures it is no
    /// handler, and the compiler then says that the closure does not implement `Fn`.
    pub fn new<F, R>(uri: impl Into<String>, name: impl Into<String>, handler: F) -> Self
    where
        F: for<'a> Handler<'a, (), Output = R>,
        R: IntoOutcome<ReadResourceResult>,
    {
        let handler = Arc::new(handler);
        let run = move |ctx: Ctx| -> ReadFuture {
            let handler = Arc::clone(&handler);
            Box::into_pin(boxed(|| async move { drive(&ctx, pin!(handler.call(&ctx, ()))).await }))
        };
        Self::from_parts(uri, name, Box::new(run))
    }

    /// Returns a resource with the parts that were made from its handler.
    pub(crate) fn from_parts(uri: impl Into<String>, name: impl Into<String>, run: Box<RunResource>) -> Self {
        let definition = antiphon_wire::Resource::new(uri, name);
        Self {
            definition,
            settings: Settings::default(),
            per_caller: PerCaller::default(),
            cache: CacheHint::default(),
            run,
        }
    }

    /// Sets the description of the resource.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.definition.description = Some(description.into());
        self
    }

    /// Sets the media type.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.definition.mime_type = Some(mime_type.into());
        self
    }

    /// Sets the size in bytes, before any encoding.
    #[must_use]
    pub fn size(mut self, bytes: u64) -> Self {
        self.definition.size = Some(bytes);
        self
    }
}

/// A template of resources, registered with [`ServerBuilder::template`](crate::ServerBuilder::template).
pub struct ResourceTemplate {
    pub(crate) definition: antiphon_wire::ResourceTemplate,
    pub(crate) settings: Settings,
    pub(crate) per_caller: PerCaller<antiphon_wire::ResourceTemplate>,
    pub(crate) cache: CacheHint,
    pub(crate) completers: Completers,
    pub(crate) matcher: Result<UriTemplate, InvalidTemplate>,
    pub(crate) run: Box<RunTemplate>,
}

impl ResourceTemplate {
    /// Returns the resources whose URIs match the template of RFC 6570, such as `report://{id}`, `file:///{+path}` and
    /// `log://{service}{/path*}{?q,limit}`.
    ///
    /// | expression | values that it matches |
    /// |---|---|
    /// | `{id}`, `{/id}`, `{.id}`, `{x,y}` | one or more characters other than `/`, `?` and `#` each |
    /// | `{+path}`, `{#path}` | one or more characters, also `/` |
    /// | `{/path*}`, `{.kind*}`, `{names*}` | one or more values, as a list |
    /// | `{?q,limit}`, `{&q}`, `{;q}` | parameters in any order. Each may be missing |
    /// | `{?tag*}` | a parameter that may occur several times, as a list, which may be empty |
    ///
    /// A URI with a parameter that the template does not name does not match. Where a template leaves a choice, each value
    /// takes as few characters as possible, from left to right. Prefixes of level 4, such as `{id:3}`, are not supported: the
    /// server does not build. A URI of more than 8 KiB does not match.
    ///
    /// `A` receives the values as strings, or lists of strings for variables with `*`, percent-decoded once. A decoded value
    /// may contain `/` and `..`, also from `%2F`: a handler that uses it as a path must check it.
    ///
    /// A value, such as a connection pool, comes from [`with_state`](crate::with_state): an async closure that captures it is no
    /// handler, and the compiler then says that the closure does not implement `Fn`.
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
            Ok(Box::into_pin(boxed(
                || async move { drive(&ctx, pin!(handler.call(&ctx, (variables,)))).await },
            )))
        };
        Self::from_parts(uri_template, name, Box::new(run))
    }

    /// Returns a template with the parts that were made from its handler.
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
            per_caller: PerCaller::default(),
            cache: CacheHint::default(),
            completers: Completers::default(),
            matcher,
            run,
        }
    }

    /// Sets the description of the resources.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.definition.description = Some(description.into());
        self
    }

    /// Sets the media type of all resources.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.definition.mime_type = Some(mime_type.into());
        self
    }

    /// Suggests values for a variable while it is typed. See [`Prompt::complete`](crate::Prompt::complete).
    #[must_use]
    pub fn complete<F, Fut>(mut self, variable: impl Into<String>, complete: F) -> Self
    where
        F: Fn(Completing) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoCompletions> + Send + 'static,
    {
        self.completers.add(variable.into(), complete);
        self
    }

    /// Returns the variables' values, if the URI matches.
    pub(crate) fn variables(&self, uri: &str) -> Option<serde_json::Map<String, serde_json::Value>> {
        self.matcher.as_ref().ok()?.matches(uri)
    }

    pub(crate) fn has_variable(&self, name: &str) -> bool {
        self.matcher.as_ref().is_ok_and(|matcher| matcher.names().any(|known| known == name))
    }
}

/// Returns the template that a URI is read from, and the values of its variables: of the templates that match and are admitted, the one with the
/// most literal characters; of two with equally many, the one with fewer variables that may hold a `/` or are lists; then the first.
pub(crate) fn most_literal<T: Borrow<ResourceTemplate>>(
    templates: impl Iterator<Item = T>,
    uri: &str,
    admits: impl Fn(&ResourceTemplate) -> bool,
) -> Option<(T, serde_json::Map<String, serde_json::Value>)> {
    let mut best: Option<(_, T, _)> = None;
    for template in templates {
        let candidate: &ResourceTemplate = template.borrow();
        let Ok(matcher) = &candidate.matcher else { continue };
        let rank = matcher.rank();
        if best.as_ref().is_some_and(|(least, ..)| *least <= rank) {
            continue;
        }
        if let Some(variables) = matcher.matches(uri).filter(|_| admits(candidate)) {
            best = Some((rank, template, variables));
        }
    }
    best.map(|(_, template, variables)| (template, variables))
}

macro_rules! resource_setters {
    ($type:ident) => {
        impl $type {
            /// Sets the audience, the importance and the time of the last change.
            #[must_use]
            pub fn annotations(mut self, annotations: Annotations) -> Self {
                self.definition.annotations = Some(annotations);
                self
            }

            /// Sets how long clients may cache what was read, and for whom. Default: not at all.
            ///
            /// A handler that returns a [`ReadResourceResult`] with its own hint overrides this one. A result that used
            /// answers is never cached.
            #[must_use]
            pub fn cache(mut self, hint: CacheHint) -> Self {
                self.cache = hint;
                self
            }
        }
    };
}

options::setters!(Resource);
options::definition_setters!(Resource);
per_caller_setters!(Resource, "The URI and the name");
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

    fn per_caller(&self) -> &PerCaller<antiphon_wire::Resource> {
        &self.per_caller
    }

    fn keep(before: antiphon_wire::Resource, changed: &mut antiphon_wire::Resource) {
        (changed.uri, changed.name) = (before.uri, before.name);
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

options::setters!(ResourceTemplate);
options::definition_setters!(ResourceTemplate);
per_caller_setters!(ResourceTemplate, "The URI template and the name");
resource_setters!(ResourceTemplate);

impl ListItem for ResourceTemplate {
    type Definition = antiphon_wire::ResourceTemplate;
    const MEMBER: &'static str = "resourceTemplates";
    /// Templates have no notification of their own; that of resources covers them.
    const KIND: ListKind = ListKind::Resources;
    const TWO: &'static str = "templates";
    const ADVICE: &'static str = ": the second would never be read";

    fn definition(&self) -> &antiphon_wire::ResourceTemplate {
        &self.definition
    }

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn per_caller(&self) -> &PerCaller<antiphon_wire::ResourceTemplate> {
        &self.per_caller
    }

    fn keep(before: antiphon_wire::ResourceTemplate, changed: &mut antiphon_wire::ResourceTemplate) {
        (changed.uri_template, changed.name) = (before.uri_template, before.name);
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
        // If one percent-encoded value results in a URI, every value does.
        let values: serde_json::Map<_, _> =
            matcher.names().map(|name| (name.to_owned(), "x".into())).collect();
        // Characters outside of the variables would be encoded, and then be those of another URI.
        if !is_uri(&without_expressions(template)) || !matcher.expand(values).is_ok_and(|uri| is_uri(&uri)) {
            return Err(BuildError(format!(
                "the template {template:?} does not result in a URI: see RFC 3986"
            )));
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

/// > Custom URI schemes **MUST** be in accordance with RFC3986
///
/// Returns whether the text is a scheme, followed only by characters that a URI may hold. The rest is not parsed: its
/// meaning depends on the scheme.
fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    scheme.starts_with(|first: char| first.is_ascii_alphabetic()) && scheme.bytes().all(fits) && is_rest(rest)
}

/// Returns the template with one character in the place of each expression.
fn without_expressions(template: &str) -> String {
    let (mut text, mut rest) = (String::new(), template);
    while let Some((before, after)) = rest.split_once('{') {
        text = text + before + "x";
        rest = after.split_once('}').map_or("", |(_, rest)| rest);
    }
    text + rest
}

fn is_rest(rest: &str) -> bool {
    let mut pieces = rest.split('%');
    let plain = |piece: &str| {
        piece.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=".contains(&byte))
    };
    let escaped = |piece: &str| piece.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
    pieces.next().is_none_or(plain) && pieces.all(|piece| escaped(piece) && plain(piece))
}

#[cfg(test)]
mod tests {
    use crate::offer::resource::*;

    #[test]
    fn what_is_a_uri_and_what_is_not() {
        for uri in [
            "a:",
            "file:///a/b%20c",
            "a+b-c.1://x",
            "urn:isbn:0451450523",
            "h://[::1]:8/?q=1#f",
            "a:%C3%A9%41",
        ] {
            assert!(is_uri(uri), "{uri}");
        }
        for text in [
            "", ":", "a", "a/b", ":x", "1a:b", "a b:c", "a:b c", "a:é", "é:a", "a:%", "a:%4", "a:%4g",
            "a:\n", "a:<b>", "a:{b}",
        ] {
            assert!(!is_uri(text), "{text}");
        }
    }
}
