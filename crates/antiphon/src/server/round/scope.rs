//! Names in front of keys, so that the same code can ask in several places.

use crate::server::Ctx;
use antiphon_engine::key::scope_prefix;
use std::{marker::PhantomData, ops::Deref};

impl Ctx {
    /// A context whose keys all stand below this name: `alice/confirm` instead of `confirm`. For a function that asks, or
    /// does something, once for each of several.
    ///
    /// The name is one for each use, like a key: text of the program, or the id of a row.
    #[track_caller]
    pub fn scope(&self, name: impl AsRef<str>) -> Scope<'_> {
        let prefix = match scope_prefix(self.scope_prefix(), name.as_ref()) {
            Ok(prefix) => prefix,
            Err(fault) => {
                self.flow().author_fault(super::flow::here(), fault);
                String::new()
            }
        };
        Scope { ctx: self.below(prefix), _lent: PhantomData }
    }
}

/// A context below a name. See [`Ctx::scope`].
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
