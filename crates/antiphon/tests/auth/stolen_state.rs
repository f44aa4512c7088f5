//! A state under somebody else's access token: the frozen answer, on every method and every leg, and the handler does
//! not run. The tokens are real ones.
#![cfg(feature = "auth")]

use crate::common;

use crate::auth_support::*;
use crate::common::{
    answers, askable,
    post::{HttpReply, correct, post},
    request, runs, state_of, with,
};
use antiphon::{
    serve::http::{HttpOptions, HttpService, auth::Issuer},
    server::{Caller, ServerBuilder},
};
use serde_json::{Value, json};
use std::time::Duration;

const ELSEWHERE: &str = "https://elsewhere.example.com";

/// Two issuers with a key each.
struct Keys {
    ours: Key,
    elsewhere: Key,
}

impl Keys {
    fn new(algorithm: &'static str) -> Self {
        Self { ours: Key::new("one", algorithm), elsewhere: Key::new("two", "ES256") }
    }

    fn of(&self, user: &str) -> String {
        self.ours.sign(&claims(user, "mcp"))
    }

    fn service(&self, change: impl FnOnce(ServerBuilder) -> ServerBuilder) -> (HttpService, common::Fixture) {
        let elsewhere = Issuer::new(ELSEWHERE).jwks(key_set(&[&self.elsewhere]).to_string());
        behind(trusting(&[&self.ours]).issuer(elsewhere), change)
    }

    /// Returns the attackers: a name, the token, and the expected status. With a good token of another user than
    /// alice, the response is the frozen refusal.
    fn attackers(&self) -> Vec<(&'static str, Option<String>, u16)> {
        let changed = |key: &Key, name: &str, value: Value| {
            let mut claims = claims("alice@app", "mcp");
            claims[name] = value;
            key.sign(&claims)
        };
        vec![
            ("bob", Some(self.of("bob@other")), 400),
            ("another user of the same client", Some(self.of("mallory@app")), 400),
            ("alice by another client", Some(self.of("alice@other")), 400),
            ("alice in capitals", Some(self.of("Alice@app")), 400),
            ("a user that is called as the two parts together", Some(self.of("aliceapp@")), 400),
            ("alice and no client", Some(changed(&self.ours, "client_id", Value::Null)), 400),
            ("alice of another issuer", Some(changed(&self.elsewhere, "iss", json!(ELSEWHERE))), 400),
            ("the client itself", Some(changed(&self.ours, "sub", json!("app"))), 400),
            ("a client that is called alice", Some(self.of("alice@alice")), 400),
            ("alice, forged", Some(self.elsewhere.sign(&claims("alice@app", "mcp"))), 401),
            ("alice, for another server", Some(changed(&self.ours, "aud", json!("https://x.example"))), 401),
            ("alice, expired", Some(changed(&self.ours, "exp", json!(now() - 60))), 401),
            ("nobody", None, 401),
        ]
    }
}

async fn send_as(service: &HttpService, message: &Value, token: Option<&str>) -> HttpReply {
    match token {
        Some(token) => send(service, message, token).await,
        None => post(service, correct(message)).await,
    }
}

#[track_caller]
fn assert_frozen(what: &str, got: &HttpReply) {
    let expected = json!({"jsonrpc": "2.0", "id": 9, "error": {
        "code": -32602,
        "message": "Invalid or expired requestState",
        "data": {"reason": "invalid_request_state"}
    }});
    assert_eq!((got.status, got.json(), challenge(got)), (400, expected, None), "{what}");
}

#[tokio::test]
async fn a_state_under_another_bearer_on_every_method_and_leg() {
    for algorithm in ["RS256", "ES256"] {
        let keys = Keys::new(algorithm);
        for (method, params) in askable() {
            // Lenient, so that what has no subject gets as far as the state.
            let (service, fixture) = keys.service(|builder| builder.allow_client_principal(true));
            let mut state = None;
            for leg in 1..=3 {
                let next = match &state {
                    None => params.clone(),
                    // Unanswered: the question is asked again, in a state of the next leg.
                    Some(state) => with(&params, json!({"requestState": state})),
                };
                let got = send(&service, &request(1, method, next), &keys.of("alice@app")).await;
                let of_this_leg = state_of(&got.json());
                let theft = with(&params, json!({"requestState": of_this_leg, "inputResponses": answers()}));
                let before = runs(&fixture.runs);
                for (who, token, status) in keys.attackers() {
                    let what = format!("{algorithm} {method}, leg {leg}: {who}");
                    let got = send_as(&service, &request(9, method, theft.clone()), token.as_deref()).await;
                    if status == 400 {
                        assert_frozen(&what, &got);
                    } else {
                        got.check(&what, (status, 0));
                    }
                    assert_eq!(runs(&fixture.runs), before, "{what}: the handler ran");
                }
                state = Some(of_this_leg);
            }
            // Alice herself, with a token that was renewed in the meantime.
            fixture.clock.advance(Duration::from_secs(200));
            let mut renewed = claims("alice@app", "mcp more");
            (renewed["exp"], renewed["jti"]) = (json!(now() + 900), json!("2"));
            let retry = with(&params, json!({"requestState": state, "inputResponses": answers()}));
            let got = send(&service, &request(2, method, retry), &keys.ours.sign(&renewed)).await;
            assert_eq!(got.json()["result"]["resultType"], "complete", "{method}: {:?}", got.body);
        }
    }
}

/// The same state at two endpoints of one server, one of which asks nobody who they are.
#[tokio::test]
async fn a_principal_that_comes_or_goes() {
    let keys = Keys::new("ES256");
    for (method, params) in askable() {
        let (guarded, fixture) = keys.service(|builder| builder);
        let open = HttpService::new(fixture.server.clone(), HttpOptions::default());
        let alice = keys.of("alice@app");
        for (what, from, from_token, to, to_token) in [
            ("a principal that went away", &guarded, Some(&*alice), &open, None),
            ("a principal that came", &open, None, &guarded, Some(&*alice)),
            ("a token that nobody looks at", &guarded, Some(&*alice), &open, Some(&*alice)),
        ] {
            let got = send_as(from, &request(1, method, params.clone()), from_token).await;
            let retry =
                with(&params, json!({"requestState": state_of(&got.json()), "inputResponses": answers()}));
            let before = runs(&fixture.runs);
            assert_frozen(what, &send_as(to, &request(9, method, retry), to_token).await);
            assert_eq!(runs(&fixture.runs), before, "{what}: the handler ran");
        }
    }
}

/// A principal in the request's extensions, from a layer in front or from an attacker behind it, does not count.
#[tokio::test]
async fn what_is_in_the_extensions_already_does_not_count() {
    use antiphon::{seal::Principal, server::Bearer};
    let keys = Keys::new("ES256");
    let (service, fixture) = keys.service(|builder| builder);
    let (method, params) = askable()[0].clone();
    let got = send(&service, &request(1, method, params.clone()), &keys.of("alice@app")).await;
    let retry = with(&params, json!({"requestState": state_of(&got.json()), "inputResponses": answers()}));
    let mut theft = bearing(&request(9, method, retry), &keys.of("bob@app"));
    let alice = Principal::user("alice").with_client_id("app").with_issuer(ISSUER);
    theft.extensions_mut().insert(Bearer::new(alice.clone()));
    theft.extensions_mut().insert(alice);
    assert_frozen("bob with alice in front", &post(&service, theft).await);
    assert_eq!(runs(&fixture.runs), 1);
}

/// A binder of the server's own sees the verified token, and may bind to more of it.
#[tokio::test]
async fn a_binder_may_bind_to_more() {
    let keys = Keys::new("ES256");
    let by_tenant = |caller: &Caller<'_>| {
        let bearer = caller.bearer().ok_or("no token")?;
        let tenant = bearer.claims()["tenant"].as_str().ok_or("no tenant")?;
        let issuer = format!("{}/{tenant}", bearer.principal().issuer().unwrap_or_default());
        Ok::<_, &str>(Some(bearer.principal().clone().with_issuer(issuer)))
    };
    let (service, fixture) = keys.service(|builder| builder.bind_principal(by_tenant));
    let of = |tenant: &str| {
        let mut claims = claims("alice@app", "");
        claims["tenant"] = json!(tenant);
        keys.ours.sign(&claims)
    };
    let (method, params) = askable()[0].clone();
    let got = send(&service, &request(1, method, params.clone()), &of("one")).await;
    let retry = with(&params, json!({"requestState": state_of(&got.json()), "inputResponses": answers()}));
    assert_frozen("another tenant", &send(&service, &request(9, method, retry.clone()), &of("two")).await);
    assert_eq!(runs(&fixture.runs), 1);
    let got = send(&service, &request(2, method, retry), &of("one")).await;
    assert_eq!(got.json()["result"]["resultType"], "complete");
}
