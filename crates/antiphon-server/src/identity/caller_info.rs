//! The caller of a request, for rules that decide what this caller sees.

use crate::identity::{Bearer, Caller, PeerAddress};
use antiphon_seal::Principal;
use antiphon_wire::Implementation;
use http::Extensions;
use serde_json::value::RawValue;
use std::fmt;

/// The maximum length of a client's name and version together, in bytes: a subscription keeps them.
pub(crate) const CLIENT: usize = 512;

/// The caller of a request, as the rules of [`Tool::visible_if`](crate::Tool::visible_if) and
/// [`Tool::listed_as`](crate::Tool::listed_as) see it.
///
/// It has no headers. A value that is made from headers comes from a tower layer in front of the endpoint, or from
/// [`request_context`](crate::ServerBuilder::request_context), as an [`extension`](Self::extension).
#[derive(Clone)]
pub struct CallerInfo {
    principal: Option<Principal>,
    extensions: Extensions,
    peer: Option<PeerAddress>,
    is_remote: bool,
    version: String,
    client: Option<Implementation>,
}

impl CallerInfo {
    /// Returns the caller whom the server has identified as this principal. `client` is `clientInfo` as JSON text.
    pub(crate) fn new(
        principal: Option<Principal>,
        caller: &Caller<'_>,
        version: &str,
        client: Option<&RawValue>,
    ) -> Self {
        let client = client.and_then(|text| serde_json::from_str::<Implementation>(text.get()).ok());
        let client = client.filter(|client| client.name.len() + client.version.len() <= CLIENT);
        Self {
            principal,
            extensions: caller.extensions.cloned().unwrap_or_default(),
            peer: caller.peer_address(),
            is_remote: caller.is_remote(),
            version: version.to_owned(),
            client: client.map(|client| Implementation::new(client.name, client.version)),
        }
    }

    /// Returns the same caller with the values that layers have added until now.
    pub(crate) fn with_extensions(&self, extensions: &Extensions) -> Self {
        Self { extensions: extensions.clone(), ..self.clone() }
    }

    /// Returns the authenticated caller; `None` without authentication.
    pub fn principal(&self) -> Option<&Principal> {
        self.principal.as_ref()
    }

    /// Returns the verified access token, if there is one.
    pub fn bearer(&self) -> Option<&Bearer> {
        self.extensions.get()
    }

    /// Returns whether [`scopes`](crate::Tool::scopes) with this scope would accept the caller: the token has it, or the caller is the
    /// owner of the process, as on stdio, to whom scopes do not apply.
    pub fn has_scope(&self, scope: &str) -> bool {
        !self.is_remote || self.bearer().is_some_and(|bearer| bearer.has_scope(scope))
    }

    /// Returns true if the caller is on the other side of a network: [`Caller::is_remote`].
    pub fn is_remote(&self) -> bool {
        self.is_remote
    }

    /// Returns the address of the peer, as far as it is known.
    pub fn peer_address(&self) -> Option<PeerAddress> {
        self.peer
    }

    /// Returns a value of this type that a tower layer in front of the endpoint, a [layer](crate::ServerBuilder::layer) of the server or
    /// [`request_context`](crate::ServerBuilder::request_context) has added.
    pub fn extension<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.extensions.get()
    }

    /// Returns the protocol version of the request: that of its session, if it has one.
    pub fn protocol_version(&self) -> &str {
        &self.version
    }

    /// Returns the name and version with which the client describes itself; `None` without, and if they have more than 512 bytes. Untrusted:
    /// any client may use any name.
    pub fn client(&self) -> Option<&Implementation> {
        self.client.as_ref()
    }
}

impl fmt::Debug for CallerInfo {
    /// Omits the extensions: they hold credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallerInfo").field("is_remote", &self.is_remote).finish_non_exhaustive()
    }
}
