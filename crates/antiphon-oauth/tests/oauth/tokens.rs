//! Tokens: one flow for many requests, renewal, rotation, scopes and their end.

use crate::support::{Clock, Folder, client, get, session};
use antiphon_oauth::{
    Credentials, ErrorKind, OAuth, PendingSignIn, SignedOut,
    store::{FileStore, MemoryStore, TokenStore},
    testing::TestAuthority,
};
use futures_util::future::join_all;
use std::sync::Arc;

#[tokio::test]
async fn a_hundred_requests_share_one_flow_and_one_refresh() {
    let (authority, clock) = (TestAuthority::start().await.unwrap(), Clock::new());
    authority.expire(3600);
    let now = clock.clone();
    let session = session(client(&authority).clock(move || now.now()), &authority);
    let hundred = || async {
        let all = join_all((0..100).map(|_| get(&session, &authority))).await;
        assert!(all.iter().all(|one| one.as_ref().is_ok_and(|status| status.is_success())), "{all:?}");
    };
    hundred().await;
    assert_eq!(
        (authority.count("/authorize"), authority.grants()),
        (1, vec!["authorization_code".to_owned()])
    );
    // They expire: all requests wait for one refresh.
    clock.advance(3600);
    hundred().await;
    // They are refused at once.
    authority.revoke_all();
    hundred().await;
    assert_eq!(authority.count("/authorize"), 1);
    assert_eq!(authority.grants(), ["authorization_code", "refresh_token", "refresh_token"]);
}

#[tokio::test]
async fn a_refresh_repeats_the_resource_and_rotates() {
    let (authority, clock) = (TestAuthority::start().await.unwrap(), Clock::new());
    authority.expire(5);
    let now = clock.clone();
    let session = session(client(&authority).clock(move || now.now()), &authority);
    for _ in 0..3 {
        // A short life is no reason to renew at once.
        for _ in 0..3 {
            assert!(get(&session, &authority).await.unwrap().is_success());
        }
        clock.advance(5);
    }
    assert_eq!(authority.grants(), ["authorization_code", "refresh_token", "refresh_token"]);
    let seen = authority.seen();
    let forms: Vec<_> = seen.iter().filter(|seen| seen.path == "/token").map(|seen| seen.form()).collect();
    assert!(forms.iter().all(|form| form["resource"] == authority.resource()));
    assert_ne!(forms[1]["refresh_token"], forms[2]["refresh_token"]);
    assert!(!forms[1].contains_key("scope"));
}

/// Two processes with stores of the same entries: tokens that expire at once are renewed once.
async fn one_of_them_renews(stores: [Arc<dyn TokenStore>; 2]) {
    let (authority, clock) = (TestAuthority::start().await.unwrap(), Clock::new());
    authority.expire(3600);
    let [one, other] = stores.map(|store| {
        let now = clock.clone();
        session(client(&authority).store(store).clock(move || now.now()), &authority)
    });
    assert!(get(&one, &authority).await.unwrap().is_success());
    assert!(get(&other, &authority).await.unwrap().is_success());
    for round in 1..4 {
        clock.advance(3600);
        let both = tokio::join!(get(&one, &authority), get(&other, &authority));
        assert!(both.0.unwrap().is_success() && both.1.unwrap().is_success());
        // One of them renews, the other one finds that in the store: no refresh token is spent twice.
        assert_eq!(authority.grants().len(), 1 + round);
    }
    assert_eq!(authority.count("/authorize"), 1);
}

#[tokio::test]
async fn processes_share_a_sign_in() {
    let shared: Arc<dyn TokenStore> = Arc::new(MemoryStore::new());
    one_of_them_renews([Arc::clone(&shared), shared]).await;
    let folder = Folder::new();
    one_of_them_renews([(); 2].map(|()| Arc::new(FileStore::new(&folder.0)) as Arc<dyn TokenStore>)).await;
}

#[tokio::test]
async fn a_dropped_request_loses_no_token() {
    let (authority, clock) = (TestAuthority::start().await.unwrap(), Clock::new());
    authority.expire(3600);
    let now = clock.clone();
    let session = session(client(&authority).clock(move || now.now()), &authority);
    assert!(get(&session, &authority).await.unwrap().is_success());
    clock.advance(3600);
    let mut request = Box::pin(get(&session, &authority));
    // It begins the refresh, and goes away.
    assert!(futures_util::poll!(request.as_mut()).is_pending());
    drop(request);
    assert!(get(&session, &authority).await.unwrap().is_success());
    assert_eq!(authority.grants(), ["authorization_code", "refresh_token"]);
}

#[tokio::test]
async fn a_refused_refresh_token_leads_to_a_new_sign_in() {
    let authority = TestAuthority::start().await.unwrap();
    authority.expire(3600);
    let store = Arc::new(MemoryStore::new());
    let one = session(client(&authority).store(Arc::clone(&store)), &authority);
    assert!(get(&one, &authority).await.unwrap().is_success());
    // The server has lost the tokens and the client.
    authority.revoke_all();
    authority.forget_clients();
    assert!(get(&one, &authority).await.unwrap().is_success());
    assert_eq!((authority.count("/authorize"), authority.count("/register")), (2, 2));
    assert_eq!(authority.grants(), ["authorization_code", "refresh_token", "authorization_code"]);
}

#[tokio::test]
async fn a_forgotten_client_registers_again() {
    let authority = TestAuthority::start().await.unwrap();
    let session = session(client(&authority), &authority);
    session.login().await.unwrap();
    authority.forget_clients();
    session.login().await.unwrap();
    assert_eq!((authority.count("/register"), authority.count("/token")), (2, 3));
    // A registration is used again.
    session.login().await.unwrap();
    assert_eq!(authority.count("/register"), 2);
}

#[tokio::test]
async fn a_step_up_asks_for_the_union() {
    let authority = TestAuthority::start().await.unwrap();
    let session = session(client(&authority).scopes(["a"]), &authority);
    assert!(get(&session, &authority).await.unwrap().is_success());
    authority.demand_scope("b");
    assert!(get(&session, &authority).await.unwrap().is_success());
    let seen = authority.seen();
    let scopes: Vec<_> =
        seen.iter().filter(|seen| seen.path == "/authorize").map(|seen| &*seen.query["scope"]).collect();
    assert_eq!(scopes, ["a", "a b"]);
    // The first registration was for one scope, and the server permits no more of this client.
    assert_eq!(authority.count("/register"), 2);
}

#[tokio::test]
async fn a_sign_in_ends_in_another_process() {
    let authority = TestAuthority::start().await.unwrap();
    authority.expire(3600);
    let folder = Folder::new();
    // Processes share the folder, and what the first one wrote; nothing else.
    let process = |account: &str| {
        let builder = OAuth::builder("web").store(FileStore::new(&folder.0)).account(account);
        session(builder, &authority)
    };
    let redirect_uri = "https://host.example/callback";
    let begun = process("ada").begin(redirect_uri, Some("Bearer scope=\"files\"")).await.unwrap();
    assert_eq!((begun.scopes(), begun.redirect_uri()), (&["files".to_owned()][..], redirect_uri));
    let (url, kept) = (begun.url().to_owned(), serde_json::to_string(&begun).unwrap());
    drop(begun);
    assert!(url.starts_with(&format!("{}/authorize?fixed=1&", authority.issuer())));
    let returned = authority.visit(&url).await.unwrap();
    let pending = || serde_json::from_str::<PendingSignIn>(&kept).unwrap();
    let forged = returned.replace(pending().state(), "other");
    for (account, returned) in [("eve", &returned), ("ada", &forged)] {
        let fault = process(account).finish(pending(), returned).await.unwrap_err();
        assert_eq!(fault.kind(), ErrorKind::Callback, "{account}");
    }
    assert_eq!(authority.count("/token"), 0);
    process("ada").finish(pending(), &returned).await.unwrap();
    // A third process has the tokens, and a code is good once.
    let third = process("ada");
    let known = third.signed_in().await.unwrap().unwrap();
    assert_eq!((&*known.scopes, known.renews), (&["files".to_owned()][..], true));
    assert!(get(&third, &authority).await.unwrap().is_success());
    let fault = process("ada").finish(pending(), &returned).await.unwrap_err();
    assert_eq!(fault.kind(), ErrorKind::Token);
    assert_eq!((authority.count("/authorize"), authority.count("/register")), (1, 1));
}

#[tokio::test]
async fn a_sign_out_removes_and_revokes() {
    let authority = TestAuthority::start().await.unwrap();
    authority.expire(3600);
    let session = session(client(&authority), &authority);
    assert_eq!(session.logout().await.unwrap(), SignedOut::Nothing);
    session.login().await.unwrap();
    let known = session.signed_in().await.unwrap().unwrap();
    assert_eq!((&*known.issuer, known.renews, known.bound), (authority.issuer(), true, false));
    assert!(session.token().await.unwrap().is_some());
    assert_eq!(session.logout().await.unwrap(), SignedOut::Revoked);
    let form = authority.seen().last().unwrap().form();
    assert_eq!(form["token_type_hint"], "refresh_token");
    assert!(session.signed_in().await.unwrap().is_none() && session.token().await.unwrap().is_none());
    session.forget().await.unwrap();
    session.login().await.unwrap();
    assert_eq!(authority.count("/register"), 2);
}

#[tokio::test]
async fn who_the_client_is() {
    let authority = TestAuthority::start().await.unwrap();
    authority.support_documents();
    let document = "https://app.example/client.json";
    for (builder, expected) in [
        (client(&authority).metadata_document(document).credentials(Credentials::public("mine")), "mine"),
        (client(&authority).metadata_document(document), document),
        (client(&authority), "client-"),
    ] {
        session(builder, &authority).login().await.unwrap();
        let seen = authority.seen();
        let last = seen.iter().rev().find(|seen| seen.path == "/authorize").unwrap();
        assert!(last.query["client_id"].starts_with(expected), "{expected}");
    }
    let foreign = Credentials::public("mine").for_issuer("https://other.example");
    let fault = session(client(&authority).credentials(foreign), &authority).login().await.unwrap_err();
    assert_eq!(fault.kind(), ErrorKind::Issuer);
    let nobody = session(OAuth::builder("test"), &authority).login().await.unwrap_err();
    assert_eq!(nobody.kind(), ErrorKind::SignIn);
}
