//! After a poll: go on, wait, end the leg; and what it leaves behind.

use super::{FRAME, Kept, Machine, Next, Quiet, Stop};
use crate::server::{
    Limits,
    round::journal::{AskedOnce, Journal},
};
use antiphon_wire::InputRequests;

impl Machine {
    /// After a poll that left the handler pending.
    pub(crate) fn after_poll(&mut self, epoch: u64) -> Next {
        // Answers that wait for their turn come before new steps: one of them may be the end of a branch.
        let was_first = !self.replayed && self.held_recorded == 0;
        self.replayed |= was_first;
        self.witness.poll_is_over();
        let is_held = self.held_new > 0 || self.held_recorded > 0;
        if self.stop.is_some() {
            // What runs beside the fault may be in the middle of its effect.
            if self.running.is_empty() { Next::Stop } else { Next::StopSoon }
        } else if self.cancelled && self.running.is_empty() {
            Next::Cancelled
        } else if is_held && (was_first || self.epoch != epoch) {
            Next::Again
        } else if !self.running.is_empty() || !(is_held || self.lost > 0 || self.asks_or_pauses()) {
            Next::Wait
        } else {
            Next::Judge
        }
    }

    /// Whether the leg may end with what is pending.
    pub(crate) fn asks_or_pauses(&self) -> bool {
        !self.pending.is_empty() || self.pauses_here()
    }

    /// The leg may end though nothing is asked: at a checkpoint, or where its record is full of what was done just now.
    fn pauses_here(&self) -> bool {
        !self.pauses.is_empty() || self.held_room > 0
    }

    /// Recorded entries wait for their turn.
    pub(crate) fn waits_for_order(&self) -> bool {
        self.held_recorded > 0
    }

    /// Nothing can wake the handler any more.
    pub(crate) fn quiet(&mut self) -> Quiet {
        if self.held_recorded > 0 && self.history.give_up_order() {
            return Quiet::Again;
        }
        if self.asks_or_pauses() {
            return Quiet::Suspend;
        }
        if self.held_new > 0 && !self.history.steps_are_met() {
            let unmet = self.history.unmet_steps();
            if self.lenient {
                tracing::warn!(steps = ?unmet, "recorded steps were not met");
                self.history.excuse("");
                return Quiet::Again;
            }
            self.diverged(&unmet.join("`, `"), "it was not met, and a new step is due");
            return Quiet::Stop;
        }
        if self.lost > 0 {
            self.diverged("(an abandoned step)", "it is waited for, and never ends");
            return Quiet::Stop;
        }
        Quiet::Wait
    }

    /// The same, if it is not certain: something may still wake the handler, but not within its grace.
    pub(crate) fn grace_is_over(&mut self) -> Quiet {
        self.witness.cut_short = self.asks_or_pauses();
        if self.witness.cut_short { Quiet::Suspend } else { Quiet::Wait }
    }

    /// Recorded entries have waited long enough for their turn.
    pub(crate) fn order_is_over(&mut self) {
        self.history.give_up_order();
    }

    /// The leg's time is over while new steps are held.
    pub(crate) fn out_of_time(&mut self) -> Option<Stop> {
        // Beside a step that runs, others may be held for want of room.
        let waits = self.held_new > 0 && self.running.is_empty();
        if waits && self.quiet() == Quiet::Stop { self.take_stop() } else { None }
    }

    /// The round that leaves, in the order in which it was called for, and what is kept for the next leg.
    pub(crate) fn suspend(&mut self, limits: &Limits) -> (InputRequests, Kept) {
        let mut requests = InputRequests::new();
        let mut pending = std::mem::take(&mut self.pending);
        pending.sort_by_key(|pending| pending.order);
        let mut asked: Vec<AskedOnce> = Vec::with_capacity(pending.len());
        let mut room = limits.state.saturating_sub(self.history.size() + FRAME);
        // What is beyond is asked in the next round: the record of what was done leaves in any case.
        for pending in pending.into_iter().take(limits.asks) {
            let size = pending.asked.size();
            if size > room && !asked.is_empty() {
                break;
            }
            room = room.saturating_sub(size);
            // One key, one use: no key is there twice.
            let _ = requests.insert(&*pending.asked.path, pending.request);
            asked.push(pending.asked);
        }
        self.witness.paused = self.pauses_here();
        for (entry, place) in std::mem::take(&mut self.pauses) {
            self.history.record(entry, place);
        }
        if requests.is_empty() {
            self.state_only = self.state_only.saturating_add(1);
        }
        (requests, self.take(asked))
    }

    /// What is kept where the handler itself ended the leg.
    pub(crate) fn finish(&mut self) -> Kept {
        self.take(Vec::new())
    }

    pub(super) fn take(&mut self, asked: Vec<AskedOnce>) -> Kept {
        self.has_ended = true;
        let history = std::mem::take(&mut self.history);
        let mut witness = std::mem::take(&mut self.witness);
        witness.first_step = history.first_new_step().map(Into::into);
        Kept {
            witness,
            call: self.call.take(),
            asked: !asked.is_empty() || history.has_answers(),
            unmet: history.unmet_steps(),
            journal: Journal { entries: history.into_entries(), asked, state_only: self.state_only },
        }
    }
}
