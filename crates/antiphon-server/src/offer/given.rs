//! Offers that are found at run time: one value serves all names.

use crate::{
    errors::{BuildError, Error},
    feed::ListKind,
    identity::account::CallerInfo,
    offer::{
        list::{Entry, ListItem},
        prompt::Prompt,
        resource::{Resource, ResourceTemplate},
        tool::{KnownChecks, Tool},
    },
};
use futures_util::future::BoxFuture;
use std::{fmt, future::Future, sync::Arc};

/// Offers that the server does not have itself, but finds at run time, for each caller: the tools of another server, of a database, of a tenant.
/// [`ServerBuilder::offers`](crate::ServerBuilder::offers) adds them behind the server's own.
///
/// The lists return the same values that are registered otherwise: a [`Tool`] with its name, schema and handler. Usually one handler
/// serves all of them, and [`with_state`](crate::with_state) gives it the name:
///
/// ```
/// use antiphon::server::{Ctx, Server, Tool, offers::{CallerInfo, Offers, with_state}};
/// use serde_json::{Map, Value, json};
///
/// struct Tables(Vec<String>);
///
/// impl Offers for Tables {
///     async fn tools(&self, _caller: &CallerInfo) -> antiphon::Result<Vec<Tool>> {
///         let schema = json!({"type": "object", "properties": {"id": {"type": "integer"}}});
///         let tool = |table: &String| Tool::with_schema(format!("read_{table}"), schema.clone(), with_state(table.clone(), read));
///         Ok(self.0.iter().map(tool).collect())
///     }
/// }
///
/// async fn read(table: String, _ctx: &Ctx, arguments: Map<String, Value>) -> String {
///     format!("{table}: {arguments:?}")
/// }
///
/// # #[cfg(feature = "schema")]
/// # fn main() -> Result<(), antiphon::server::BuildError> {
/// let tables = Tables(vec!["orders".to_owned(), "customers".to_owned()]);
/// let server = Server::builder("tables", "1.0").offers(tables).build()?;
/// # drop(server); Ok(()) }
/// # #[cfg(not(feature = "schema"))] fn main() {}
/// ```
///
/// Everything else is as for any offer: asks, steps, the sealed state, sessions of earlier revisions, scopes. Each request looks its
/// name up again, also the next leg of a call, so that any instance finds it. Lists are cached for their caller only.
///
/// An item that could not be registered is dropped with a warning, and the others are served: one with a schema that cannot be used, with the
/// key of another item, with [`single_use`](Tool::single_use) on a server without a store, or with
/// [tasks](Tool::task), which go on without a caller whom one could ask. An error fails the request: its text goes to the log, or to the
/// caller if it was [made for the caller](Error::user_facing). A lookup has the time limit of a handler, and counts as one.
///
/// Call [`Server::list_changed`](crate::Server::list_changed) if a list changes. [`Server::resource_updated`](crate::Server::resource_updated) notifies all
/// callers that subscribed to the URI of such a resource.
pub trait Offers: Send + Sync + 'static {
    /// Returns whether this list can have items: its capability is then declared. Default: all can.
    fn has(&self, list: ListKind) -> bool {
        let _ = list;
        true
    }

    /// Returns the tools of this caller, in the order of the list. Default: none.
    ///
    /// # Errors
    /// If the tools cannot be found now.
    fn tools(&self, caller: &CallerInfo) -> impl Future<Output = Result<Vec<Tool>, Error>> + Send {
        let _ = caller;
        async { Ok(Vec::new()) }
    }

    /// Returns the tool of this name; `None` if this caller has none. Default: searches [`tools`](Self::tools).
    ///
    /// # Errors
    /// If the tool cannot be found now.
    fn tool(
        &self,
        name: &str,
        caller: &CallerInfo,
    ) -> impl Future<Output = Result<Option<Tool>, Error>> + Send {
        async move { Ok(self.tools(caller).await?.into_iter().find(|tool| tool.definition.name == name)) }
    }

    /// Returns the prompts of this caller, in the order of the list. Default: none.
    ///
    /// # Errors
    /// If the prompts cannot be found now.
    fn prompts(&self, caller: &CallerInfo) -> impl Future<Output = Result<Vec<Prompt>, Error>> + Send {
        let _ = caller;
        async { Ok(Vec::new()) }
    }

    /// Returns the prompt of this name; `None` if this caller has none. Default: searches [`prompts`](Self::prompts).
    ///
    /// # Errors
    /// If the prompt cannot be found now.
    fn prompt(
        &self,
        name: &str,
        caller: &CallerInfo,
    ) -> impl Future<Output = Result<Option<Prompt>, Error>> + Send {
        async move { Ok(self.prompts(caller).await?.into_iter().find(|prompt| prompt.key() == name)) }
    }

    /// Returns the resources of this caller, in the order of the list. Default: none.
    ///
    /// # Errors
    /// If the resources cannot be found now.
    fn resources(&self, caller: &CallerInfo) -> impl Future<Output = Result<Vec<Resource>, Error>> + Send {
        let _ = caller;
        async { Ok(Vec::new()) }
    }

    /// Returns the resource at this URI; `None` if this caller has none. Default: searches [`resources`](Self::resources). A resource need not be
    /// listed.
    ///
    /// # Errors
    /// If the resource cannot be found now.
    fn resource(
        &self,
        uri: &str,
        caller: &CallerInfo,
    ) -> impl Future<Output = Result<Option<Resource>, Error>> + Send {
        async move { Ok(self.resources(caller).await?.into_iter().find(|resource| resource.key() == uri)) }
    }

    /// Returns the templates of this caller, in the order of the list. A URI without a [`resource`](Self::resource) is read from the first
    /// that matches. Default: none.
    ///
    /// # Errors
    /// If the templates cannot be found now.
    fn templates(
        &self,
        caller: &CallerInfo,
    ) -> impl Future<Output = Result<Vec<ResourceTemplate>, Error>> + Send {
        let _ = caller;
        async { Ok(Vec::new()) }
    }
}

/// A future of one of these methods.
pub(crate) type FindFuture<'a, T> = BoxFuture<'a, Result<T, Error>>;

/// [`Offers`] of any type.
pub(crate) trait AnyOffers: Send + Sync {
    fn has_list(&self, list: ListKind) -> bool;
    fn all_tools<'a>(&'a self, caller: &'a CallerInfo) -> FindFuture<'a, Vec<Tool>>;
    fn one_tool<'a>(&'a self, name: &'a str, caller: &'a CallerInfo) -> FindFuture<'a, Option<Tool>>;
    fn all_prompts<'a>(&'a self, caller: &'a CallerInfo) -> FindFuture<'a, Vec<Prompt>>;
    fn one_prompt<'a>(&'a self, name: &'a str, caller: &'a CallerInfo) -> FindFuture<'a, Option<Prompt>>;
    fn all_resources<'a>(&'a self, caller: &'a CallerInfo) -> FindFuture<'a, Vec<Resource>>;
    fn one_resource<'a>(&'a self, uri: &'a str, caller: &'a CallerInfo) -> FindFuture<'a, Option<Resource>>;
    fn all_templates<'a>(&'a self, caller: &'a CallerInfo) -> FindFuture<'a, Vec<ResourceTemplate>>;
}

impl<O: Offers> AnyOffers for O {
    fn has_list(&self, list: ListKind) -> bool {
        self.has(list)
    }

    fn all_tools<'a>(&'a self, caller: &'a CallerInfo) -> FindFuture<'a, Vec<Tool>> {
        Box::pin(self.tools(caller))
    }

    fn one_tool<'a>(&'a self, name: &'a str, caller: &'a CallerInfo) -> FindFuture<'a, Option<Tool>> {
        Box::pin(self.tool(name, caller))
    }

    fn all_prompts<'a>(&'a self, caller: &'a CallerInfo) -> FindFuture<'a, Vec<Prompt>> {
        Box::pin(self.prompts(caller))
    }

    fn one_prompt<'a>(&'a self, name: &'a str, caller: &'a CallerInfo) -> FindFuture<'a, Option<Prompt>> {
        Box::pin(self.prompt(name, caller))
    }

    fn all_resources<'a>(&'a self, caller: &'a CallerInfo) -> FindFuture<'a, Vec<Resource>> {
        Box::pin(self.resources(caller))
    }

    fn one_resource<'a>(&'a self, uri: &'a str, caller: &'a CallerInfo) -> FindFuture<'a, Option<Resource>> {
        Box::pin(self.resource(uri, caller))
    }

    fn all_templates<'a>(&'a self, caller: &'a CallerInfo) -> FindFuture<'a, Vec<ResourceTemplate>> {
        Box::pin(self.templates(caller))
    }
}

/// The offers of a server that are found at run time, and the checks of their tools.
#[derive(Clone)]
pub(crate) struct GivenOffers(pub(crate) Arc<dyn AnyOffers>, pub(crate) Arc<KnownChecks>);

impl fmt::Debug for GivenOffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GivenOffers").finish_non_exhaustive()
    }
}

/// An item of a list that [`Offers`] can have.
pub(crate) trait GivenItem: ListItem {
    /// The item as it is registered.
    type Raw: Send;

    /// Returns the items of the list for this caller.
    fn all<'a>(offers: &'a dyn AnyOffers, caller: &'a CallerInfo) -> FindFuture<'a, Vec<Self::Raw>>;

    /// Checks an item as it would be checked if it were registered.
    fn checked(raw: Self::Raw, known: &KnownChecks) -> Result<Self, BuildError>;
}

/// Returns the entry of an item. `has_store` is true if the server has a store of calls.
pub(crate) fn entry_of<T: GivenItem>(
    raw: T::Raw,
    known: &KnownChecks,
    has_store: bool,
) -> Result<Entry<T>, BuildError> {
    let item = T::checked(raw, known)?;
    item.settings().check_store(item.key(), has_store)?;
    Entry::new(item)
}
