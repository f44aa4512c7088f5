//! The accounts of callers, into which quotas are divided, their scopes: the rights that a token has to hold, and what the rules of
//! offers see of them.

use crate::{
    errors::{
        refusal::Refusal,
        refusal_log::{Loudness, log_refusal},
    },
    identity::{Bearer, Caller, PeerAddress},
};
use antiphon_seal::Principal;
use antiphon_wire::Implementation;
use http::Extensions;
use serde_json::value::RawValue;
use std::{
    fmt,
    hash::{BuildHasher as _, RandomState},
};

/// The part of a quota in which the use of one caller is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Account {
    /// An authenticated caller, by a keyed hash of the principal.
    Principal(u64),
    /// The owner of the process, on a pair of streams.
    Owner,
    /// The anonymous callers at this address.
    Address(PeerAddress),
    /// The anonymous callers whose address is unknown.
    Anonymous,
}

impl Account {
    /// Returns whether this is an account of anonymous callers, who leave a share to the others.
    pub(crate) fn is_anonymous(self) -> bool {
        matches!(self, Self::Address(_) | Self::Anonymous)
    }
}

/// The accounts of one server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Accounts(RandomState);

impl Accounts {
    /// Returns the account of a caller whom the server has identified as this principal.
    ///
    /// A caller that is not [remote](Caller::is_remote) is the owner of the process: nobody is authenticated there. A
    /// loopback address is not the address of a caller: a proxy on the same machine has it for all of its clients.
    pub(crate) fn of(&self, caller: &Caller<'_>, principal: Option<&Principal>) -> Account {
        if let Some(known) = principal {
            let parts = [known.issuer(), known.client_id(), known.subject()];
            return Account::Principal(self.0.hash_one(parts));
        }
        if !caller.is_remote() {
            return Account::Owner;
        }
        match caller.peer_address() {
            Some(address) if !address.is_loopback() => Account::Address(address),
            _ => Account::Anonymous,
        }
    }
}

impl Caller<'_> {
    /// Returns true if [`require_scopes`] would accept the caller.
    pub(crate) fn has_scopes(&self, needed: &[String]) -> bool {
        let has = |bearer: &Bearer| needed.iter().all(|scope| bearer.has_scope(scope));
        needed.is_empty() || !self.is_remote() || self.bearer().is_some_and(has)
    }
}

/// Refuses a caller whose token lacks one of these scopes.
///
/// Scopes apply to [remote](Caller::is_remote) callers only: the owner of the process may use everything.
///
/// `refused` counts a refusal with its cause, and returns the level at which it is logged.
///
/// > servers **SHOULD** include all scopes required for the current operation in a single challenge
pub(crate) fn require_scopes(
    needed: &[String],
    caller: &Caller<'_>,
    refused: impl FnOnce(&str) -> Loudness,
) -> Result<(), Refusal> {
    if needed.is_empty() || !caller.is_remote() {
        return Ok(());
    }
    let Some(bearer) = caller.bearer() else {
        log_refusal!(
            refused("scopes without a token"),
            { ?needed },
            "an item requires scopes, but no token is verified here: refused (use HttpOptions::authorize, or leave a Bearer in \
             the extensions of the request)"
        );
        return Err(Refusal::Scope { needed: needed.to_vec() });
    };
    if needed.iter().all(|scope| bearer.has_scope(scope)) {
        return Ok(());
    }
    // Only the author chooses the text of this cause.
    let loudness = refused(&format!("scopes {needed:?}"));
    log_refusal!(loudness, { ?needed, ?bearer }, "a token has too few scopes: refused");
    Err(Refusal::Scope { needed: needed.to_vec() })
}

/// Returns whether the text is a scope that may stand in a challenge: no spaces, quotes or backslashes.
///
/// `scope-token = 1*( %x21 / %x23-5B / %x5D-7E )` (RFC 6749, 3.3)
pub(crate) fn is_scope(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'))
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use antiphon_seal::Principal;
    use http::{Extensions, HeaderMap};

    #[test]
    fn callers_have_accounts_by_principal_then_by_address() {
        let (accounts, headers) = (Accounts::default(), HeaderMap::new());
        let at = |address: &str| {
            let mut extensions = Extensions::new();
            extensions.insert(PeerAddress::new(address.parse().unwrap()));
            let account = accounts.of(&Caller::http(&headers, &extensions), None);
            assert_eq!(account, accounts.of(&Caller::remote(&extensions), None), "{address}");
            account
        };
        let by = |principal: &Principal| accounts.of(&Caller::default(), Some(principal));
        assert_eq!(accounts.of(&Caller::default(), None), Account::Owner);
        assert_eq!(accounts.of(&Caller::http(&headers, &Extensions::new()), None), Account::Anonymous);
        assert_eq!(accounts.of(&Caller::remote(&Extensions::new()), None), Account::Anonymous);
        for loopback in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(at(loopback), Account::Anonymous, "{loopback}");
        }
        for (one, other, is_same) in [
            ("203.0.113.1", "203.0.113.1", true),
            ("203.0.113.1", "203.0.113.2", false),
            ("::ffff:203.0.113.1", "203.0.113.1", true),
            ("2001:db8:1:2::1", "2001:db8:1:2:ffff::1", true),
            ("2001:db8:1:2::1", "2001:db8:1:3::1", false),
        ] {
            assert_eq!(at(one) == at(other), is_same, "{one} {other}");
            assert!(at(one).is_anonymous() && matches!(at(one), Account::Address(_)), "{one}");
        }
        let anna = Principal::user("anna");
        assert_eq!(by(&anna), by(&anna.clone()));
        assert!(!by(&anna).is_anonymous());
        assert_ne!(by(&anna), by(&Principal::client("anna")));
        assert_ne!(by(&anna), by(&anna.clone().with_issuer("https://issuer.example")));
    }

    /// A caller without headers needs scopes: code that passes a request on may hide them, because they hold credentials.
    #[test]
    fn a_remote_caller_without_headers_needs_scopes() {
        let needed = ["films:write".to_owned()];
        let (headers, extensions) = (HeaderMap::new(), Extensions::new());
        for caller in
            [Caller::remote(&extensions), Caller { headers: None, ..Caller::http(&headers, &extensions) }]
        {
            assert!(caller.is_remote() && !caller.has_scopes(&needed));
            let refused = require_scopes(&needed, &caller, |_| Loudness::Debug);
            assert!(matches!(refused, Err(Refusal::Scope { .. })), "{refused:?}");
        }
        let mut extensions = Extensions::new();
        extensions.insert(Bearer::new(Principal::user("anna")).with_scopes(&needed));
        assert!(Caller::remote(&extensions).has_scopes(&needed));
        let owner = Caller::default();
        assert!(!owner.is_remote() && owner.has_scopes(&needed));
    }
}
