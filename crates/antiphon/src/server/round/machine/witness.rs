//! What a leg shows of a handler that will take another path when it runs again.

use super::{Machine, Stop};
use crate::server::{
    Limits,
    round::journal::{Journal, Kind, StepOutcome},
};
use antiphon_seal::Call;
use antiphon_wire::AskSupport;
use std::time::UNIX_EPOCH;

/// What was seen in one leg.
#[derive(Debug, Default)]
pub(crate) struct Witness {
    /// Somebody wants to know.
    watches: bool,
    /// The leg is run to look only: no step runs, no checkpoint ends it.
    rehearses: bool,
    /// In the present poll a step or a question came to an error: those beside it are given up for that, by the record.
    failed: bool,
    /// The new step that a rehearsal came to.
    pub(crate) would_run: Option<Box<str>>,
    /// What was dropped before it resolved, though the leg went on.
    pub(crate) dropped: Vec<(Kind, Box<str>)>,
    /// Steps that were dropped while they ran, for whatever reason.
    pub(crate) cut: Vec<Box<str>>,
    /// The first step that this leg recorded.
    pub(crate) first_step: Option<Box<str>>,
    /// What the client has shown that it can be asked, by its answers.
    pub(crate) shown: AskSupport,
    /// It ended at a checkpoint.
    pub(crate) paused: bool,
    /// It ended though something could still wake the handler: how far that came is a matter of time.
    pub(crate) cut_short: bool,
}

impl Witness {
    /// What a step came to, now or before.
    pub(super) fn sees(&mut self, outcome: &StepOutcome) {
        self.failed |= matches!(outcome, StepOutcome::Failed(_));
    }

    /// A question came to an error.
    pub(super) fn sees_refusal(&mut self) {
        self.failed = true;
    }

    pub(super) fn poll_is_over(&mut self) {
        self.failed = false;
    }

    pub(super) fn note_dropped(&mut self, kind: Kind, path: &str) {
        if self.watches && !self.failed {
            self.dropped.push((kind, path.into()));
        }
    }
}

impl Machine {
    /// A leg that is run to look whether the handler comes to the same as before: what the next leg finds, without any
    /// answer.
    pub(crate) fn rehearse(call: Call, mut journal: Journal, limits: &Limits) -> Self {
        for asked in &mut journal.asked {
            // However often it was asked, here it may change: that is what is looked for.
            asked.times = 0;
        }
        // At the beginning of time no deadline is over.
        let mut machine = Self::resume(call, journal, None, limits, UNIX_EPOCH);
        machine.witness.rehearses = true;
        machine
    }

    /// Notes from now on what the handler drops.
    pub(crate) fn watch(&mut self) {
        self.witness.watches = true;
    }

    /// Takes the call back where the handler did not come to an end.
    pub(crate) fn take_call(&mut self) -> Option<Call> {
        self.call.take()
    }

    /// The leg is run to look only.
    pub(crate) fn rehearses(&self) -> bool {
        self.witness.rehearses
    }

    pub(super) fn would_run(&mut self, path: &str) {
        self.witness.would_run.get_or_insert_with(|| path.into());
        self.stop(Stop::Author(format!("the step `{path}` is not run to look only")));
    }

    /// A question came to an error.
    pub(crate) fn refused(&mut self) {
        self.witness.sees_refusal();
    }

    pub(crate) fn seat(&self) -> Box<str> {
        self.seat.clone()
    }

    /// A step was dropped before it ran, while the leg goes on.
    pub(crate) fn step_dropped(&mut self, path: &str, seat: &str) {
        // Losing a race is no accident.
        if !self.closed.iter().any(|lost| seat.starts_with(&**lost)) {
            self.witness.note_dropped(Kind::Step, path);
        }
    }

    /// A step was dropped while it ran: it may have acted, and nobody learns of it.
    pub(crate) fn step_cut(&mut self, path: &str) {
        let was_running = self.running.iter().any(|running| *running.path == *path);
        self.end_step(path, StepOutcome::Abandoned);
        if !was_running || self.cancelled || self.has_ended {
            return;
        }
        let call = self.call.as_ref().map(|call| tracing::field::display(call.id()));
        tracing::warn!(
            call,
            path,
            "a step was dropped while it ran: it may have acted, and never runs again in this call"
        );
        if self.witness.watches {
            self.witness.cut.push(path.into());
        }
    }
}
