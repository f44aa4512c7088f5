//! The offers of a server: tools, prompts, resources and templates, their lists, the completion of their arguments, and the view that
//! a caller has of each.

pub(crate) mod check;
pub(crate) mod completion;
pub(crate) mod given;
pub(crate) mod list;
pub(crate) mod offers;
pub(crate) mod prompt;
pub(crate) mod resource;
pub(crate) mod tool;

use crate::{errors::BuildError, extension::Extensions, identity::account::CallerInfo};
use antiphon_wire::{CacheScope, Meta, Ttl, escaped};
use serde::Serialize;
use serde_json::value::RawValue;
use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

/// The constant data about a server.
#[derive(Debug)]
pub(crate) struct Profile {
    pub(crate) name: String,
    pub(crate) instructions: Option<String>,
    /// The `_meta` of every result, as JSON text.
    pub(crate) server_info: Box<RawValue>,
    /// The `_meta` of every result, as members.
    pub(crate) server_info_members: Meta,
    pub(crate) list_changed: bool,
    pub(crate) resource_updates: bool,
    pub(crate) logging: bool,
    /// True if calls may become tasks.
    pub(crate) tasks: bool,
    /// The extensions, that for tasks among them.
    pub(crate) extensions: Extensions,
    /// The number of entries on a page, at least 1; `None` puts all of them on one page.
    pub(crate) page_size: Option<usize>,
    pub(crate) cache: CacheHint,
}

impl Profile {
    /// Returns the name of a list for its cursors: the server's name and the list's member.
    pub(crate) fn cursors_of(&self, member: &str) -> String {
        format!("{} {member}", self.name)
    }
}

/// Writes a value as raw JSON.
///
/// # Errors
/// If the value cannot be written as JSON.
pub(crate) fn raw(value: &impl Serialize) -> Result<Box<RawValue>, BuildError> {
    serde_json::value::to_raw_value(value).map_err(|fault| BuildError(fault.to_string()))
}

/// The cache lifetime and scope of a result. Default: no caching, `ttlMs` 0 and `private`.
///
/// It is only a hint: a list may change before that time is over.
///
/// > Servers MUST be aware that responses with a `"public"` `cacheScope` may be shared between callers even if the
/// > Result is coming from an authenticated endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheHint {
    pub(crate) ttl: Ttl,
    pub(crate) scope: CacheScope,
}

impl CacheHint {
    /// Allows caching for everyone: the result is the same for all callers. Fractions of a millisecond are dropped.
    pub fn public(ttl: Duration) -> Self {
        Self { ttl: in_millis(ttl), scope: CacheScope::Public }
    }

    /// Allows caching for the caller only. Fractions of a millisecond are dropped.
    pub fn private(ttl: Duration) -> Self {
        Self { ttl: in_millis(ttl), scope: CacheScope::Private }
    }
}

/// > Servers **MUST** provide a `ttlMs` value that is `>= 0`.
///
/// The maximum is the largest integer that every client can read: 2^53 - 1, some 285,000 years.
fn in_millis(time: Duration) -> Ttl {
    const MOST: u64 = (1 << 53) - 1;
    Ttl(u64::try_from(time.as_millis()).unwrap_or(MOST).min(MOST))
}

type VisibleIf = dyn Fn(&CallerInfo) -> bool + Send + Sync;
type ListedAs<D> = dyn Fn(&CallerInfo, &mut D) + Send + Sync;

/// The rules of one offer, whose definition is a `D`.
pub(crate) struct PerCaller<D> {
    visible_if: Option<Arc<VisibleIf>>,
    listed_as: Option<Box<ListedAs<D>>>,
}

impl<D> PerCaller<D> {
    pub(crate) fn show_if(&mut self, rule: impl Fn(&CallerInfo) -> bool + Send + Sync + 'static) {
        self.visible_if = Some(Arc::new(rule));
    }

    pub(crate) fn list_as(&mut self, describe: impl Fn(&CallerInfo, &mut D) + Send + Sync + 'static) {
        self.listed_as = Some(Box::new(describe));
    }

    /// Returns whether some callers do not see the offer.
    pub(crate) fn hides(&self) -> bool {
        self.visible_if.is_some()
    }

    /// Returns whether callers may see different definitions.
    pub(crate) fn describes(&self) -> bool {
        self.listed_as.is_some()
    }

    /// Returns whether this caller sees the offer named `key`. A rule that panics hides it.
    pub(crate) fn shows(&self, key: &str, caller: &CallerInfo) -> bool {
        self.visible_if.as_ref().is_none_or(|rule| accepts(&**rule, key, caller))
    }

    /// Returns the rule that hides the offer named `key` from some callers.
    pub(crate) fn rule(&self, key: &str) -> Option<VisibilityRule> {
        self.visible_if.as_ref().map(|rule| VisibilityRule { rule: Arc::clone(rule), key: key.to_owned() })
    }

    /// Changes the definition of the offer named `key` to the one for this caller. Returns false if the function panics.
    pub(crate) fn describe(&self, key: &str, caller: &CallerInfo, definition: &mut D) -> bool {
        let Some(describe) = &self.listed_as else { return true };
        catch_unwind(AssertUnwindSafe(|| describe(caller, definition))).is_ok()
            || {
                tracing::error!(item = ?escaped(key), "the function of `listed_as` panicked: the list has the common definition");
                false
            }
    }
}

/// The rule of one offer, for a layer, which has no offers.
pub(crate) struct VisibilityRule {
    rule: Arc<VisibleIf>,
    key: String,
}

impl VisibilityRule {
    /// Returns whether this caller sees the offer.
    pub(crate) fn shows(&self, caller: &CallerInfo) -> bool {
        accepts(&*self.rule, &self.key, caller)
    }
}

fn accepts(rule: &VisibleIf, key: &str, caller: &CallerInfo) -> bool {
    catch_unwind(AssertUnwindSafe(|| rule(caller))).unwrap_or_else(|_panic| {
        tracing::error!(item = ?escaped(key), "the rule of `visible_if` panicked: the item is hidden");
        false
    })
}

impl<D> Default for PerCaller<D> {
    fn default() -> Self {
        Self { visible_if: None, listed_as: None }
    }
}

impl<D> fmt::Debug for PerCaller<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PerCaller").field("hides", &self.hides()).finish_non_exhaustive()
    }
}

/// The setters of these rules.
macro_rules! per_caller_setters {
    ($type:ident, $fixed:literal) => {
        impl $type {
            /// Sets the rule that says who sees this item. For all other callers it does not exist: no list has it, a request for it is
            /// refused as one for an unknown name, changes of it are not announced, and its results are cached for the caller only.
            /// Default: all callers see it.
            ///
            /// The rule is called for each list and for each request of a client that names the item, so it must be fast. It is not
            /// called again for a call that has become a task: the request that began the task was admitted. A rule that panics
            /// hides the item. If its outcome changes while clients are connected,
            /// [`Server::list_changed`](crate::Server::list_changed) notifies them.
            ///
            /// A rule is no substitute for [`scopes`](Self::scopes), which tell a client which token it needs; an item may have both.
            #[must_use]
            pub fn visible_if(
                mut self,
                rule: impl Fn(&crate::CallerInfo) -> bool + Send + Sync + 'static,
            ) -> Self {
                self.per_caller.show_if(rule);
                self
            }

            /// Sets a function that changes the definition in the list for one caller: title, description, `_meta` and other texts.
            #[doc = $fixed]
            /// stay as they are, because calls are checked by them. Default: all callers see the same definition.
            ///
            /// The function is called for each list, so it must be fast.
            #[must_use]
            pub fn listed_as(
                mut self,
                describe: impl Fn(&crate::CallerInfo, &mut antiphon_wire::$type) + Send + Sync + 'static,
            ) -> Self {
                self.per_caller.list_as(describe);
                self
            }
        }
    };
}
pub(crate) use per_caller_setters;
