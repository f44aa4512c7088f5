//! Parameters that another function fills in: `#[resolve(confirm_delete)] confirm: Answer<Confirm>`.

use super::function::{Function, Param};
use proc_macro2::TokenStream;
use syn::{Error, Path, Result, Type, spanned::Spanned as _};

/// A parameter that comes from a resolver.
#[allow(dead_code, reason = "read as soon as there are resolvers")]
pub(super) struct Resolved {
    /// Which function.
    pub(super) path: Path,
    /// What it is to give.
    pub(super) ty: Type,
}

/// The statements that obtain the values of all such parameters, each into the variable of its place
/// ([`Function::variable`](super::function::Function::variable)). They stand in the handler's future, in a block that
/// returns a `Result<_, antiphon::Error>`, so that `?` ends the call; `ctx` and the variables of the arguments are in
/// scope. Empty where there are none.
pub(super) fn statements(function: &Function) -> Result<TokenStream> {
    let resolved = function.params.iter().find_map(|param| match param {
        Param::Resolved(resolved) => Some(resolved),
        _ => None,
    });
    match resolved {
        None => Ok(TokenStream::new()),
        Some(resolved) => Err(Error::new(
            resolved.path.span(),
            "there are no resolvers yet: call the function in the body, with the arguments it needs",
        )),
    }
}
