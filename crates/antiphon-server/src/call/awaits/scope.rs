//! Prefixes of keys, so that the same code can ask in several places.

use crate::call::ctx::Ctx;
use antiphon_engine::key::scope_prefix;
use std::{marker::PhantomData, ops::Deref};

impl Ctx {
    /// Returns a context whose keys have this prefix: `alice/confirm` instead of `confirm`. Use it for a function that
    /// asks, or runs steps, once for each of several items.
    ///
    /// The name must be different for each use, like a key: a text of the program, or the id of a row.
    #[track_caller]
    pub fn scope(&self, name: impl AsRef<str>) -> Scope<'_> {
        let prefix = match scope_prefix(self.scope_prefix(), name.as_ref()) {
            Ok(prefix) => prefix,
            Err(fault) => {
                self.leg_runtime().author_fault(crate::call::leg_runtime::call_site(), fault);
                String::new()
            }
        };
        Scope { ctx: self.below(prefix), _lent: PhantomData }
    }
}

/// A context with a prefix for its keys. See [`Ctx::scope`].
#[derive(Debug)]
pub struct Scope<'a> {
    ctx: Ctx,
    _lent: PhantomData<&'a Ctx>,
}

impl Deref for Scope<'_> {
    type Target = Ctx;

    fn deref(&self) -> &Ctx {
        &self.ctx
    }
}
