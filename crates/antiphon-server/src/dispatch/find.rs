//! The lookup of offers for the caller of a request: among those of the server that the caller sees, then among those that are found at run
//! time.

use crate::{
    call::leg::ConcurrencyPermit,
    errors::{BuildError, Error, refusal::Refusal, refusal_log::log_refusal},
    feed::ListKind,
    identity::{Caller, account::CallerInfo},
    in_place::rare,
    offer::{
        given::{AnyOffers, FindFuture, GivenItem, GivenOffers, entry_of},
        list::{Entry, List, ListItem},
        offers::{ListAccess, Offers, RegisteredTool},
        prompt::Prompt,
        resource::{Resource, ResourceTemplate, most_literal},
    },
    request::{
        carrier,
        receive::{Request, check_params},
    },
    runtime::{CAUSE, Runtime},
};
use antiphon_wire::{escaped, header::params::ParamHeaders};
use serde_json::{Map, Value, value::RawValue};
use std::{
    collections::HashSet,
    ops::Deref,
    sync::{Arc, atomic::Ordering},
};

/// A request that names an offer, or reads a list.
#[derive(Clone, Copy)]
pub(super) struct Lookup<'a> {
    pub(super) server: &'a Arc<Runtime>,
    pub(super) offers: &'a Offers,
    pub(super) request: &'a Request<'a>,
    pub(super) caller: &'a Caller<'a>,
}

/// An offer that was found.
pub(super) enum Found<'a, T> {
    /// One of the server's own.
    Own(&'a T),
    /// One that was found at run time, for this request.
    Given(Box<T>),
}

/// The item that a URI is read from.
pub(super) enum FoundResource<'a> {
    Resource(Found<'a, Resource>),
    Template(Found<'a, ResourceTemplate>, Map<String, Value>),
}

/// The method that finds one item by its key.
type FindOne<T> = for<'f> fn(&'f dyn AnyOffers, &'f str, &'f CallerInfo) -> FindFuture<'f, Option<T>>;

impl<T: ListItem> Found<'_, T> {
    /// Returns whether some callers do not see the offer.
    pub(super) fn is_hidden_from_some(&self) -> bool {
        match self {
            Self::Own(item) => item.per_caller().hides(),
            Self::Given(_) => true,
        }
    }
}

impl<T> Deref for Found<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Self::Own(item) => item,
            Self::Given(item) => item,
        }
    }
}

impl<'a> Lookup<'a> {
    /// Returns the tool of this name.
    pub(super) async fn tool(self, name: &str) -> Result<Option<Found<'a, RegisteredTool>>, Refusal> {
        let tools = &*self.offers.lists.tools;
        match self.own(tools, name) {
            None if self.may_be_given(tools, name) => {
                rare(self.one(name, |given, name, caller| given.one_tool(name, caller))).await
            }
            own => Ok(own),
        }
    }

    /// Returns the prompt of this name.
    pub(super) async fn prompt(self, name: &str) -> Result<Option<Found<'a, Prompt>>, Refusal> {
        let prompts = &*self.offers.lists.prompts;
        match self.own(prompts, name) {
            None if self.may_be_given(prompts, name) => {
                rare(self.one(name, |given, name, caller| given.one_prompt(name, caller))).await
            }
            own => Ok(own),
        }
    }

    /// Returns the resource or template that this URI is read from.
    pub(super) async fn resource(self, uri: &str) -> Result<Option<FoundResource<'a>>, Refusal> {
        let lists = &self.offers.lists;
        if let Some(resource) = self.own(&lists.resources, uri) {
            return Ok(Some(FoundResource::Resource(resource)));
        }
        let own = most_literal(lists.templates.iter(), uri, |template| self.sees(template))
            .map(|(template, variables)| FoundResource::Template(Found::Own(template), variables));
        match own {
            None if self.may_be_given(&lists.resources, uri) => rare(self.given_resource(uri)).await,
            own => Ok(own),
        }
    }

    /// Returns the template with exactly this text.
    pub(super) async fn template(self, text: &str) -> Result<Option<Found<'a, ResourceTemplate>>, Refusal> {
        let templates = &*self.offers.lists.templates;
        match self.own(templates, text) {
            None if self.may_be_given(templates, text) => {
                let given = rare(self.all::<ResourceTemplate>()).await?;
                Ok(given.into_iter().find(|template| template.key() == text).map(found))
            }
            own => Ok(own),
        }
    }

    /// Returns the items of a list that are found at run time; `None` if there are no such offers.
    pub(super) async fn given_entries<T: GivenItem + ListAccess>(
        self,
        info: &CallerInfo,
    ) -> Result<Vec<Entry<T>>, Refusal> {
        let Some(given) = self.given(T::KIND) else { return Ok(Vec::new()) };
        let raw = self.awaited(info, T::all(given, info)).await?;
        let (own, mut keys) = (T::of(&self.offers.lists), HashSet::new());
        let mut entries: Vec<Entry<T>> = raw.into_iter().filter_map(|raw| self.checked(raw)).collect();
        entries.retain(|entry| {
            let is_new = !own.has(entry.key()) && keys.insert(entry.key().to_owned());
            if !is_new {
                let key = escaped(entry.key());
                self.log_dropped(&BuildError(format!("there are two {} `{key}`", T::TWO)));
            }
            is_new
        });
        Ok(entries)
    }

    /// Returns whether the lists of this kind have items that are found at run time.
    pub(super) fn has_given(self, list: ListKind) -> bool {
        self.given(list).is_some()
    }

    /// Returns the caller for rules of visibility.
    ///
    /// # Errors
    /// If the binder fails; the cause is in the log.
    pub(super) fn caller_info(self) -> Result<CallerInfo, Refusal> {
        let principal = self.server.identified(&self.request.method, self.caller)?;
        Ok(CallerInfo::new(principal, self.caller, &self.request.version, self.request.meta.client_info))
    }

    /// Returns whether the caller sees an item of the server. Nobody who cannot be identified sees one that is hidden from some.
    ///
    /// A leg of a task sees its tool in any case: the request that began the task was admitted, and the leg has neither token nor
    /// extensions.
    fn sees<T: ListItem>(self, item: &T) -> bool {
        if !item.per_caller().hides() || carrier::is_a_task(self.caller) {
            return true;
        }
        self.caller_info().is_ok_and(|info| item.per_caller().shows(item.key(), &info))
    }

    fn own<T: ListItem>(self, list: &'a List<T>, key: &str) -> Option<Found<'a, T>> {
        list.get(key).filter(|item| self.sees(*item)).map(Found::Own)
    }

    fn given(self, list: ListKind) -> Option<&'a dyn AnyOffers> {
        self.offers.given.as_ref().map(|given| &*given.0).filter(|given| given.has_list(list))
    }

    /// Returns whether an item with this key may be found at run time. A key of the server's own is taken, also if the caller does not see its
    /// item.
    fn may_be_given<T: ListItem>(self, own: &List<T>, key: &str) -> bool {
        self.given(T::KIND).is_some() && !own.has(key)
    }

    async fn one<T: GivenItem>(
        self,
        key: &str,
        find: FindOne<T::Raw>,
    ) -> Result<Option<Found<'a, T>>, Refusal> {
        let Some(given) = self.given(T::KIND) else { return Ok(None) };
        let info = self.caller_info()?;
        let raw = self.awaited(&info, find(given, key, &info)).await?;
        let entry = raw.and_then(|raw| self.checked(raw));
        let entry = entry.filter(|entry: &Entry<T>| entry.key() == key && entry.is_visible_to(&info));
        if entry.is_some() {
            self.request.noted.was_found.store(true, Ordering::Relaxed);
        }
        Ok(entry.and_then(Entry::into_item).map(found))
    }

    async fn all<T: GivenItem>(self) -> Result<Vec<T>, Refusal> {
        let Some(given) = self.given(T::KIND) else { return Ok(Vec::new()) };
        let info = self.caller_info()?;
        let raw = self.awaited(&info, T::all(given, &info)).await?;
        let entries = raw.into_iter().filter_map(|raw| self.checked::<T>(raw));
        Ok(entries.filter(|entry| entry.is_visible_to(&info)).filter_map(Entry::into_item).collect())
    }

    async fn given_resource(self, uri: &str) -> Result<Option<FoundResource<'a>>, Refusal> {
        let one = self.one::<Resource>(uri, |given, uri, caller| given.one_resource(uri, caller)).await?;
        if let Some(resource) = one {
            return Ok(Some(FoundResource::Resource(resource)));
        }
        let templates = self.all::<ResourceTemplate>().await?;
        Ok(most_literal(templates.into_iter(), uri, |_| true)
            .map(|(template, variables)| FoundResource::Template(found(template), variables)))
    }

    /// Awaits a lookup, which counts as a handler and has its time limit.
    async fn awaited<T>(self, info: &CallerInfo, lookup: FindFuture<'_, T>) -> Result<T, Refusal> {
        let Self { server, request, caller, .. } = self;
        let place = carrier::HandlerPlace::of(request);
        let Some(_slot) = ConcurrencyPermit::take(server, place, caller, info.principal()) else {
            return Err(Refusal::Busy);
        };
        let limit = server.limits.handler_timeout;
        let found = tokio::time::timeout(limit, lookup).await.map_err(|_elapsed| {
            tracing::error!(?limit, "a lookup of `Offers` took too long and was dropped");
            Refusal::Internal
        })?;
        found.map_err(|error| self.refused(&error))
    }

    fn refused(self, error: &Error) -> Refusal {
        match error.user_facing_text() {
            Some(text) => Refusal::UserFacing(text.to_owned()),
            None => {
                tracing::error!(cause = %escaped(error).limit(CAUSE), "a lookup of `Offers` failed");
                self.server.hidden(&error.to_string())
            }
        }
    }

    /// Checks an item; one that could not be registered is dropped, with a warning.
    fn checked<T: GivenItem>(self, raw: T::Raw) -> Option<Entry<T>> {
        let GivenOffers(_, known) = self.offers.given.as_ref()?;
        entry_of(raw, known, self.server.claims.is_some()).inspect_err(|fault| self.log_dropped(fault)).ok()
    }

    fn log_dropped(self, fault: &BuildError) {
        let loudness = self.server.refused(&format!("offers {fault}"));
        log_refusal!(loudness, { fault = %escaped(fault).limit(CAUSE) }, "an item of `Offers` is dropped");
    }
}

fn found<'a, T>(item: T) -> Found<'a, T> {
    Found::Given(Box::new(item))
}

/// Checks the headers in which a request repeats arguments of a tool that some callers do not see. The transport checks those of the other
/// tools: for this one, its refusal would tell a caller that the tool exists.
pub(super) fn check_hidden_params(
    params: &ParamHeaders,
    arguments: Option<&RawValue>,
    request: &Request<'_>,
    caller: &Caller<'_>,
) -> Result<(), Refusal> {
    match caller.headers {
        Some(headers) if carrier::has_param_headers(request) => {
            check_params(params, arguments, headers).map_err(|error| Refusal::Again(Box::new(error)))
        }
        _ => Ok(()),
    }
}
