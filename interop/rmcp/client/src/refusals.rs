//! What has to be refused, and how.

use crate::{
    Check, Verdict,
    by_hand::{accept, asks, leg, provision},
    checks,
    fleet::{Call, Fleet, Leg, Retry},
    same,
};
use rmcp::service::ServiceError;
use serde_json::{Value, json};

pub(crate) const CHECKS: &[(&str, Check)] = checks! {
    "a state that was tampered with is refused in one way" => tampered,
    "a state belongs to its tool, arguments, prompt and URI" => bound,
    "an unknown tool, prompt or resource is a protocol error" => unknown,
    "a missing argument is refused before anything is asked" => missing,
    "a client that cannot be asked is told which capability is missing" => mute,
};

pub(crate) const CHECKS_OF_ASKS: &[(&str, Check)] = checks! {
    "a client that did not declare URLs, sampling and roots is told so" => forms_alone,
};

/// The error as it came.
async fn error(fleet: &Fleet, call: &Call, retry: &Retry) -> Result<Value, String> {
    match fleet.leg(call, retry).await {
        Err(ServiceError::McpError(error)) => serde_json::to_value(error).map_err(|fault| fault.to_string()),
        came => Err(format!("not refused: {came:?}")),
    }
}

async fn refused(fleet: &Fleet, call: &Call, state: &str) -> Verdict {
    let wanted = json!({
        "code": -32602,
        "message": "Invalid or expired requestState",
        "data": {"reason": "invalid_request_state"},
    });
    same(&error(fleet, call, &Retry::state(state)).await?, &wanted)
}

async fn tampered(fleet: &Fleet) -> Verdict {
    let state = asks(leg(fleet, &provision(), &Retry::default()).await?, "region")?;
    let middle = state.len() / 2;
    let other = if state[middle..].starts_with('A') { "B" } else { "A" };
    for (what, wrong) in [
        ("one character changed", format!("{}{other}{}", &state[..middle], &state[middle + 1..])),
        ("cut short", state[..state.len() - 5].to_owned()),
        ("made longer", format!("{state}AAAA")),
        ("another prefix", format!("v{}", &state[1..])),
        ("prefix only", "r1.".to_owned()),
        ("empty", String::new()),
        ("no token", "nonsense".to_owned()),
    ] {
        let echo = Call::tool("echo", json!({"text": "hi"}));
        for call in [provision(), echo, Call::prompt("briefing"), Call::resource("report://q3")] {
            refused(fleet, &call, &wrong).await.map_err(|fault| format!("{what}, {}: {fault}", call.name))?;
        }
    }
    Ok(())
}

async fn bound(fleet: &Fleet) -> Verdict {
    let state = asks(leg(fleet, &provision(), &Retry::default()).await?, "region")?;
    for call in [
        Call::tool("provision", json!({"name": "other"})),
        Call::tool("echo", json!({"text": "orders"})),
        Call::tool("get_weather", json!({"location": "New York"})),
        Call::prompt("briefing"),
    ] {
        refused(fleet, &call, &state).await.map_err(|fault| format!("{call:?}: {fault}"))?;
    }
    let state = asks(leg(fleet, &Call::resource("report://q3"), &Retry::default()).await?, "audience")?;
    refused(fleet, &Call::resource("report://q4"), &state).await?;
    refused(fleet, &Call::prompt("briefing"), &state).await
}

async fn unknown(fleet: &Fleet) -> Verdict {
    for call in [
        Call::tool("no_such_tool", json!({})),
        Call::prompt("no_such_prompt"),
        Call::resource("nothing://here"),
    ] {
        same(&error(fleet, &call, &Retry::default()).await?["code"], &json!(-32602))?;
    }
    Ok(())
}

async fn missing(fleet: &Fleet) -> Verdict {
    match fleet.leg(&Call::tool("provision", json!({})), &Retry::default()).await {
        Ok(Leg::Done(result)) => same(&result["isError"], &json!(true)),
        Err(ServiceError::McpError(error)) => same(&error.code.0, &-32602),
        came => Err(format!("not refused: {came:?}")),
    }
}

async fn mute(fleet: &Fleet) -> Verdict {
    let mute = fleet.another(json!({})).await?;
    let wanted = json!({"elicitation": {"form": {}}});
    for call in [provision(), Call::prompt("briefing"), Call::resource("report://q3")] {
        lacks(&mute, &call, &wanted).await?;
    }
    let answers = json!({"region": accept(&json!({"region": "eu-west-1"}))});
    let unasked = Retry { responses: answers.as_object().cloned(), state: None };
    same(&error(&mute, &provision(), &unasked).await?["code"], &json!(-32021))?;
    let echo = mute.leg(&Call::tool("echo", json!({"text": "hi"})), &Retry::default()).await;
    mute.close().await;
    match echo {
        Ok(Leg::Done(result)) => same(&result["content"][0]["text"], &json!("hi")),
        came => Err(format!("echo came to {came:?}")),
    }
}

async fn forms_alone(fleet: &Fleet) -> Verdict {
    let able = fleet.another(json!({"elicitation": {"form": {}}})).await?;
    lacks(&able, &Call::tool("pay", json!({"amount": 7})), &json!({"elicitation": {"url": {}}})).await?;
    lacks(&able, &Call::tool("summarize", json!({"text": "it"})), &json!({"sampling": {}})).await?;
    lacks(&able, &Call::tool("list_my_roots", json!({})), &json!({"roots": {}})).await?;
    lacks(&able, &Call::resource("tree://mine"), &json!({"roots": {}})).await?;
    asks(leg(&able, &Call::tool("ladder", json!({})), &Retry::default()).await?, "word1")?;
    able.close().await;
    Ok(())
}

async fn lacks(fleet: &Fleet, call: &Call, wanted: &Value) -> Verdict {
    let error = error(fleet, call, &Retry::default()).await?;
    same(&error["code"], &json!(-32021))?;
    same(&error["data"]["requiredCapabilities"], wanted)
}
