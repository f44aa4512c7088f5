//! Observations of a handler, for checks that it takes the same path when it runs again.

use crate::record::{EntryKind, StepOutcome};
use antiphon_wire::{AskSupport, InputRequest};
use std::sync::Arc;

/// The observations of one leg.
#[derive(Debug, Default)]
pub struct Observations {
    /// True if the leg records what the handler drops.
    watches: bool,
    /// True if a step or a question failed in the present poll. Futures beside it are then dropped because of that
    /// recorded error.
    failed: bool,
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

    /// Notes that a question failed.
    pub(super) fn note_failure(&mut self) {
        self.failed = true;
    }

    /// Notes the end of a poll. An error may make the handler drop other futures some polls later.
    pub(super) fn end_poll(&mut self, polls_again: bool) {
        self.failed &= polls_again;
    }

    pub(super) fn note_answer(&mut self, question: &InputRequest) {
        self.proven_support = self.proven_support.and(question.needs());
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

    /// Notes the step that a dry run does not run.
    pub(super) fn note_unrun(&mut self, path: &Arc<str>) {
        self.would_run.get_or_insert_with(|| path.clone());
    }

    pub(super) fn note_anchored(&mut self, path: Arc<str>) {
        self.anchored.push(path);
    }

    /// Notes the end of the leg with a round.
    pub(super) fn note_end(&mut self, at_checkpoint: bool, is_early: bool) {
        self.at_checkpoint = at_checkpoint;
        self.ended_early |= is_early;
    }

    /// Notes that the leg ends although code could still wake the handler.
    pub(super) fn note_early_end(&mut self) {
        self.ended_early = true;
    }
}
