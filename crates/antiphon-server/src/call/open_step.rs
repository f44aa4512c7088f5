//! A step that runs in a claimed leg.

use crate::{at_most_once::ClaimedLeg, call::leg_runtime::LegRuntime};

/// A guard: a step of a claimed leg runs. A step that is dropped while its leg goes on is in the record, as abandoned;
/// one that is dropped with its leg is interrupted.
pub(crate) struct OpenStep<'a> {
    leg: &'a LegRuntime,
    claim: &'a ClaimedLeg,
    ended: bool,
}

impl<'a> OpenStep<'a> {
    pub(crate) fn new(leg: &'a LegRuntime, claim: &'a ClaimedLeg) -> Self {
        claim.step_began();
        Self { leg, claim, ended: false }
    }

    /// Notes that the step has an outcome.
    pub(crate) fn end(mut self) {
        self.ended = true;
    }

    /// Notes that the step has no outcome, and may run again.
    pub(crate) fn fail(mut self) {
        self.ended = true;
        self.claim.step_failed();
    }
}

impl Drop for OpenStep<'_> {
    fn drop(&mut self) {
        if !self.ended && !self.leg.with(|leg| leg.may_attempt_step()) {
            self.claim.step_interrupted();
        }
    }
}
