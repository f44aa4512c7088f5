//! The switches for servers that do not conform, each against such a server.

use crate::support::{client, get, session};
use antiphon_oauth::{
    ErrorKind, OAuthBuilder, ResourceParameter,
    testing::{Attack, TestAuthority},
};
use http::StatusCode;

/// Signs in with and without a switch. Returns the `resource` of both requests with it.
async fn check(
    fault: Attack,
    switch: impl Fn(OAuthBuilder) -> OAuthBuilder,
    without: ErrorKind,
) -> [Option<String>; 2] {
    let authority = TestAuthority::start().await.unwrap();
    authority.attack([fault]);
    authority.expire(3600);
    let strict = session(client(&authority), &authority);
    assert_eq!(get(&strict, &authority).await.unwrap_err().kind(), without, "{fault:?}");
    assert_eq!(authority.count("/token"), 0, "{fault:?}");

    let lenient = session(switch(client(&authority)), &authority);
    assert_eq!(get(&lenient, &authority).await.unwrap(), StatusCode::OK, "{fault:?}");
    // The refresh is under the same switch.
    authority.revoke_all();
    assert_eq!(get(&lenient, &authority).await.unwrap(), StatusCode::OK, "{fault:?}");
    assert_eq!(authority.grants(), ["authorization_code", "refresh_token"]);
    let seen = authority.seen();
    let last = |path: &str| seen.iter().rev().find(|seen| seen.path == path).unwrap();
    let authorize = last("/authorize");
    // PKCE is never left out.
    assert_eq!(authorize.query["code_challenge_method"], "S256");
    [authorize.query.get("resource").cloned(), last("/token").form().remove("resource")]
}

#[tokio::test]
async fn an_issuer_with_a_slash_at_its_root() {
    let sent = check(Attack::RootSlash, OAuthBuilder::tolerate_root_slash, ErrorKind::Issuer).await;
    assert!(sent.iter().all(|resource| resource.as_ref().is_some_and(|text| text.ends_with("/mcp"))));
}

#[tokio::test]
async fn the_slash_is_all_that_is_tolerated() {
    let authority = TestAuthority::start().await.unwrap();
    for attack in [Attack::IssuerOfMetadata, Attack::IssuerOfAnswer] {
        authority.attack([attack]);
        let lenient = session(client(&authority).tolerate_root_slash(), &authority);
        assert_eq!(get(&lenient, &authority).await.unwrap_err().kind(), ErrorKind::Issuer);
    }
}

#[tokio::test]
async fn an_authorization_server_that_does_not_mention_pkce() {
    check(Attack::NoPkce, OAuthBuilder::assume_pkce, ErrorKind::Discovery).await;
    // One that says that it supports something else is refused all the same.
    let authority = TestAuthority::start().await.unwrap();
    authority.attack([Attack::PlainPkce]);
    let lenient = session(client(&authority).assume_pkce(), &authority);
    assert_eq!(get(&lenient, &authority).await.unwrap_err().kind(), ErrorKind::Discovery);
}

#[tokio::test]
async fn an_authorization_server_that_refuses_the_resource() {
    let omit = |builder: OAuthBuilder| builder.resource(ResourceParameter::Omit);
    assert_eq!(check(Attack::RefusesResource, omit, ErrorKind::Denied).await, [None, None]);
}

#[tokio::test]
async fn a_resource_of_the_settings() {
    let authority = TestAuthority::start().await.unwrap();
    let other = ResourceParameter::Instead("api://orders".to_owned());
    let session = session(client(&authority).resource(other), &authority);
    assert_eq!(get(&session, &authority).await.unwrap(), StatusCode::OK);
    let seen = authority.seen();
    let sent: Vec<String> = seen
        .iter()
        .filter_map(|seen| match &*seen.path {
            "/authorize" => seen.query.get("resource").cloned(),
            "/token" => seen.form().remove("resource"),
            _ => None,
        })
        .collect();
    assert_eq!(sent, ["api://orders"; 2]);
}
