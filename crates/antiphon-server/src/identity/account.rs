//! The accounts of callers, into which the quotas of a server are divided.

use crate::identity::{caller::Caller, peer_address::PeerAddress};
use antiphon_seal::Principal;
use std::hash::{BuildHasher as _, RandomState};

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

#[cfg(test)]
mod tests {
    use super::*;
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
}
