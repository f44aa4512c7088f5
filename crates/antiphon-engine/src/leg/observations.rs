//! Observations of a handler that will take another path when it runs again.

use super::{Leg, Purpose, Setup};
use crate::record::{EntryKind, Record, StepOutcome};
use antiphon_seal::Call;
use antiphon_wire::AskSupport;
use std::sync::Arc;

/// What was seen in one leg.
#[derive(Debug, Default)]
pub struct Observations {
    /// Somebody wants to see what is dropped.
    pub(super) watches: bool,
    /// In the present poll a step or a question came to an error: those beside it are given up for that, by the record.
    pub(super) failed: bool,
    /// The new step that a rehearsal came to.
    pub would_run: Option<Arc<str>>,
    /// The questions and steps that were dropped before they resolved, though the leg went on.
    pub dropped: Vec<(EntryKind, Arc<str>)>,
    /// The steps that were dropped while they ran.
    pub aborted_steps: Vec<Arc<str>>,
    /// What the client has shown that it can be asked, by its answers.
    pub proven_support: AskSupport,
    /// The leg ended at a checkpoint.
    pub at_checkpoint: bool,
    /// The leg ended though something could still wake the handler, or with steps that had to wait for the next leg: how far
    /// it came is a matter of time.
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
    /// A leg that is run only to see whether the handler comes to the same again: what the next leg finds, without any
    /// answer.
    pub fn dry_run(call: Call, mut record: Record, setup: Setup) -> Self {
        for asked in &mut record.asked {
            // However often it was asked, here it may change: that is what is looked for.
            asked.times = 0;
        }
        // At the beginning of time no deadline is over.
        Self::resume(call, record, None, Setup { purpose: Purpose::DryRun, now: 0, ..setup })
    }

    /// Returns whether the leg is run only to see what the handler comes to.
    pub fn is_dry_run(&self) -> bool {
        self.setup.purpose == Purpose::DryRun
    }

    /// A question came to an error: what stands beside it may be given up for that.
    pub fn note_refusal(&mut self) {
        self.observations.failed = true;
    }
}
