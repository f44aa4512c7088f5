//! The steps that earlier runs of a leg have begun, and the names of their records.

use antiphon_seal::CallSecret;
use antiphon_store::{MAX_STEP_NAME, StepEvent, StepRecord};
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

/// The records of one step, from earlier runs of the same leg.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    /// The last attempt that began.
    pub(super) begun: u32,
    /// The last attempt whose failure is stored.
    failed: u32,
    /// The sealed outcome.
    pub(super) ended: Option<Vec<u8>>,
}

impl Earlier {
    pub(super) fn is_interrupted(&self) -> bool {
        self.ended.is_none() && self.begun > self.failed
    }
}

/// The steps that earlier runs of the same leg have begun, by the names of their records.
#[derive(Debug, Default)]
pub(crate) struct EarlierSteps(Mutex<HashMap<String, Earlier>>);

impl EarlierSteps {
    /// Returns the steps of a leg among the records of its call.
    pub(crate) fn of(records: Vec<StepRecord>, leg: u32) -> Self {
        let mut steps: HashMap<String, Earlier> = HashMap::new();
        for record in records {
            let Some(name) = record.step().strip_prefix(&prefix(leg)) else { continue };
            let (name, failed) = match name.strip_prefix(FAILURE) {
                Some(name) => (name, true),
                None => (name, false),
            };
            let step = steps.entry(name.to_owned()).or_default();
            match record.event() {
                StepEvent::Started { attempt } if failed => step.failed = step.failed.max(attempt),
                StepEvent::Started { attempt } => step.begun = step.begun.max(attempt),
                StepEvent::Ended => step.ended = Some(record.value().to_vec()),
            }
        }
        Self(Mutex::new(steps))
    }

    pub(super) fn take(&self, path: &str) -> Option<Earlier> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&short(path))
    }

    pub(super) fn put_back(&self, path: &str, earlier: Earlier) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(short(path), earlier);
    }

    /// Returns true if one of the steps has had an effect, or may have had one, and this run has not taken it.
    pub(super) fn has_effects(&self) -> bool {
        let steps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        steps.values().any(|step| step.ended.is_some() || step.is_interrupted())
    }

    /// Returns a step whose effect is unknown, and which this run has not resolved.
    pub(super) fn unresolved(&self) -> Option<String> {
        let steps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        steps.iter().filter(|(_, step)| step.is_interrupted()).map(|(path, _)| path.clone()).min()
    }
}

/// The mark of a record that an attempt has failed.
pub(super) const FAILURE: &str = "failed:";

/// Returns the name of the record of a call. No step has it: it lacks the colon.
pub(super) fn call_name(leg: u32) -> String {
    format!("call {leg}")
}

fn prefix(leg: u32) -> String {
    format!("{leg}:")
}

/// Returns the name of a record. The records of another leg are in its token, so each leg has its own.
pub(super) fn name(leg: u32, kind: &str, path: &str) -> String {
    format!("{leg}:{kind}{}", short(path))
}

/// Returns a path that fits a store. A path that is too long ends with its digest.
fn short(path: &str) -> String {
    if path.len() <= MAX_STEP_NAME - 32 {
        return path.to_owned();
    }
    let digest = CallSecret::from_bytes(*b"a long step name").pin(path.as_bytes()).to_bytes();
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    // Paths are ASCII.
    format!("{}..{digest}", path.get(..MAX_STEP_NAME - 72).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_and_differ() {
        let long = "s".repeat(400);
        let names =
            [name(1, "", "a"), name(2, "", "a"), name(1, FAILURE, "a"), name(1, "", &long), call_name(1)];
        assert!(names.iter().all(|name| name.len() <= MAX_STEP_NAME), "{names:?}");
        assert_eq!(names.iter().collect::<std::collections::HashSet<_>>().len(), names.len());
        assert_ne!(name(1, "", &long), name(1, "", &format!("{long}t")));
    }
}
