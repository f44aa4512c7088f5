//! Checks of requests that the server must refuse, and of the errors.

use crate::{
    by_hand::{accept, expect_question, leg, provision},
    check::{Check, CheckResult, checks, expect_equal},
    fleet::{Call, Fleet, Leg, Retry},
};
use rmcp::service::ServiceError;
use serde_json::{Value, json};

pub(crate) const CHECKS: &[(&str, Check)] = checks! {
    "a state that was tampered with is refused in one way" => tampered,
    "a state belongs to its tool, arguments, prompt and URI" => bound_to_call,
    "an unknown tool, prompt or resource is a protocol error" => unknown_names,
    "a missing argument is refused before anything is asked" => missing_argument,
    "a client that cannot be asked: the error names the missing capability" => without_elicitation,
};

pub(crate) const CHECKS_OF_ASKS: &[(&str, Check)] = checks! {
    "a client that did not declare URLs, sampling and roots: the error names them" => forms_only,
};

/// The JSON-RPC error of a request.
async fn error(fleet: &Fleet, call: &Call, retry: &Retry) -> Result<Value, String> {
    match fleet.leg(call, retry).await {
        Err(ServiceError::McpError(error)) => serde_json::to_value(error).map_err(|fault| fault.to_string()),
        outcome => Err(format!("not refused: {outcome:?}")),
    }
}

async fn expect_invalid_state(fleet: &Fleet, call: &Call, state: &str) -> CheckResult {
    let wanted = json!({
        "code": -32602,
        "message": "Invalid or expired requestState",
        "data": {"reason": "invalid_request_state"},
    });
    expect_equal(&error(fleet, call, &Retry::state(state)).await?, &wanted)
}

async fn tampered(fleet: &Fleet) -> CheckResult {
    let state = expect_question(leg(fleet, &provision(), &Retry::default()).await?, "region")?;
    let middle = state.len() / 2;
    let other = if state[middle..].starts_with('A') { "B" } else { "A" };
    for (change, wrong) in [
        ("one character changed", format!("{}{other}{}", &state[..middle], &state[middle + 1..])),
        ("cut short", state[..state.len() - 5].to_owned()),
        ("made longer", format!("{state}AAAA")),
        ("another prefix", format!("v{}", &state[1..])),
        ("prefix only", "r1.".to_owned()),
        ("empty", String::new()),
        ("not a token", "nonsense".to_owned()),
    ] {
        let echo = Call::tool("echo", json!({"text": "hi"}));
        for call in [provision(), echo, Call::prompt("briefing"), Call::resource("report://q3")] {
            expect_invalid_state(fleet, &call, &wrong)
                .await
                .map_err(|fault| format!("{change}, {}: {fault}", call.name))?;
        }
    }
    Ok(())
}

async fn bound_to_call(fleet: &Fleet) -> CheckResult {
    let state = expect_question(leg(fleet, &provision(), &Retry::default()).await?, "region")?;
    for call in [
        Call::tool("provision", json!({"name": "other"})),
        Call::tool("echo", json!({"text": "orders"})),
        Call::tool("get_weather", json!({"location": "New York"})),
        Call::prompt("briefing"),
    ] {
        expect_invalid_state(fleet, &call, &state).await.map_err(|fault| format!("{call:?}: {fault}"))?;
    }
    let state =
        expect_question(leg(fleet, &Call::resource("report://q3"), &Retry::default()).await?, "audience")?;
    expect_invalid_state(fleet, &Call::resource("report://q4"), &state).await?;
    expect_invalid_state(fleet, &Call::prompt("briefing"), &state).await
}

async fn unknown_names(fleet: &Fleet) -> CheckResult {
    for call in [
        Call::tool("no_such_tool", json!({})),
        Call::prompt("no_such_prompt"),
        Call::resource("nothing://here"),
    ] {
        expect_equal(&error(fleet, &call, &Retry::default()).await?["code"], &json!(-32602))?;
    }
    Ok(())
}

async fn missing_argument(fleet: &Fleet) -> CheckResult {
    match fleet.leg(&Call::tool("provision", json!({})), &Retry::default()).await {
        Ok(Leg::Done(result)) => expect_equal(&result["isError"], &json!(true)),
        Err(ServiceError::McpError(error)) => expect_equal(&error.code.0, &-32602),
        outcome => Err(format!("not refused: {outcome:?}")),
    }
}

async fn without_elicitation(fleet: &Fleet) -> CheckResult {
    let client = fleet.with_capabilities(json!({})).await?;
    let wanted = json!({"elicitation": {"form": {}}});
    for call in [provision(), Call::prompt("briefing"), Call::resource("report://q3")] {
        expect_missing_capability(&client, &call, &wanted).await?;
    }
    let answers = json!({"region": accept(&json!({"region": "eu-west-1"}))});
    let unasked = Retry { responses: answers.as_object().cloned(), state: None };
    expect_equal(&error(&client, &provision(), &unasked).await?["code"], &json!(-32021))?;
    let echo = client.leg(&Call::tool("echo", json!({"text": "hi"})), &Retry::default()).await;
    client.close().await;
    match echo {
        Ok(Leg::Done(result)) => expect_equal(&result["content"][0]["text"], &json!("hi")),
        outcome => Err(format!("echo: outcome {outcome:?}")),
    }
}

async fn forms_only(fleet: &Fleet) -> CheckResult {
    let client = fleet.with_capabilities(json!({"elicitation": {"form": {}}})).await?;
    expect_missing_capability(
        &client,
        &Call::tool("pay", json!({"amount": 7})),
        &json!({"elicitation": {"url": {}}}),
    )
    .await?;
    expect_missing_capability(
        &client,
        &Call::tool("summarize", json!({"text": "it"})),
        &json!({"sampling": {}}),
    )
    .await?;
    expect_missing_capability(&client, &Call::tool("list_my_roots", json!({})), &json!({"roots": {}}))
        .await?;
    expect_missing_capability(&client, &Call::resource("tree://mine"), &json!({"roots": {}})).await?;
    expect_question(leg(&client, &Call::tool("ladder", json!({})), &Retry::default()).await?, "word1")?;
    client.close().await;
    Ok(())
}

async fn expect_missing_capability(fleet: &Fleet, call: &Call, wanted: &Value) -> CheckResult {
    let error = error(fleet, call, &Retry::default()).await?;
    expect_equal(&error["code"], &json!(-32021))?;
    expect_equal(&error["data"]["requiredCapabilities"], wanted)
}
