//! The caller of a request: headers, principal, token and its scopes.

pub(crate) mod bearer;
pub(crate) mod caller;
pub(crate) mod scopes;
