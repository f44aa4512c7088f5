//! Grants of machines.

use crate::support::{Clock, get, session};
use antiphon_oauth::{Credentials, ErrorKind, Grant, OAuth, testing::TestAuthority};
use std::io;

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
