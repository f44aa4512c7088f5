//! The visibility of the offer that a call names, for the layers that answer or refuse by this name.

use crate::{
    identity::{Caller, account::CallerInfo},
    offer::{
        VisibilityRule,
        list::{List, ListItem},
        offers::Offers,
    },
    request::{carrier, receive::Request},
};
use antiphon_seal::Principal;
use antiphon_wire::{StringMember, method};
use http::Extensions;

/// Says whether the caller sees the offer.
pub(crate) enum OfferVisibility {
    /// All callers see it, or no rule can hide it.
    Shown,
    /// A rule decides. Outer layers may add values that the rule reads, so it is asked where the answer is needed.
    Rule(Box<(VisibilityRule, CallerInfo)>),
    /// Only the server finds out: there is no such offer, it is found at run time, or it is one of several templates.
    Unknown,
}

impl OfferVisibility {
    pub(crate) fn of(
        offers: &Offers,
        request: &Request<'_>,
        caller: &Caller<'_>,
        principal: Option<&Principal>,
    ) -> Self {
        let lists = &offers.lists;
        let Some(name) = request.target().and_then(StringMember::text) else { return Self::Shown };
        let rule = match &*request.method {
            // A leg of a task sees its offer in any case.
            _ if carrier::is_a_task(caller) => return Self::Shown,
            method::TOOLS_CALL => rule_of(&lists.tools, name),
            method::PROMPTS_GET => rule_of(&lists.prompts, name),
            method::RESOURCES_READ => match rule_of(&lists.resources, name) {
                None if !lists.templates.iter().any(|template| template.variables(name).is_some()) => None,
                None if lists.has_hidden(name) => return Self::Unknown,
                None => Some(None),
                found => found,
            },
            _ => return Self::Shown,
        };
        match rule {
            None => Self::Unknown,
            Some(None) => Self::Shown,
            Some(Some(rule)) => {
                let client = request.meta.client_info;
                let info = CallerInfo::new(principal.cloned(), caller, &request.version, client);
                Self::Rule(Box::new((rule, info)))
            }
        }
    }

    /// Returns whether the caller, with these values of layers, sees the offer; `None` if only the server finds out.
    pub(crate) fn shows(&self, extensions: &Extensions) -> Option<bool> {
        match self {
            Self::Shown => Some(true),
            Self::Rule(rule) => Some(rule.0.shows(&rule.1.with_extensions(extensions))),
            Self::Unknown => None,
        }
    }
}

/// Returns the rule of the item with this key, if it has one; `None` if there is no such item.
fn rule_of<T: ListItem>(list: &List<T>, key: &str) -> Option<Option<VisibilityRule>> {
    list.get(key).map(|item| item.per_caller().rule(key))
}
