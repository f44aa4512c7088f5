//! A client that signs in by itself, against a server that demands tokens.

use crate::common;
use antiphon::{
    client::{
        Client, Mode,
        oauth::{ByHand, Consent, OAuth},
        transport::HttpTransport,
    },
    seal::Principal,
    serve::http::{
        HttpOptions,
        auth::{BearerError, BearerVerifier, Dpop, ResourceServer, ResourceServerBuilder},
        serve_http,
    },
    server::{Bearer, Ctx, NoArguments, Tool},
    testing::authority::TestAuthority,
};
use futures_util::future::join_all;
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tokio::net::TcpListener;

/// Asks the authorization server about each token.
struct Introspection(Arc<TestAuthority>);

impl BearerVerifier for Introspection {
    async fn verify(&self, token: &str, _: &str) -> Result<Bearer, BearerError> {
        let scopes = self.0.scopes_of(token).ok_or_else(|| BearerError::invalid("not a token"))?;
        let principal = Principal::user("ada").with_client_id("client");
        let key = self.0.key_of(token).map(|key| ("cnf".to_owned(), json!({"jkt": key})));
        Ok(Bearer::new(principal).with_scopes(scopes.split(' ')).with_claims(key.into_iter().collect()))
    }
}

/// A server whose tool `write` needs a scope of its own. Returns its URL.
async fn serve(authority: &Arc<TestAuthority>) -> String {
    serve_with(authority, |auth| auth).await
}

async fn serve_with(
    authority: &Arc<TestAuthority>,
    change: impl FnOnce(ResourceServerBuilder) -> ResourceServerBuilder,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let auth = ResourceServer::builder(&url)
        .verifier(Introspection(Arc::clone(authority)))
        .authorization_server(authority.issuer())
        .required_scopes(["mcp"]);
    let auth = change(auth).build().unwrap();
    let tool = |name: &'static str| Tool::new(name, move |_: &Ctx, _: NoArguments| async move { name });
    let server =
        common::fixture(|builder| builder.tool(tool("read")).tool(tool("write").scopes(["write"]))).server;
    tokio::spawn(serve_http(listener, server, HttpOptions::default().authorize(auth)).into_future());
    url
}

#[tokio::test]
async fn a_client_signs_in_steps_up_and_renews() {
    for mode in [Mode::Auto, Mode::Legacy] {
        let authority = Arc::new(TestAuthority::start().await.unwrap());
        authority.expire(3600);
        let url = serve(&authority).await;
        let oauth = OAuth::builder("test").handler(authority.person()).build().unwrap();
        let transport = HttpTransport::builder(&url).oauth(&oauth).build().unwrap();
        let client = Client::builder("test", "1").mode(mode.clone()).connect(transport);
        let call = async |name: &'static str| client.call_tool(name, json!({})).await;

        // A hundred calls meet a 401 at once.
        for done in join_all((0..100).map(|_| call("read"))).await {
            assert!(!done.unwrap().failed());
        }
        assert_eq!((authority.count("/authorize"), authority.count("/token")), (1, 1));
        // Their token is revoked.
        authority.revoke_all();
        for done in join_all((0..100).map(|_| call("read"))).await {
            assert!(!done.unwrap().failed());
        }
        assert_eq!(authority.grants(), ["authorization_code", "refresh_token"]);
        // One tool needs more.
        assert!(!call("write").await.unwrap().failed());
        let scopes: Vec<String> = authority
            .seen()
            .into_iter()
            .filter(|seen| seen.path == "/authorize")
            .map(|mut seen| seen.query.remove("scope").unwrap())
            .collect();
        assert_eq!(scopes, ["mcp", "mcp write"], "{mode:?}");
        client.close().await;
    }
}

#[tokio::test]
async fn without_a_handler_the_cause_says_so() {
    let authority = Arc::new(TestAuthority::start().await.unwrap());
    let url = serve(&authority).await;
    let oauth = OAuth::builder("test").build().unwrap();
    let transport = HttpTransport::builder(&url).oauth(&oauth).build().unwrap();
    let fault = Client::builder("test", "1").connect(transport).list_tools().await.unwrap_err();
    assert_eq!(fault.http_status(), Some(401));
    let mut text = fault.to_string();
    let mut cause = std::error::Error::source(&fault);
    while let Some(one) = cause {
        text += &format!(": {one}");
        cause = one.source();
    }
    assert!(text.contains("no way to ask a person"), "{text}");
}

/// The client and the server of this crate, with tokens that are bound to a key.
#[tokio::test]
async fn a_stolen_token_is_of_no_use() {
    for mode in [Mode::Auto, Mode::Legacy] {
        for rules in [Dpop::optional(), Dpop::required(), Dpop::required().nonces([7; 32])] {
            let what = format!("{mode:?} {rules:?}");
            let authority = Arc::new(TestAuthority::start().await.unwrap());
            authority.bind_tokens();
            authority.expire(3600);
            let url = serve_with(&authority, |auth| auth.dpop(rules)).await;
            // The clock of the server.
            let oauth = OAuth::builder("test").handler(authority.person()).clock(common::start);
            let oauth = oauth.build().unwrap();
            let transport = HttpTransport::builder(&url).oauth(&oauth).build().unwrap();
            let client = Client::builder("test", "1").mode(mode.clone()).connect(transport);
            for name in ["read", "write", "read"] {
                assert!(!client.call_tool(name, json!({})).await.unwrap().failed(), "{what}");
            }
            // The refresh keeps the key.
            authority.revoke_all();
            assert!(!client.call_tool("read", json!({})).await.unwrap().failed(), "{what}");
            client.close().await;
            let session = oauth.session(&url).unwrap();
            assert!(session.signed_in().await.unwrap().unwrap().bound, "{what}");
            let token = session.token().await.unwrap().unwrap();
            let thief = HttpTransport::builder(&url).bearer(token.expose()).build().unwrap();
            let thief = Client::builder("thief", "1").mode(mode.clone()).connect(thief);
            let fault = thief.call_tool("read", json!({})).await.unwrap_err();
            assert_eq!(fault.http_status(), Some(401), "{what}");
        }
    }
}

/// A server that demands bound tokens, and an authorization server that issues none.
#[tokio::test]
async fn no_free_token_takes_the_place_of_a_bound_one() {
    let authority = Arc::new(TestAuthority::start().await.unwrap());
    let url = serve_with(&authority, |auth| auth.dpop(Dpop::required())).await;
    let oauth = OAuth::builder("test").handler(authority.person()).build().unwrap();
    let transport = HttpTransport::builder(&url).oauth(&oauth).build().unwrap();
    let fault = Client::builder("test", "1").connect(transport).list_tools().await.unwrap_err();
    assert_eq!(fault.http_status(), Some(401));
    assert_eq!(authority.count("/authorize"), 0);
}

/// The time of a request is a minute; a person takes two.
#[tokio::test]
async fn a_person_takes_longer_than_a_request_may() {
    for mode in [Mode::Auto, Mode::Legacy] {
        let authority = Arc::new(TestAuthority::start().await.unwrap());
        let url = serve(&authority).await;
        let browser = Arc::clone(&authority);
        let handler = ByHand::new("http://127.0.0.1/callback", move |consent: Consent| {
            let browser = Arc::clone(&browser);
            async move {
                tokio::time::pause();
                tokio::time::advance(Duration::from_secs(120)).await;
                tokio::time::resume();
                browser.visit(&consent.url).await
            }
        });
        let oauth = OAuth::builder("test").handler(handler).build().unwrap();
        let transport = HttpTransport::builder(&url).oauth(&oauth).build().unwrap();
        let client = Client::builder("test", "1").mode(mode).leg_timeout(Duration::from_secs(60));
        let client = client.connect(transport);
        assert!(!client.call_tool("read", json!({})).await.unwrap().failed());
        client.close().await;
    }
}
