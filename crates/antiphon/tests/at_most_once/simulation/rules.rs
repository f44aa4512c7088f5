//! The rules of a call, checked when it has ended.

use super::{
    driver::{Driver, End, Received},
    handler::{CHOICES, FORGETFUL, Level, choices, steps},
};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the broken rules of a call. Their names are those of `docs/drill.md`.
pub(super) fn broken(driver: &Driver) -> Vec<String> {
    let mut broken = Vec::new();
    effects(driver, &mut broken);
    replies(&driver.received, &mut broken);
    end(driver, &mut broken);
    if !broken.is_empty() {
        broken.push(format!("the plan {:?} at {:?}; {:?}", driver.plan, driver.level, driver.ledger.all()));
    }
    broken
}

/// I1: effects per step.
fn effects(driver: &Driver, broken: &mut Vec<String>) {
    let mut keys = BTreeMap::<String, Vec<String>>::new();
    for effect in driver.ledger.all() {
        keys.entry(effect.step).or_default().push(effect.key);
    }
    for (step, keys) in &keys {
        if keys.len() > 1 && driver.level != Level::Rerun {
            broken.push(format!("I1: {step} had {} effects", keys.len()));
        }
        if keys.iter().collect::<BTreeSet<_>>().len() > 1 {
            broken.push(format!("I1: {step} had effects with several keys"));
        }
    }
    for number in choices(&driver.plan) {
        let acted = CHOICES.iter().filter(|choice| keys.contains_key(&format!("{choice}{number}"))).count();
        if acted > 1 || acted == 0 && driver.end == End::Complete {
            broken.push(format!("I1: {acted} branches of part {number} acted"));
        }
    }
    if driver.plan == FORGETFUL && !keys.is_empty() {
        broken.push("I1: a step ran without a question that was declined before".to_owned());
    }
    if driver.end == End::Complete {
        for step in steps(&driver.plan).iter().filter(|step| !keys.contains_key(*step)) {
            broken.push(format!("I1: {step} had no effect in a call that ended"));
        }
    }
}

/// I2 and I3: one result for one state and one set of answers, and for no other set.
fn replies(received: &[Received], broken: &mut Vec<String>) {
    let mut results = BTreeMap::<&str, BTreeSet<(String, String)>>::new();
    for Received { state, answers, reply } in received {
        // A first request that is sent again begins another call.
        if let (Some(state), true) = (state, reply["result"].is_object()) {
            // A task goes on meanwhile.
            let id = &reply["result"]["taskId"];
            let result = if id.is_string() { id } else { &reply["result"] };
            let result = (answers.to_string(), result.to_string());
            results.entry(state).or_default().insert(result);
        }
    }
    for of_state in results.values() {
        let answers: BTreeSet<&String> = of_state.iter().map(|(answers, _)| answers).collect();
        if answers.len() > 1 {
            broken.push(format!("I3: one state has results for {} sets of answers", answers.len()));
        } else if of_state.len() > 1 {
            broken.push(format!("I2: one request has {} results: {of_state:?}", of_state.len()));
        }
    }
}

/// I5: a call ends, and nobody loses an effect without a fault.
fn end(driver: &Driver, broken: &mut Vec<String>) {
    match &driver.end {
        End::Diverged if driver.plan == FORGETFUL => {}
        End::Unknown if driver.plan == FORGETFUL && driver.level == Level::SingleUse && driver.had_fault => {}
        end if driver.plan == FORGETFUL => {
            broken.push(format!("I5: a handler that forgets a question came to {end:?}"));
        }
        End::Complete => {}
        End::Diverged => broken.push("I5: the call diverged".to_owned()),
        End::Unknown => {
            if !driver.had_fault {
                broken.push("I5: the outcome is unknown, and nothing had a fault".to_owned());
            }
            if matches!(driver.level, Level::Rerun | Level::Reconciled) {
                broken.push("I5: the outcome is unknown at a level that resolves it".to_owned());
            }
        }
        End::None(last) => broken.push(format!("I5: the call did not end: {last}")),
    }
}
