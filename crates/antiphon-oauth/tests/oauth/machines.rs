//! Grants of machines.

use crate::support::{Clock, get, session};
use antiphon_oauth::{
    Credentials, ErrorKind, Grant, OAuth, SignedOut, store::MemoryStore, testing::TestAuthority,
};
use std::{io, sync::Arc};

#[tokio::test]
async fn grants_of_machines() {
    let authority = TestAuthority::start().await.unwrap();
    let jwt = || Grant::assertion(|| std::future::ready(Ok::<_, io::Error>("jwt".to_owned())));
    let exchange = || Grant::exchange("urn:x", || std::future::ready(Ok::<_, io::Error>("old".to_owned())));
    let bearer = "urn:ietf:params:oauth:grant-type:jwt-bearer";
    for (grant, expected, field, value) in [
        (Grant::ClientCredentials, "client_credentials", "client_id", "me"),
        (jwt(), bearer, "assertion", "jwt"),
        (exchange(), "urn:ietf:params:oauth:grant-type:token-exchange", "subject_token", "old"),
    ] {
        let builder =
            OAuth::builder("test").credentials(Credentials::public("me")).grant(grant).scopes(["s"]);
        let session = session(builder, &authority);
        assert!(get(&session, &authority).await.unwrap().is_success());
        let seen = authority.seen();
        let form = seen.iter().rev().find(|seen| seen.path == "/token").unwrap().form();
        assert_eq!((&*form["grant_type"], &*form[field]), (expected, value));
        assert_eq!((&*form["resource"], &*form["scope"]), (&*authority.resource(), "s"));
    }
    assert_eq!((authority.count("/authorize"), authority.count("/register")), (0, 0));
}

#[tokio::test]
async fn a_machine_renews_by_its_grant_and_fails_once() {
    let (authority, clock) = (TestAuthority::start().await.unwrap(), Clock::new());
    authority.expire(3600);
    let now = clock.clone();
    let builder =
        OAuth::builder("test").credentials(Credentials::public("me")).grant(Grant::ClientCredentials);
    let session = session(builder.clock(move || now.now()), &authority);
    for _ in 0..2 {
        assert!(get(&session, &authority).await.unwrap().is_success());
        clock.advance(3600);
    }
    assert_eq!(authority.grants(), ["client_credentials"; 2]);
    // A refused grant is an error, and no other grant is tried.
    authority.forget_clients();
    let fault = get(&session, &authority).await.unwrap_err();
    assert_eq!(fault.kind(), ErrorKind::Token);
    assert!(authority.grants().iter().all(|grant| grant == "client_credentials"));
    let without = OAuth::builder("test").grant(Grant::ClientCredentials).build();
    assert_eq!(without.unwrap_err().kind(), ErrorKind::Setting);
}

#[tokio::test]
async fn a_machine_revokes_as_itself() {
    let authority = TestAuthority::start().await.unwrap();
    authority.add_client("me", "hidden");
    let store = Arc::new(MemoryStore::new());
    let machine = |secret: Option<&str>| {
        let credentials = match secret {
            Some(secret) => Credentials::secret("me", secret),
            None => Credentials::public("me"),
        };
        let builder = OAuth::builder("test").credentials(credentials).grant(Grant::ClientCredentials);
        session(builder.store(Arc::clone(&store)), &authority)
    };
    for (secret, expected) in [
        (Some("hidden"), SignedOut::Revoked),
        // Without its secret it removes the token, and the authorization server does not revoke it.
        (None, SignedOut::Removed),
    ] {
        let one = machine(Some("hidden"));
        assert!(get(&one, &authority).await.unwrap().is_success());
        assert_eq!(one.signed_in().await.unwrap().unwrap().client_id.as_deref(), Some("me"));
        let token = one.token().await.unwrap().unwrap();
        assert_eq!(machine(secret).logout().await.unwrap(), expected);
        assert_eq!(authority.scopes_of(token.expose()).is_none(), expected == SignedOut::Revoked);
    }
}
