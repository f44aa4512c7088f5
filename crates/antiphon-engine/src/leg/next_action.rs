//! The decision after a poll that left the handler pending: poll again, wait, or end the leg.

use super::{Delivery, Leg, Purpose, Status, step::RunningSteps};
use crate::{
    record::Record,
    stop::StopReason,
    wake_tracker::{WakeTracker, WakerState},
};

/// The number of polls in a row in which the handler may wake itself before new steps begin.
const BUSY_POLLS: u32 = 64;

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
        // An error may make the handler drop other futures some polls later.
        self.observations.failed &= matches!(next, NextAction::PollAgain | NextAction::PollTracked);
        // From now on a wake goes to the driver.
        self.poll.is_active = matches!(next, NextAction::PollAgain | NextAction::PollTracked);
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
        if self.used_stale_answer && self.setup.delivery == Delivery::ThisLeg && !runs {
            // A question would not end this leg, and its answer would reach a handler that used a stale value.
            return NextAction::Suspend;
        }
        if self.wake_replayed() {
            return NextAction::PollAgain;
        }
        let Some(tracker) = tracker else {
            let is_plain = self.held.is_empty()
                && self.ended.is_empty()
                && self.interrupted.is_empty()
                && self.held_for_space.is_empty()
                && !self.leaves()
                && !self.waits_for_record();
            return match (self.poll.poll_again, is_plain) {
                (true, _) => NextAction::PollAgain,
                (false, true) => NextAction::Wait,
                (false, false) => NextAction::PollTracked,
            };
        };
        let waker_state = tracker.waker_state();
        let has_probed = std::mem::take(&mut self.poll.is_probe);
        if self.poll.poll_again {
            return NextAction::PollAgain;
        }
        if waker_state == WakerState::Woken {
            return self.busy(waited);
        }
        // The handler is idle and has taken every answer. Now new steps begin.
        self.poll.self_wakes = 0;
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
        self.poll.self_wakes += 1;
        let is_noisy = self.poll.self_wakes > BUSY_POLLS;
        if is_noisy && self.release_waiting(true) {
            self.poll.self_wakes = 0;
            return NextAction::PollAgain;
        }
        if self.leaves() {
            let reason = self.grace_before_leaving();
            if waited != Some(reason) {
                return NextAction::WaitAtMost(reason);
            }
            self.observations.ended_early = true;
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
        if self.has_running_step() && !leaves || self.storing > 0 {
            return NextAction::Wait;
        }
        if !leaves
            && self.slots.asking() == 0
            && let Some(path) =
                self.held_for_space.first().and_then(|id| self.slots.get(*id)).map(|slot| &slot.path)
        {
            let text = format!("The record of this call has no space for the step `{path}`");
            self.stop(StopReason::Limit { name: "state", text });
            return NextAction::End;
        }
        let mut stalled = None;
        match self.running_steps() {
            RunningSteps::None => {}
            // This poll may have been the last one of the step. One more poll shows if the step is still polled.
            RunningSteps::Polled if !has_probed => {
                self.poll.is_probe = true;
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
            self.observations.ended_early = true;
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
        if self.slots.asking() > 0 {
            return NextAction::Wait;
        }
        if let Some(path) = self.unresolved_step() {
            self.stop(StopReason::OutcomeUnknown { path });
            return NextAction::End;
        }
        if !self.held.is_empty() {
            let unreplayed = self.history.unreplayed_steps();
            if !unreplayed.is_empty() && self.setup.lenient {
                self.history.make_steps_optional();
                self.deferred.events.push(super::LogEvent::UnreplayedSteps { paths: unreplayed });
                return if self.release_steps() { NextAction::PollAgain } else { self.nothing_wakes() };
            }
            if let Some(path) = self.history.unreached_open_step().map(ToOwned::to_owned) {
                self.stop(StopReason::OutcomeUnknown { path });
                return NextAction::End;
            }
            match self.unreplayed_refusal() {
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
        if self.awaited_abandoned_steps > 0 {
            self.diverged("(an abandoned step)", "the handler waits for it, and it never ends");
            return NextAction::End;
        }
        NextAction::Wait
    }

    /// Returns `true` if the leg may end with its questions, or at a checkpoint.
    fn leaves(&self) -> bool {
        self.setup.delivery == Delivery::NextLeg && (self.waits_for_client() || self.ends_soon)
    }

    /// Returns `true` if a future may wait for the replay of entries.
    fn waits_for_record(&self) -> bool {
        self.waits_for_entry() || self.awaited_abandoned_steps > 0 || self.unresolved > 0
    }

    fn waits_for_entry(&self) -> bool {
        !self.history.is_replayed() && !self.slots.is_empty()
    }

    /// Returns the reason of the bounded wait before the leg leaves. A question that is new while recorded entries were not replayed was
    /// not asked in the leg that recorded them, or was dropped there: the handler may drop it once it has reached them.
    fn grace_before_leaving(&self) -> GraceReason {
        match self.waits_for_entry() && self.asks_anew() {
            true => GraceReason::NewAsk,
            false => GraceReason::Ask,
        }
    }

    /// Returns the reason of a bounded wait for other code, if no question leaves: that code may reach what is missing.
    fn waits_for(&self) -> Option<GraceReason> {
        if self.waits_for_earlier_steps() {
            return Some(GraceReason::Divergence);
        }
        let is_blocked = self.slots.asking() == 0
            && (self.unresolved > 0 || !self.held.is_empty() && self.blocks_new_steps());
        if self.waits_for_entry() && self.history.next_is_step() {
            // A handler that receives later entries before it may go another way.
            return Some(GraceReason::Divergence);
        }
        if self.waits_for_entry() || (!is_blocked && self.awaited_abandoned_steps > 0) {
            return Some(GraceReason::Replay);
        }
        let is_refusal =
            self.unresolved == 0 && !self.used_stale_answer && !self.history.has_unreplayed_steps();
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
            GraceReason::Divergence if self.waits_for_entry() && self.held.is_empty() => {
                self.skip_next();
                NextAction::PollAgain
            }
            GraceReason::Divergence if self.waits_for_entry() => {
                while !self.history.is_replayed() {
                    self.skip_next();
                }
                self.nothing_wakes()
            }
            GraceReason::Refusal | GraceReason::Divergence if self.waits_for_earlier_steps() => {
                self.gives_up_earlier_steps = true;
                NextAction::PollAgain
            }
            // The held step may belong to the code that holds the waker, as in a set of futures.
            GraceReason::Refusal | GraceReason::Divergence => self.nothing_wakes(),
        }
    }

    /// Stops waiting for the next entry in order.
    fn skip_next(&mut self) {
        self.history.skip_next();
        self.advance();
        self.wake_replayed();
    }

    /// Stops waiting for all entries, because nothing can wake the handler. Returns `true` if a future may continue.
    fn skip_all(&mut self) -> bool {
        if self.slots.is_empty() {
            return false;
        }
        while !self.history.is_replayed() && !self.poll.poll_again {
            self.skip_next();
            // The waker of a combinator was woken, so a poll of the handler reaches the future.
            if !self.deferred.wakes.is_empty() {
                return true;
            }
        }
        self.wake_replayed() || self.poll.poll_again || self.release_waiting(false)
    }

    /// Returns a number that changes when the handler makes progress for which this bounded wait begins again.
    pub fn progress(&self, reason: GraceReason) -> u64 {
        let delivered = u64::from(self.history.delivered());
        match reason {
            GraceReason::Ask => 0,
            GraceReason::NewAsk | GraceReason::Replay => delivered,
            GraceReason::Refusal | GraceReason::Divergence => delivered + self.slots.reached(),
        }
    }

    /// Stops the leg at its time limit, with a more precise reason if there is one.
    pub fn stop_at_timeout(&mut self) {
        if matches!(self.status, Status::Running)
            && (!self.held.is_empty() || self.unresolved > 0)
            && !self.has_running_step()
        {
            while !self.history.is_replayed() {
                self.skip_next();
            }
            if self.nothing_wakes() == NextAction::End {
                return;
            }
        }
        self.stop(StopReason::OutOfTime);
    }

    /// Stops the leg after a panic of the handler.
    pub fn stop_at_panic(&mut self, text: Option<String>) {
        self.history.remove_unwound();
        self.stop(StopReason::Panicked(text));
    }
}

impl Record {
    /// Returns `true` if a handler has read which questions the client supports.
    pub fn has_ask_support(&self) -> bool {
        self.notes.iter().any(|note| matches!(note, crate::record::Note::Asks(_)))
    }
}

impl Purpose {
    pub(super) fn watches(self) -> bool {
        self == Self::Observe
    }
}
