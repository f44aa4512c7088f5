//! Observations of a handler, for checks that it takes the same path when it runs again.

use super::{Leg, Purpose, Setup};
use crate::record::{EntryKind, Record, StepOutcome};
use antiphon_seal::Call;
use antiphon_wire::AskSupport;
use std::sync::Arc;

/// The observations of one leg.
#[derive(Debug, Default)]
pub struct Observations {
    /// True if the leg records what the handler drops.
    pub(super) watches: bool,
    /// True if a step or a question failed in the present poll. Futures beside it are then dropped because of that
    /// recorded error.
    pub(super) failed: bool,
    /// The new step that a dry run reached.
    pub would_run: Option<Arc<str>>,
    /// The questions and steps that were dropped before they resolved, although the leg continued.
    pub dropped: Vec<(EntryKind, Arc<str>)>,
    /// The steps that were dropped while they ran.
    pub aborted_steps: Vec<Arc<str>>,
    /// The kinds of questions that the client has proven to support by answering.
    pub proven_support: AskSupport,
    /// True if the leg ended at a checkpoint.
    pub at_checkpoint: bool,
    /// True if the leg ended although code could still wake the handler, or with steps that wait for the next leg. The
    /// point that the handler reached then depends on time.
    pub ended_early: bool,
}

impl Observations {
    pub(super) fn watching(watches: bool) -> Self {
        Self { watches, ..Self::default() }
    }

    pub(super) fn note_outcome(&mut self, outcome: &StepOutcome) {
        self.failed |= matches!(outcome, StepOutcome::Failed(_));
    }

    pub(super) fn note_dropped(&mut self, kind: EntryKind, path: &str) {
        if self.watches && !self.failed {
            self.dropped.push((kind, path.into()));
        }
    }

    pub(super) fn note_aborted(&mut self, path: &str) {
        if self.watches {
            self.aborted_steps.push(path.into());
        }
    }
}

impl Leg {
    /// Begins a leg only to see if the handler reaches the same entries again: as the next leg, without answers.
    pub fn dry_run(call: Call, mut record: Record, setup: Setup) -> Self {
        for asked in &mut record.asked {
            // A question may change in a dry run, however often it was asked.
            asked.times = 0;
        }
        // At second 0 no deadline is over.
        Self::resume(call, record, None, Setup { purpose: Purpose::DryRun, now: 0, ..setup })
    }

    /// Returns `true` if the leg is a dry run.
    pub fn is_dry_run(&self) -> bool {
        self.setup.purpose == Purpose::DryRun
    }

    /// Notes that a question failed. The handler may drop futures beside it because of that.
    pub fn note_refusal(&mut self) {
        self.observations.failed = true;
    }
}
