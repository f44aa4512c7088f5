//! The end of a leg that its driver wants: a call becomes a task, or a task has news for its handler.

use super::Leg;
use crate::{CallSite, record::EntryKind};

impl Leg {
    /// Ends the leg as soon as no step runs, with the questions that are asked then. No new step begins. The driver polls
    /// once more.
    pub fn end_soon(&mut self) {
        self.setup.anchor = true;
        self.ends_soon = true;
    }

    /// Ends the leg as [`end_soon`](Self::end_soon) does, from a future of the handler. The leg stops with an error if the future
    /// is inside of a step.
    pub fn end_for_task(&mut self, site: CallSite) {
        if !self.is_in_step(EntryKind::Checkpoint, "into_task", site) && !self.is_over() {
            self.end_soon();
        }
    }

    /// Returns `true` if [`end_soon`](Self::end_soon) was called.
    pub fn ends_soon(&self) -> bool {
        self.ends_soon
    }

    /// Returns `true` if the handler has met the cancellation of its task, or there is none.
    pub fn has_met_cancellation(&self) -> bool {
        !self.setup.refuse_step
    }
}
