//! The view that a caller has of an offer: nothing, its definition, or a definition of the caller's own.

use crate::identity::caller_info::CallerInfo;
use antiphon_wire::escaped;
use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

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
