//! Checks of single requests, without rmcp's loop. With two replicas, each request of a call goes to the other replica.

use crate::{
    check::{Check, CheckResult, checks, expect_equal},
    fleet::{Call, Fleet, Leg, Retry},
    table_cases::without_server_info,
};
use serde_json::{Map, Value, json};

pub(crate) const CHECKS: &[(&str, Check)] = checks! {
    "by hand: update_work_item, the first answer travels in the state" => two_rounds,
    "by hand: a kept answer is not replaced by one sent later" => not_replaced,
    "by hand: briefing, absent then empty arguments" => absent_and_empty,
    "by hand: a retry without answers is asked again" => asked_again,
    "by hand: in a later round the missing answer alone is asked again" => later_asked_again,
    "by hand: answers under unknown keys are ignored" => unknown_keys,
    "by hand: answers without a state are ignored" => no_state,
    "by hand: answers that do not fit are asked again" => invalid_answers,
    "by hand: the same leg twice gives the same result" => repeated_leg,
    "by hand: a call begun by hand is finished by the loop" => finished_by_loop,
    "by hand: twenty calls side by side" => side_by_side,
};

/// The first text of a complete result.
fn only_text(leg: Leg) -> Result<String, String> {
    let Leg::Done(result) = leg else { return Err(format!("not a result: {leg:?}")) };
    let result = without_server_info(result)?;
    expect_equal(&result["resultType"], &json!("complete"))?;
    let text = [
        &result["content"][0]["text"],
        &result["messages"][0]["content"]["text"],
        &result["contents"][0]["text"],
    ];
    text.into_iter().find_map(Value::as_str).map(str::to_owned).ok_or_else(|| format!("no text: {result}"))
}

/// The state of a round that has one form, with this key.
pub(crate) fn expect_question(leg: Leg, key: &str) -> Result<String, String> {
    let Leg::Asks(required) = leg else { return Err(format!("not a question: {leg:?}")) };
    let requests = required.input_requests.unwrap_or_default();
    expect_equal(&requests.keys().map(String::as_str).collect::<Vec<_>>(), &vec![key])?;
    let request = serde_json::to_value(&requests[key]).map_err(|fault| fault.to_string())?;
    expect_equal(&request["method"], &json!("elicitation/create"))?;
    expect_equal(&request["params"]["mode"], &json!("form"))?;
    let state = required.request_state.ok_or("no state")?;
    if state.starts_with("r1.") && state.len() > 40 {
        Ok(state)
    } else {
        Err("the state is not a sealed token".into())
    }
}

pub(crate) async fn leg(fleet: &Fleet, call: &Call, retry: &Retry) -> Result<Leg, String> {
    fleet.leg(call, retry).await.map_err(|error| error.to_string())
}

pub(crate) fn accept(content: &Value) -> Value {
    json!({"action": "accept", "content": content})
}

pub(crate) fn provision() -> Call {
    Call::tool("provision", json!({"name": "orders"}))
}

fn bug() -> Call {
    Call::tool("update_work_item", json!({"workItemId": 4522, "fields": {"System.State": "Resolved"}}))
}

const DUPLICATE: &str =
    "Bug #4522 resolved as Duplicate of Bug #4301. State set to Resolved and duplicate link created.";
const IN_IRELAND: &str = "Provisioned \"orders\" in eu-west-1.";

fn answer_ireland(state: &str) -> Retry {
    Retry::answers(&json!({"region": accept(&json!({"region": "eu-west-1"}))}), state)
}

async fn second_round_state(fleet: &Fleet) -> Result<String, String> {
    let state = expect_question(leg(fleet, &bug(), &Retry::default()).await?, "resolution")?;
    let answers = json!({"resolution": accept(&json!({"resolution": "Duplicate"}))});
    let second =
        expect_question(leg(fleet, &bug(), &Retry::answers(&answers, &state)).await?, "duplicate_of")?;
    if second == state { Err("the state did not change".into()) } else { Ok(second) }
}

fn original_bug() -> Value {
    accept(&json!({"duplicateOfId": 4301}))
}

async fn two_rounds(fleet: &Fleet) -> CheckResult {
    let state = second_round_state(fleet).await?;
    let retry = Retry::answers(&json!({"duplicate_of": original_bug()}), &state);
    expect_equal(&only_text(leg(fleet, &bug(), &retry).await?)?.as_str(), &DUPLICATE)
}

async fn not_replaced(fleet: &Fleet) -> CheckResult {
    let state = second_round_state(fleet).await?;
    let answers =
        json!({"duplicate_of": original_bug(), "resolution": accept(&json!({"resolution": "Fixed"}))});
    expect_equal(
        &only_text(leg(fleet, &bug(), &Retry::answers(&answers, &state)).await?)?.as_str(),
        &DUPLICATE,
    )
}

async fn absent_and_empty(fleet: &Fleet) -> CheckResult {
    let mut call = Call::prompt("briefing");
    let state = expect_question(leg(fleet, &call, &Retry::default()).await?, "audience")?;
    call.arguments = Some(Map::new());
    let retry = Retry::answers(&json!({"audience": accept(&json!({"audience": "the board"}))}), &state);
    let wanted = "Write a briefing on the current state of the project for the board.";
    expect_equal(&only_text(leg(fleet, &call, &retry).await?)?.as_str(), &wanted)
}

async fn asked_again(fleet: &Fleet) -> CheckResult {
    let mut state = expect_question(leg(fleet, &provision(), &Retry::default()).await?, "region")?;
    for retry in [Retry::state(&state), Retry::answers(&json!({}), &state)] {
        state = expect_question(leg(fleet, &provision(), &retry).await?, "region")?;
    }
    expect_equal(&only_text(leg(fleet, &provision(), &answer_ireland(&state)).await?)?.as_str(), &IN_IRELAND)
}

async fn later_asked_again(fleet: &Fleet) -> CheckResult {
    let state = second_round_state(fleet).await?;
    let state = expect_question(leg(fleet, &bug(), &Retry::state(&state)).await?, "duplicate_of")?;
    let retry = Retry::answers(&json!({"duplicate_of": original_bug()}), &state);
    expect_equal(&only_text(leg(fleet, &bug(), &retry).await?)?.as_str(), &DUPLICATE)
}

async fn unknown_keys(fleet: &Fleet) -> CheckResult {
    let state = expect_question(leg(fleet, &provision(), &Retry::default()).await?, "region")?;
    let stray = json!({"zone": accept(&json!({"region": "nowhere"})), "roots": {"roots": []}});
    let state = expect_question(leg(fleet, &provision(), &Retry::answers(&stray, &state)).await?, "region")?;
    let mut answers = stray;
    answers["region"] = accept(&json!({"region": "eu-west-1", "zone": "nowhere"}));
    expect_equal(
        &only_text(leg(fleet, &provision(), &Retry::answers(&answers, &state)).await?)?.as_str(),
        &IN_IRELAND,
    )
}

async fn no_state(fleet: &Fleet) -> CheckResult {
    let mut retry = answer_ireland("");
    retry.state = None;
    expect_question(leg(fleet, &provision(), &retry).await?, "region").map(drop)
}

async fn invalid_answers(fleet: &Fleet) -> CheckResult {
    for answer in [
        accept(&json!({"resolution": "Later"})),
        accept(&json!({"resolution": 7})),
        accept(&json!({})),
        json!({"action": "accept"}),
        json!({"roots": []}),
    ] {
        let state = expect_question(leg(fleet, &bug(), &Retry::default()).await?, "resolution")?;
        let retry = Retry::answers(&json!({"resolution": answer}), &state);
        let state = expect_question(leg(fleet, &bug(), &retry).await?, "resolution")?;
        let fits = json!({"resolution": accept(&json!({"resolution": "Fixed"}))});
        let text = only_text(leg(fleet, &bug(), &Retry::answers(&fits, &state)).await?)?;
        expect_equal(&text.as_str(), &"Bug #4522 resolved as Fixed. State set to Resolved.")?;
    }
    Ok(())
}

async fn repeated_leg(fleet: &Fleet) -> CheckResult {
    let state = expect_question(leg(fleet, &provision(), &Retry::default()).await?, "region")?;
    for _ in 0..2 {
        expect_equal(
            &only_text(leg(fleet, &provision(), &answer_ireland(&state)).await?)?.as_str(),
            &IN_IRELAND,
        )?;
    }
    Ok(())
}

async fn finished_by_loop(fleet: &Fleet) -> CheckResult {
    let state = expect_question(leg(fleet, &bug(), &Retry::default()).await?, "resolution")?;
    fleet.script.set(json!({"duplicate_of": original_bug()}).as_object().unwrap_or(&Map::new()));
    let answers = json!({"resolution": accept(&json!({"resolution": "Duplicate"}))});
    let result =
        fleet.call(&bug(), &Retry::answers(&answers, &state)).await.map_err(|error| error.to_string())?;
    expect_equal(&only_text(Leg::Done(result))?.as_str(), &DUPLICATE)?;
    expect_equal(&fleet.script.asked().keys().map(String::as_str).collect::<Vec<_>>(), &vec!["duplicate_of"])
}

async fn side_by_side(fleet: &Fleet) -> CheckResult {
    let one = async |n: usize| {
        let call = Call::tool("provision", json!({"name": format!("db-{n}")}));
        let state = expect_question(leg(fleet, &call, &Retry::default()).await?, "region")?;
        let answers = json!({"region": accept(&json!({"region": format!("zone-{n}")}))});
        let text = only_text(leg(fleet, &call, &Retry::answers(&answers, &state)).await?)?;
        expect_equal(&text, &format!("Provisioned \"db-{n}\" in zone-{n}."))
    };
    futures_util::future::try_join_all((0..20).map(one)).await.map(drop)
}
