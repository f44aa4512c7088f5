//! Observations of a handler, for checks that it takes the same path when it runs again.

use crate::record::{EntryKind, StepOutcome};
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
    /// The steps that wait for the next leg because this one has no state yet.
    pub anchored: Vec<Arc<str>>,
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
