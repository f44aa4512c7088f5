//! After a poll that left the handler pending: poll again, wait, or end the leg.

use super::{Delivery, Leg, Purpose, Status, step::RunningSteps};
use crate::{
    record::Record,
    stop::StopReason,
    wake_tracker::{WakeTracker, WakerState},
};

/// New steps begin after so many polls in a row in which the handler woke itself.
const BUSY_POLLS: u32 = 64;

/// What the driver does after a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextAction {
    /// Poll again: something may go on.
    PollAgain,
    /// Poll again with a tracker: it matters who keeps the waker.
    PollTracked,
    /// A wake is on its way: let others on the thread run, then poll again.
    Yield,
    /// Wait for what wakes the handler: ordinary I/O, a step, an answer that comes now.
    Wait,
    /// Wait for what wakes the handler, for a bounded time; then ask once more, with this.
    WaitAtMost(GraceReason),
    /// The leg ends with a round: [`Leg::suspend`].
    Suspend,
    /// The leg is over.
    End,
    /// The leg is over once the steps that run have come to their end.
    EndAfterSteps,
    /// Nobody waits for the leg, and no step runs any more.
    Cancelled,
}

/// What a bounded wait is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraceReason {
    /// A question waits beside something that keeps a waker.
    Ask,
    /// A recorded entry was not met, and something keeps a waker.
    Replay,
}

impl Leg {
    /// After a poll that left the handler pending. `tracker`: the one that the handler was polled with. `waited`: the
    /// bounded wait that is over.
    pub fn after_poll(
        &mut self,
        tracker: Option<&mut WakeTracker>,
        waited: Option<GraceReason>,
    ) -> NextAction {
        let next = self.decide_next(tracker, waited);
        // What an error makes a handler give up may be some polls away.
        self.observations.failed &= matches!(next, NextAction::PollAgain | NextAction::PollTracked);
        // From here on a wake goes to the driver.
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
            // Where a question does not end the leg, its answer would find the handler behind what does not count.
            return NextAction::Suspend;
        }
        if self.wake_replayed() {
            return NextAction::PollAgain;
        }
        let Some(tracker) = tracker else {
            let is_plain = self.held.is_empty()
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
        // At rest: every answer that could be taken was taken. Now new steps begin.
        self.poll.self_wakes = 0;
        if self.release_steps() {
            return NextAction::PollAgain;
        }
        self.at_rest(tracker, waker_state, has_probed, waited)
    }

    /// The handler has woken itself, or was woken meanwhile.
    fn busy(&mut self, waited: Option<GraceReason>) -> NextAction {
        if self.has_running_step() {
            // The driver was woken as well: others on the thread have their turn.
            return NextAction::Wait;
        }
        self.poll.self_wakes += 1;
        let is_noisy = self.poll.self_wakes > BUSY_POLLS;
        if is_noisy && self.release_steps() {
            self.poll.self_wakes = 0;
            return NextAction::PollAgain;
        }
        if self.leaves() {
            if waited != Some(GraceReason::Ask) {
                return NextAction::WaitAtMost(GraceReason::Ask);
            }
            self.observations.ended_early = true;
            return NextAction::Suspend;
        }
        if is_noisy && !self.leaves() && self.waits_for_record() {
            if waited != Some(GraceReason::Replay) {
                return NextAction::WaitAtMost(GraceReason::Replay);
            }
            self.skip_next();
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
        if self.has_running_step() && !leaves {
            return NextAction::Wait;
        }
        if !leaves
            && self.slots.asking() == 0
            && let Some(path) =
                self.held_for_space.first().and_then(|id| self.slots.get(*id)).map(|slot| &slot.path)
        {
            let text = format!("The record of this call has no room for the step `{path}`");
            self.stop(StopReason::Limit { name: "state", text });
            return NextAction::End;
        }
        let mut stalled = None;
        match self.running_steps() {
            RunningSteps::None => {}
            // It may have been polled for the last time in this very poll: once more, to see whether it still is.
            RunningSteps::Polled if !has_probed => {
                self.poll.is_probe = true;
                return NextAction::PollAgain;
            }
            RunningSteps::Polled => return NextAction::Wait,
            RunningSteps::WakePending => return NextAction::Yield,
            RunningSteps::Stalled(path, site) => stalled = Some((path, site)),
        }
        // Once more, behind the look at the steps: a wake that came between the two looks has reached the tracker, if it
        // reaches the handler at all.
        if tracker.waker_state() == WakerState::Woken {
            return NextAction::PollAgain;
        }
        if waker_state == WakerState::Held {
            let patience = if leaves {
                GraceReason::Ask
            } else if self.waits_for_record() {
                GraceReason::Replay
            } else {
                return NextAction::Wait;
            };
            if waited != Some(patience) {
                return NextAction::WaitAtMost(patience);
            }
            if !leaves {
                self.skip_next();
                return NextAction::PollAgain;
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

    /// Nothing is asked that ends the leg, and nothing but what is recorded or held back could wake the handler.
    fn nothing_wakes(&mut self) -> NextAction {
        if self.slots.asking() > 0 {
            return NextAction::Wait;
        }
        if !self.held.is_empty() {
            let unmet = self.history.unreplayed_steps();
            if !unmet.is_empty() && self.setup.lenient {
                self.history.make_steps_optional();
                self.deferred.events.push(super::LogEvent::UnreplayedSteps { paths: unmet });
                return if self.release_steps() { NextAction::PollAgain } else { self.nothing_wakes() };
            }
            match self.unreplayed_refusal() {
                _ if !unmet.is_empty() => {
                    self.diverged(&unmet.join("`, `"), "it was not met, and a new step is due");
                }
                Some(path) => {
                    self.diverged(&path, "it was refused and is not asked any more, and a new step is due")
                }
                None => {
                    self.diverged("(a new step)", "it is due behind an answer that does not count any more")
                }
            }
            return NextAction::End;
        }
        if self.awaited_abandoned_steps > 0 {
            self.diverged("(an abandoned step)", "it is waited for, and never ends");
            return NextAction::End;
        }
        NextAction::Wait
    }

    /// Returns whether the leg may end with what is asked, or at a checkpoint.
    fn leaves(&self) -> bool {
        self.setup.delivery == Delivery::NextLeg && self.waits_for_client()
    }

    /// Returns whether a future may wait for recorded entries to be met.
    fn waits_for_record(&self) -> bool {
        (!self.history.is_replayed() && !self.slots.is_empty()) || self.awaited_abandoned_steps > 0
    }

    /// No longer waits for the entry whose turn it is.
    fn skip_next(&mut self) {
        self.history.skip_next();
        self.advance();
        self.wake_replayed();
    }

    /// Nothing can wake the handler: entries that were not met hold nobody up. Whether somebody goes on.
    fn skip_all(&mut self) -> bool {
        if self.slots.is_empty() {
            return false;
        }
        while !self.history.is_replayed() && !self.poll.poll_again {
            self.skip_next();
            // A waker of a combinator was woken: polling the handler reaches it.
            if !self.deferred.wakes.is_empty() {
                return true;
            }
        }
        self.wake_replayed() || self.poll.poll_again || self.release_steps()
    }

    /// The number of entries that this leg has delivered so far.
    pub fn delivered_entries(&self) -> u32 {
        self.history.delivered()
    }

    /// The leg's time is over: what it was stopped for, if that can be told now.
    pub fn stop_at_timeout(&mut self) {
        if matches!(self.status, Status::Running) && !self.held.is_empty() && !self.has_running_step() {
            while !self.history.is_replayed() {
                self.skip_next();
            }
            if self.nothing_wakes() == NextAction::End {
                return;
            }
        }
        self.stop(StopReason::OutOfTime);
    }

    /// The handler panicked, and the panic has reached its driver.
    pub fn stop_at_panic(&mut self, text: Option<String>) {
        self.history.remove_unwound();
        self.stop(StopReason::Panicked(text));
    }
}

impl Record {
    /// Returns whether a handler has looked at what the client can be asked.
    pub fn has_ask_support(&self) -> bool {
        self.notes.iter().any(|note| matches!(note, crate::record::Note::Asks(_)))
    }
}

impl Purpose {
    pub(super) fn watches(self) -> bool {
        self == Self::Observe
    }
}
