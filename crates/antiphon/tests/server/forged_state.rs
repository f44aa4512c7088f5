//! Forged, stolen and damaged states: the frozen refusal, and the handler does not run.

use crate::common::*;
use antiphon::server::ServerBuilder;
use serde_json::{Value, json};
use std::time::Duration;

/// The one answer to everything that is wrong with a state.
fn assert_frozen(what: &str, over: Over, id: u32, (status, reply): (u16, Value)) {
    let expected = json!({"jsonrpc": "2.0", "id": id, "error": {
        "code": -32602,
        "message": "Invalid or expired requestState",
        "data": {"reason": "invalid_request_state"}
    }});
    assert_eq!(reply, expected, "{what} over {over:?}");
    assert_eq!(status, if over == Over::Http { 400 } else { 200 }, "{what}");
}

/// Sends the retry with this state, and asserts that it is refused and that nothing ran.
async fn check(what: &str, over: Over, fixture: &Fixture, method: &str, params: &Value, state: Value) {
    check_as(what, over, fixture, method, params, state, Some("alice@app")).await;
}

async fn check_as(
    what: &str,
    over: Over,
    fixture: &Fixture,
    method: &str,
    params: &Value,
    state: Value,
    user: Option<&str>,
) {
    let before = runs(&fixture.runs);
    let retry = with(params, json!({"inputResponses": answers(), "requestState": state}));
    let answer = send(over, &fixture.server, &request(9, method, retry), user).await;
    assert_frozen(what, over, 9, answer);
    assert_eq!(runs(&fixture.runs), before, "{what}: the handler ran");
}

/// A server that knows its callers by header.
fn guarded(change: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Fixture {
    fixture(|builder| change(builder.bind_principal(by_header)))
}

async fn first_leg(over: Over, fixture: &Fixture, method: &str, params: &Value) -> String {
    let (_, reply) =
        send(over, &fixture.server, &request(1, method, params.clone()), Some("alice@app")).await;
    state_of(&reply)
}

/// Every transport with every method.
fn everywhere() -> impl Iterator<Item = (Over, &'static str, Value)> {
    [Over::Http, Over::Stdio]
        .into_iter()
        .flat_map(|over| askable().into_iter().map(move |(method, params)| (over, method, params)))
}

#[tokio::test]
async fn a_state_that_was_changed_anywhere() {
    for (over, method, params) in everywhere() {
        let fixture = guarded(|builder| builder);
        let state = first_leg(over, &fixture, method, &params).await;
        // Every position over HTTP; over stdio, whose way to the server is the same, every seventh.
        for at in (0..state.len()).step_by(if over == Over::Http { 1 } else { 7 }) {
            let mut bytes = state.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).unwrap();
            check(&format!("changed at {at}"), over, &fixture, method, &params, changed.into()).await;
        }
        for end in (0..state.len()).step_by(5) {
            check(&format!("cut at {end}"), over, &fixture, method, &params, state[..end].into()).await;
        }
        for more in ["A", "AAAA", "=", "-TAMPERED", " ", "\n", "."] {
            check(
                &format!("with {more:?}"),
                over,
                &fixture,
                method,
                &params,
                format!("{state}{more}").into(),
            )
            .await;
        }
    }
}

#[tokio::test]
async fn a_state_of_no_form_at_all() {
    for (over, method, params) in everywhere() {
        let fixture = guarded(|builder| builder);
        let state = first_leg(over, &fixture, method, &params).await;
        let body = state.strip_prefix("r1.").unwrap();
        for (what, forged) in [
            ("empty", json!("")),
            ("prefix only", json!("r1.")),
            ("no prefix", json!(body)),
            ("other prefix", json!(format!("r2.{body}"))),
            ("padded base64", json!(format!("{state}=="))),
            ("standard base64", json!(format!("r1.{}", body.replace('-', "+").replace('_', "/") + "+/"))),
            ("spaces", json!(format!("r1. {body}"))),
            ("not ASCII", json!(format!("{state}é"))),
            ("one MiB", json!("A".repeat(1 << 20))),
            ("one MiB with prefix", json!(format!("r1.{}", "A".repeat(1 << 20)))),
            ("a number", json!(7)),
            ("a boolean", json!(true)),
            ("a list", json!([state])),
            ("an object", json!({"state": state})),
        ] {
            check(what, over, &fixture, method, &params, forged).await;
        }
        // The last character has bits that no byte needs: only one spelling of them is ours.
        let last = state.chars().last().unwrap();
        for other in
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".chars().filter(|c| *c != last)
        {
            let respelled = format!("{}{other}", &state[..state.len() - 1]);
            check(&format!("ends in {other}"), over, &fixture, method, &params, respelled.into()).await;
        }
        // JSON can spell the same text with escapes; a token never needs them.
        if over == Over::Http {
            let before = runs(&fixture.runs);
            let text = request(
                9,
                method,
                with(&params, json!({"requestState": state, "inputResponses": answers()})),
            )
            .to_string()
            .replace("\"r1.", "\"\\u0072\\u0031.");
            let mut retry = http_request(&request(9, method, params.clone()), Some("alice@app"));
            *retry.body_mut() = text.into();
            let mut service =
                antiphon::serve::http::HttpService::new(fixture.server.clone(), Default::default());
            let response = tower_service::Service::call(&mut service, retry).await.unwrap();
            assert_eq!((response.status().as_u16(), runs(&fixture.runs)), (400, before));
        }
    }
}

#[tokio::test]
async fn a_state_of_another_request() {
    for (over, method, params) in everywhere() {
        let fixture = guarded(|builder| builder);
        let state = first_leg(over, &fixture, method, &params).await;
        for (other_method, other_params) in [
            ("tools/call", json!({"name": "ask", "arguments": {"name": "orders"}})),
            ("tools/call", json!({"name": "ask", "arguments": {"name": "Orders"}})),
            ("tools/call", json!({"name": "ask", "arguments": {"name": "orders", "x": null}})),
            ("tools/call", json!({"name": "ask"})),
            ("tools/call", json!({"name": "other", "arguments": {"name": "orders"}})),
            // A handler that never asks checks it all the same.
            ("tools/call", json!({"name": "echo", "arguments": {"name": "orders"}})),
            ("prompts/get", json!({"name": "ask", "arguments": {"name": "orders"}})),
            ("prompts/get", json!({"name": "ask", "arguments": {"name": "order"}})),
            ("resources/read", json!({"uri": "ask://one"})),
            ("resources/read", json!({"uri": "ask://many/1"})),
            ("resources/read", json!({"uri": "ask://many/2"})),
        ] {
            if (method, &params) != (other_method, &other_params) {
                let what = format!("of {method} {params} on {other_method} {other_params}");
                check(&what, over, &fixture, other_method, &other_params, state.clone().into()).await;
            }
        }
    }
}

#[tokio::test]
async fn a_state_of_somebody_else() {
    // Who is calling is only known over HTTP.
    for (method, params) in askable() {
        let fixture = guarded(|builder| builder);
        let state = first_leg(Over::Http, &fixture, method, &params).await;
        for (what, user) in [
            ("another user", Some("bob@app")),
            ("another user of the same OAuth client", Some("mallory@app")),
            ("the same user of another client", Some("alice@other")),
            ("the client without a user", Some("app")),
            ("a principal that went away", None),
            ("a binder that fails", Some("?")),
        ] {
            check_as(what, Over::Http, &fixture, method, &params, state.clone().into(), user).await;
        }
        // And the other way round: a state made for nobody, with somebody.
        let (_, reply) = send(Over::Http, &fixture.server, &request(1, method, params.clone()), None).await;
        let what = "a principal that came";
        check_as(what, Over::Http, &fixture, method, &params, state_of(&reply).into(), Some("alice@app"))
            .await;
    }
}

#[tokio::test]
async fn without_an_identity_nothing_is_sealed() {
    let fixture = guarded(|builder| builder);
    for (method, params) in askable() {
        for user in ["?", "app"] {
            let (status, reply) =
                send(Over::Http, &fixture.server, &request(1, method, params.clone()), Some(user)).await;
            assert_eq!((status, &reply["error"]["code"]), (200, &json!(-32603)), "{user}: {reply}");
            assert_eq!(reply["error"]["message"], "Internal error");
        }
    }
    let lenient = guarded(|builder| builder.allow_client_principal(true));
    let (method, params) = askable()[0].clone();
    let (_, reply) = send(Over::Http, &lenient.server, &request(1, method, params), Some("app")).await;
    assert!(state_of(&reply).starts_with("r1."));
}

#[tokio::test]
async fn a_state_of_another_audience_or_key() {
    for (over, method, params) in everywhere() {
        let fixture = guarded(|builder| builder);
        for (what, other) in [
            ("another audience", guarded(|builder| builder.audience("elsewhere"))),
            ("an unknown key", guarded(|builder| builder.keys(ring(8)))),
        ] {
            let state = first_leg(over, &other, method, &params).await;
            check(what, over, &fixture, method, &params, state.into()).await;
        }
    }
}

#[tokio::test]
async fn a_state_of_another_time() {
    for (over, method, params) in everywhere() {
        let fixture = guarded(|builder| builder);
        let state = first_leg(over, &fixture, method, &params).await;
        // Ten minutes, and a minute for clocks that differ.
        fixture.clock.advance(Duration::from_secs(601));
        check("expired", over, &fixture, method, &params, state.clone().into()).await;
        fixture.clock.turn_back(Duration::from_secs(601 + 61));
        check("from the future", over, &fixture, method, &params, state.clone().into()).await;
        fixture.clock.advance(Duration::from_secs(1));
        let retry = with(&params, json!({"inputResponses": answers(), "requestState": state}));
        let (_, reply) = send(over, &fixture.server, &request(9, method, retry), Some("alice@app")).await;
        assert_eq!(reply["result"]["resultType"], "complete", "{reply}");
    }
}

#[tokio::test]
async fn a_call_that_took_too_long_as_a_whole() {
    let fixture = fixture(|builder| builder.call_timeout(Duration::from_secs(900)));
    let (method, params) = askable()[0].clone();
    let (_, reply) = send(Over::Http, &fixture.server, &request(1, method, params.clone()), None).await;
    let mut state = state_of(&reply);
    // Each leg is in time and asks again; the third comes after the deadline.
    fixture.clock.advance(Duration::from_secs(500));
    let (_, reply) = send(
        Over::Http,
        &fixture.server,
        &request(2, method, with(&params, json!({"requestState": state}))),
        None,
    )
    .await;
    state = state_of(&reply);
    fixture.clock.advance(Duration::from_secs(470));
    let retry = with(&params, json!({"requestState": state, "inputResponses": answers()}));
    assert_frozen(
        "late",
        Over::Http,
        3,
        send(Over::Http, &fixture.server, &request(3, method, retry), None).await,
    );
}

#[tokio::test]
async fn a_late_state_is_asked_again_where_the_server_says_so() {
    let fixture = fixture(|builder| builder.on_expired(antiphon::server::operations::OnExpired::AskAgain));
    for (method, params) in askable() {
        let (_, reply) = send(Over::Http, &fixture.server, &request(1, method, params.clone()), None).await;
        let state = state_of(&reply);
        let ran = runs(&fixture.runs);
        let late = with(&params, json!({"requestState": state, "inputResponses": answers()}));
        fixture.clock.advance(Duration::from_secs(3600));
        let (_, reply) = send(Over::Http, &fixture.server, &request(2, method, late.clone()), None).await;
        // What came too late does not count, and the question is the same.
        assert_eq!(
            reply["result"]["inputRequests"]["region"]["params"]["message"], "Which region?",
            "{reply}"
        );
        assert_eq!(runs(&fixture.runs), ran);
        let in_time = with(&params, json!({"requestState": state_of(&reply), "inputResponses": answers()}));
        let (_, reply) = send(Over::Http, &fixture.server, &request(3, method, in_time), None).await;
        assert_eq!(reply["result"]["resultType"], "complete", "{reply}");
        // A day, an hour of which is over, and a minute for clocks that differ.
        fixture.clock.advance(Duration::from_secs(23 * 3600 + 61));
        let answer = send(Over::Http, &fixture.server, &request(4, method, late.clone()), None).await;
        assert_frozen("after the whole call's deadline", Over::Http, 4, answer);
        // Late or not, it must be ours.
        let other = with(&late, json!({"requestState": format!("{state}AAAA")}));
        let answer = send(Over::Http, &fixture.server, &request(5, method, other), None).await;
        assert_frozen("late and changed", Over::Http, 5, answer);
    }
}
