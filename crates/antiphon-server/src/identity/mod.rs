//! The caller of a request: headers, principal, token and its scopes, and the account of its use of the server.

pub(crate) mod account;
pub(crate) mod bearer;
pub(crate) mod caller;
pub(crate) mod head;
pub(crate) mod peer_address;
pub(crate) mod scopes;
