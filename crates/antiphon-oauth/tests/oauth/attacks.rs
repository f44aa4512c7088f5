//! Hostile servers: what the client refuses, and what it sent before.

use crate::support::{client, get, session};
use antiphon_oauth::{
    ErrorKind,
    testing::{Attack, TestAuthority},
};

/// Signs in under an attack. Then the numbers of requests are those for authorization and for tokens.
async fn check(attack: Attack, kind: Option<ErrorKind>, sign_ins: usize, tokens: usize) {
    let authority = TestAuthority::start().await.unwrap();
    authority.attack([attack]);
    let session = session(client(&authority), &authority);
    let outcome = get(&session, &authority).await;
    if let Err(fault) = &outcome {
        let shown = format!("{fault} {fault:?}");
        assert!(
            !shown.contains('\u{1b}') && !shown.contains("code-") && !shown.contains("token-"),
            "{shown}"
        );
        let unbelieved = matches!(attack, Attack::ForgedError | Attack::OtherState | Attack::IssuerOfAnswer);
        assert!(!unbelieved || !shown.contains("evil"), "{attack:?}: {shown}");
    }
    assert_eq!(outcome.err().map(|fault| fault.kind()), kind, "{attack:?}");
    assert_eq!((authority.count("/authorize"), authority.count("/token")), (sign_ins, tokens), "{attack:?}");
    assert_eq!(authority.count("/stolen"), 0, "{attack:?}");
}

#[tokio::test]
async fn hostile_servers() {
    for (attack, kind, sign_ins, tokens) in [
        (Attack::OtherResource, Some(ErrorKind::Discovery), 0, 0),
        (Attack::IssuerOfMetadata, Some(ErrorKind::Issuer), 0, 0),
        (Attack::IssuerOfAnswer, Some(ErrorKind::Issuer), 1, 0),
        (Attack::NoIssuerInAnswer, Some(ErrorKind::Issuer), 1, 0),
        (Attack::OtherState, Some(ErrorKind::Callback), 1, 0),
        (Attack::ForgedError, Some(ErrorKind::Issuer), 1, 0),
        (Attack::TerminalText, Some(ErrorKind::Denied), 1, 0),
        (Attack::NoPkce, Some(ErrorKind::Discovery), 0, 0),
        (Attack::PlainPkce, Some(ErrorKind::Discovery), 0, 0),
        (Attack::ScriptEndpoint, Some(ErrorKind::Discovery), 0, 0),
        (Attack::InsecureEndpoint, Some(ErrorKind::Discovery), 0, 0),
        // It is secure by its URL; the connection is refused by its address.
        (Attack::CloudEndpoint, Some(ErrorKind::Network), 1, 0),
        (Attack::RootSlash, Some(ErrorKind::Issuer), 0, 0),
        (Attack::RefusesResource, Some(ErrorKind::Denied), 1, 0),
        (Attack::RedirectedToken, Some(ErrorKind::Token), 1, 1),
        (Attack::HugeDocument, Some(ErrorKind::Network), 0, 0),
        (Attack::TokenWithNewline, Some(ErrorKind::Token), 1, 1),
        (Attack::UnknownTokenType, Some(ErrorKind::Token), 1, 1),
        (Attack::OtherMethod, Some(ErrorKind::Registration), 0, 0),
        (Attack::EndlessToken, None, 1, 1),
    ] {
        check(attack, kind, sign_ins, tokens).await;
    }
}

/// The refusal is one of this program, by the address; that no service answers there would be the same kind.
#[tokio::test]
async fn an_address_of_the_cloud_is_not_connected_to() {
    let authority = TestAuthority::start().await.unwrap();
    authority.attack([Attack::CloudEndpoint]);
    let fault = session(client(&authority), &authority).login().await.unwrap_err();
    let expected = "https://169.254.169.254/latest/token cannot be reached: `169.254.169.254` is not an address that this \
                    server may lead to";
    assert_eq!(fault.to_string(), expected);
}

#[tokio::test]
async fn a_server_that_refuses_every_token_opens_one_browser() {
    let authority = TestAuthority::start().await.unwrap();
    authority.attack([Attack::RefusesAll]);
    let session = session(client(&authority), &authority);
    // The second refusal of the same request is its answer.
    assert_eq!(get(&session, &authority).await.unwrap(), 401);
    for _ in 0..3 {
        let fault = get(&session, &authority).await.unwrap_err();
        assert_eq!(fault.kind(), ErrorKind::Refused);
    }
    assert_eq!(authority.count("/authorize"), 1);
}

#[tokio::test]
async fn endless_scopes_end() {
    let authority = TestAuthority::start().await.unwrap();
    authority.attack([Attack::EndlessScopes]);
    let session = session(client(&authority), &authority);
    for expected in [Some(403), Some(403), None, None] {
        assert_eq!(get(&session, &authority).await.ok().map(|status| status.as_u16()), expected);
    }
    // One for the first token, two for more scopes.
    assert_eq!(authority.count("/authorize"), 3);
}

#[tokio::test]
async fn a_token_goes_to_its_server_only() {
    let authority = TestAuthority::start().await.unwrap();
    let session = session(client(&authority), &authority);
    session.login().await.unwrap();
    let mut attempt = session.attempt();
    let fault = attempt.headers("POST", "http://127.0.0.1:1/mcp").await.unwrap_err();
    assert_eq!(fault.kind(), ErrorKind::Setting);
    assert!(attempt.headers("POST", &authority.resource()).await.unwrap().contains_key("authorization"));
    assert!(!format!("{session:?} {attempt:?}").contains("token-"));
}
