//! The decision after a poll that left the handler pending: poll again, wait, or end the leg.

use super::{Delivery, Leg, LogEvent, Status, slots::Counted, steps::RunningSteps};
use crate::{
    limits::StopReason,
    record::Record,
    wake_tracker::{WakeTracker, WakerState},
};

/// The driver's next action after a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextAction {
    /// Poll again: a future may continue.
    PollAgain,
    /// Poll again with a tracker: the next decision depends on who keeps the waker.
    PollTracked,
    /// Yield to other tasks, then poll again: a wake has not arrived yet.
    Yield,
    /// Wait until the handler is woken: by I/O, by a step, or by an answer during this leg.
    Wait,
    /// Wait until the handler is woken, for a bounded time. Then call [`Leg::after_poll`] again with this reason.
    WaitAtMost(GraceReason),
    /// End the leg with a round: [`Leg::suspend`].
    Suspend,
    /// End the leg: it is over.
    End,
    /// End the leg when its running steps have ended.
    EndAfterSteps,
    /// Drop the leg: it was cancelled, and no step runs.
    Cancelled,
}

/// The reason of a bounded wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraceReason {
    /// A question waits while other code holds the waker.
    Ask,
    /// A new question waits, because a recorded entry was not replayed, while other code holds the waker.
    NewAsk,
    /// A recorded entry was not replayed while other code holds the waker.
    Replay,
    /// A new step waits, because a refused question was not reached, while other code holds the waker.
    Refusal,
    /// A new step waits, because a recorded step was not reached or an answer became stale, while other code holds the
    /// waker.
    Divergence,
}

impl Leg {
    /// Returns the next action after a poll that left the handler pending. `tracker` is the tracker of that poll, if it
    /// had one. `waited` is the reason of a bounded wait that is over.
    pub fn after_poll(
        &mut self,
        tracker: Option<&mut WakeTracker>,
        waited: Option<GraceReason>,
    ) -> NextAction {
        let next = self.decide_next(tracker, waited);
        let polls_again = matches!(next, NextAction::PollAgain | NextAction::PollTracked);
        self.observations.end_poll(polls_again);
        self.polls.go_on(polls_again);
        next
    }

    fn decide_next(&mut self, tracker: Option<&mut WakeTracker>, waited: Option<GraceReason>) -> NextAction {
        let runs = self.has_running_step();
        match self.status {
            Status::Stopping(_) if runs => return NextAction::EndAfterSteps,
            Status::Stopping(_) | Status::Ended => return NextAction::End,
            Status::Cancelled if runs => return NextAction::Wait,
            Status::Cancelled => return NextAction::Cancelled,
            Status::Running => {}
        }
        if self.asks.used_stale_answer() && self.setup.delivery == Delivery::ThisLeg && !runs {
            // A question would not end this leg, and its answer would reach a handler that used a stale value.
            return NextAction::Suspend;
        }
        if self.wake_replayed() {
            return NextAction::PollAgain;
        }
        let Some(tracker) = tracker else {
            let is_plain = !self.has_waiting_steps() && !self.leaves() && !self.waits_for_record();
            return match (self.polls.has_more(), is_plain) {
                (true, _) => NextAction::PollAgain,
                (false, true) => NextAction::Wait,
                (false, false) => NextAction::PollTracked,
            };
        };
        let waker_state = tracker.waker_state();
        let has_probed = self.polls.take_probe();
        if self.polls.has_more() {
            return NextAction::PollAgain;
        }
        if waker_state == WakerState::Woken {
            return self.busy(waited);
        }
        // The handler is idle and has taken every answer. Now new steps begin.
        self.polls.forget_self_wakes();
        if self.release_waiting(waker_state == WakerState::Held) {
            return NextAction::PollAgain;
        }
        self.at_rest(tracker, waker_state, has_probed, waited)
    }

    /// Returns the next action if the handler woke itself or was woken meanwhile.
    fn busy(&mut self, waited: Option<GraceReason>) -> NextAction {
        if self.has_running_step() {
            // The driver was woken as well. Other tasks of the thread have their turn first.
            return NextAction::Wait;
        }
        let is_noisy = self.polls.count_self_wake();
        if is_noisy && self.release_waiting(true) {
            self.polls.forget_self_wakes();
            return NextAction::PollAgain;
        }
        if self.leaves() {
            let reason = self.grace_before_leaving();
            if waited != Some(reason) {
                return NextAction::WaitAtMost(reason);
            }
            self.observations.note_early_end();
            return NextAction::Suspend;
        }
        if is_noisy && let Some(reason) = self.waits_for() {
            if waited != Some(reason) {
                return NextAction::WaitAtMost(reason);
            }
            return self.after_grace(reason);
        }
        NextAction::PollAgain
    }

    fn at_rest(
        &mut self,
        tracker: &mut WakeTracker,
        waker_state: WakerState,
        has_probed: bool,
        waited: Option<GraceReason>,
    ) -> NextAction {
        let leaves = self.leaves();
        if self.has_running_step() && !leaves || self.ending.is_storing() {
            return NextAction::Wait;
        }
        let slots = self.replay.slots();
        if !leaves
            && slots.asking() == 0
            && let Some(waiting) = slots.in_state(Counted::HeldForSpace).first()
        {
            let path = slots.get(*waiting).map_or("", |slot| &slot.path);
            let text = format!("The record of this call has no space for the step `{path}`");
            self.stop(StopReason::Limit { name: "state", text });
            return NextAction::End;
        }
        let mut stalled = None;
        match self.steps.common_state(slots, self.polls.number()) {
            RunningSteps::None => {}
            // This poll may have been the last one of the step. One more poll shows if the step is still polled.
            RunningSteps::Polled if !has_probed => {
                self.polls.probe();
                return NextAction::PollAgain;
            }
            RunningSteps::Polled => return NextAction::Wait,
            RunningSteps::WakePending => return NextAction::Yield,
            RunningSteps::Stalled(path, site) => stalled = Some((path, site)),
        }
        // The tracker is read again after the steps. A wake between the two reads has reached the tracker, if it
        // reaches the handler at all.
        if tracker.waker_state() == WakerState::Woken {
            return NextAction::PollAgain;
        }
        if waker_state == WakerState::Held {
            let reason = if leaves { Some(self.grace_before_leaving()) } else { self.waits_for() };
            let Some(reason) = reason else { return NextAction::Wait };
            if waited != Some(reason) {
                return NextAction::WaitAtMost(reason);
            }
            if !leaves {
                return self.after_grace(reason);
            }
            self.observations.note_early_end();
        } else if self.skip_all() {
            return NextAction::PollAgain;
        }
        match stalled {
            Some((path, site)) if leaves => {
                self.stop(StopReason::Author(format!(
                    "the step `{path}` at {site} was begun and is not polled any more while a question waits: await it, \
                     or drop it, before asking"
                )));
                NextAction::End
            }
            _ if leaves => NextAction::Suspend,
            _ => self.nothing_wakes(),
        }
    }

    /// Returns the next action if only recorded or held entries could wake the handler, and no question ends the leg.
    fn nothing_wakes(&mut self) -> NextAction {
        if self.replay.slots().asking() > 0 {
            return NextAction::Wait;
        }
        if let Some(path) = self.unresolved_step() {
            self.stop(StopReason::OutcomeUnknown { path });
            return NextAction::End;
        }
        if self.holds_steps() {
            let unreplayed = self.replay.history().unreplayed_steps();
            if !unreplayed.is_empty() && self.setup.lenient {
                self.replay.history_mut().make_steps_optional();
                self.polls.log(LogEvent::UnreplayedSteps { paths: unreplayed });
                return if self.release_steps() { NextAction::PollAgain } else { self.nothing_wakes() };
            }
            if let Some(path) = self.replay.history().unreached_open_step().map(ToOwned::to_owned) {
                self.stop(StopReason::OutcomeUnknown { path });
                return NextAction::End;
            }
            match self.asks.unreplayed_refusal(&self.replay) {
                _ if !unreplayed.is_empty() => {
                    self.diverged(&unreplayed.join("`, `"), "it was not replayed, and a new step is due");
                }
                Some(path) => {
                    self.diverged(&path, "it was refused and is not asked any more, and a new step is due")
                }
                None => self.diverged("(a new step)", "it follows an answer that is not valid any more"),
            }
            return NextAction::End;
        }
        if self.replay.slots().has(Counted::Abandoned) {
            self.diverged("(an abandoned step)", "the handler waits for it, and it never ends");
            return NextAction::End;
        }
        NextAction::Wait
    }

    /// Returns `true` if the leg may end with its questions, or at a checkpoint.
    fn leaves(&self) -> bool {
        self.setup.delivery == Delivery::NextLeg && (self.waits_for_client() || self.ends_soon())
    }

    /// Returns `true` if a new step waits until the handler is idle.
    fn holds_steps(&self) -> bool {
        self.replay.slots().has(Counted::HeldForIdle)
    }

    /// Returns `true` if a step waits that the leg can let continue.
    fn has_waiting_steps(&self) -> bool {
        let states = [Counted::HeldForIdle, Counted::HeldForSpace, Counted::Ended, Counted::Interrupted];
        states.into_iter().any(|state| self.replay.slots().has(state))
    }

    /// Returns `true` if a future may wait for the replay of entries.
    fn waits_for_record(&self) -> bool {
        let slots = self.replay.slots();
        self.replay.waits_for_entry() || slots.has(Counted::Abandoned) || slots.has(Counted::Unresolved)
    }

    /// Returns the reason of the bounded wait before the leg leaves. A question that is new while recorded entries were not replayed was
    /// not asked in the leg that recorded them, or was dropped there: the handler may drop it once it has reached them.
    fn grace_before_leaving(&self) -> GraceReason {
        match self.replay.waits_for_entry() && self.asks_anew() {
            true => GraceReason::NewAsk,
            false => GraceReason::Ask,
        }
    }

    /// Returns the reason of a bounded wait for other code, if no question leaves: that code may reach what is missing.
    fn waits_for(&self) -> Option<GraceReason> {
        if self.waits_for_earlier_steps() {
            return Some(GraceReason::Divergence);
        }
        let (slots, history) = (self.replay.slots(), self.replay.history());
        let is_unresolved = slots.has(Counted::Unresolved);
        let is_blocked =
            slots.asking() == 0 && (is_unresolved || self.holds_steps() && self.blocks_new_steps());
        let waits_for_entry = self.replay.waits_for_entry();
        if waits_for_entry && history.next_is_step() {
            // A handler that receives later entries before it may go another way.
            return Some(GraceReason::Divergence);
        }
        if waits_for_entry || (!is_blocked && slots.has(Counted::Abandoned)) {
            return Some(GraceReason::Replay);
        }
        let is_refusal = !is_unresolved && !self.asks.used_stale_answer() && !history.has_unreplayed_steps();
        let reason = if is_refusal { GraceReason::Refusal } else { GraceReason::Divergence };
        is_blocked.then_some(reason)
    }

    /// Returns the next action after a bounded wait in which other code did not reach what is missing.
    fn after_grace(&mut self, reason: GraceReason) -> NextAction {
        match reason {
            GraceReason::Ask | GraceReason::NewAsk | GraceReason::Replay => {
                self.skip_next();
                NextAction::PollAgain
            }
            GraceReason::Divergence if self.replay.waits_for_entry() && !self.holds_steps() => {
                self.skip_next();
                NextAction::PollAgain
            }
            GraceReason::Divergence if self.replay.waits_for_entry() => {
                self.skip_rest();
                self.nothing_wakes()
            }
            GraceReason::Refusal | GraceReason::Divergence if self.waits_for_earlier_steps() => {
                self.steps.give_up_earlier();
                NextAction::PollAgain
            }
            // The held step may belong to the code that holds the waker, as in a set of futures.
            GraceReason::Refusal | GraceReason::Divergence => self.nothing_wakes(),
        }
    }

    /// Stops waiting for the next entry in order.
    fn skip_next(&mut self) {
        let next = self.replay.history_mut().skip_next();
        self.wake(next);
        self.wake_replayed();
    }

    /// Stops waiting for all entries in order.
    fn skip_rest(&mut self) {
        while !self.replay.history().is_replayed() {
            self.skip_next();
        }
    }

    /// Wakes all futures that wait for the end of the replay, if all entries were replayed. Returns `true` if there
    /// were any.
    fn wake_replayed(&mut self) -> bool {
        let waiting = self.replay.take_waiting();
        let is_any = !waiting.is_empty();
        self.wake(waiting);
        is_any
    }

    /// Stops waiting for all entries, because nothing can wake the handler. Returns `true` if a future may continue.
    fn skip_all(&mut self) -> bool {
        if self.replay.slots().is_empty() {
            return false;
        }
        while !self.replay.history().is_replayed() && !self.polls.has_more() {
            self.skip_next();
            // The waker of a combinator was woken, so a poll of the handler reaches the future.
            if self.polls.wakes_others() {
                return true;
            }
        }
        self.wake_replayed() || self.polls.has_more() || self.release_waiting(false)
    }

    /// Returns a number that changes when the handler makes progress for which this bounded wait begins again.
    pub fn progress(&self, reason: GraceReason) -> u64 {
        let delivered = u64::from(self.replay.history().delivered());
        match reason {
            GraceReason::Ask => 0,
            GraceReason::NewAsk | GraceReason::Replay => delivered,
            GraceReason::Refusal | GraceReason::Divergence => delivered + self.replay.slots().reached(),
        }
    }

    /// Stops the leg at its time limit, with a more precise reason if there is one.
    pub fn stop_at_timeout(&mut self) {
        let waits = self.holds_steps() || self.replay.slots().has(Counted::Unresolved);
        if self.is_running() && waits && !self.has_running_step() {
            self.skip_rest();
            if self.nothing_wakes() == NextAction::End {
                return;
            }
        }
        self.stop(StopReason::OutOfTime);
    }

    /// Stops the leg after a panic of the handler.
    pub fn stop_at_panic(&mut self, text: Option<String>) {
        self.replay.history_mut().remove_unwound();
        self.stop(StopReason::Panicked(text));
    }
}

impl Record {
    /// Returns `true` if a handler has read which questions the client supports.
    pub fn has_ask_support(&self) -> bool {
        self.notes.iter().any(|note| matches!(note, crate::record::Note::Asks(_)))
    }
}
