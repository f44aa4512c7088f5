//! Types whose methods are tools, prompts and resources.

use crate::{
    define::{Offered, States},
    errors::build_error::BuildError,
};
use std::sync::Arc;

/// A type with `#[server]` on an `impl` block, the parameter of [`ServerBuilder::with`](crate::ServerBuilder::with). No
/// other type implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no tools, prompts or resources",
    label = "no `#[server]` on an impl of this type",
    note = "put `#[antiphon::server]` above its `impl` block, and `#[tool]`, `#[prompt]` or `#[resource(..)]` above methods in it"
)]
pub trait Service: Send + Sync + Sized + 'static {
    /// Adds the definitions of the methods.
    ///
    /// # Errors
    /// If a state is missing, or a default does not fit its type.
    #[doc(hidden)]
    fn offer(self: Arc<Self>, states: &States, offered: &mut Offered) -> Result<(), BuildError>;
}
