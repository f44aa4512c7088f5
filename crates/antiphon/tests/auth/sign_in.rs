//! A client that signs in by itself, against a server that demands tokens.

use crate::common;
use antiphon::{
    client::{Client, Mode, oauth::OAuth, transport::HttpTransport},
    seal::Principal,
    serve::http::{
        HttpOptions,
        auth::{BearerError, BearerVerifier, ResourceServer},
        serve_http,
    },
    server::{Bearer, Ctx, NoArguments, Tool},
    testing::authority::TestAuthority,
};
use futures_util::future::join_all;
use serde_json::json;
use std::sync::Arc;
use tokio::net::TcpListener;

/// Asks the authorization server about each token.
struct Introspection(Arc<TestAuthority>);

impl BearerVerifier for Introspection {
    async fn verify(&self, token: &str, _: &str) -> Result<Bearer, BearerError> {
        let scopes = self.0.scopes_of(token).ok_or_else(|| BearerError::invalid("not a token"))?;
        let principal = Principal::user("ada").with_client_id("client");
        Ok(Bearer::new(principal).with_scopes(scopes.split(' ')))
    }
}

/// A server whose tool `write` needs a scope of its own. Returns its URL.
async fn serve(authority: &Arc<TestAuthority>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let auth = ResourceServer::builder(&url)
        .verifier(Introspection(Arc::clone(authority)))
        .authorization_server(authority.issuer())
        .required_scopes(["mcp"])
        .build()
        .unwrap();
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
