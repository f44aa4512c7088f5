//! Steps: which were run before, which may run now, which wait.

use super::{Hold, Machine, Place, ROOM_TO_LEAVE, Running, StepVerdict, Stop};
use crate::server::{
    Limits,
    round::{
        journal::{Body, Entry, Kind, StepOutcome},
        key::split,
    },
};
use antiphon_seal::Digest;

impl Machine {
    /// A step is called for. `leaves`: a leg may end before its handler does.
    pub(crate) fn step(
        &mut self,
        path: &str,
        input: Option<Digest>,
        place: Place,
        limits: &Limits,
        leaves: bool,
    ) -> StepVerdict {
        if self.refuse_in_step("The step", path, place) || self.is_over() {
            return StepVerdict::Never;
        }
        if let Some(at) = self.history.find(Kind::Step, path) {
            return self.recorded_step(at, path, input, place);
        }
        if let Some(first) = self.running.iter().find(|running| *running.path == *path) {
            let first = first.place;
            self.used_twice("The step", path, first, place);
            return StepVerdict::Never;
        }
        if !self.history_is_met() || self.holds_steps {
            self.held_by_race |= self.history_is_met();
            return StepVerdict::Held(Hold::New);
        }
        if self.rehearses() {
            self.would_run(path);
            return StepVerdict::Never;
        }
        // Before the effect, not behind it: what it comes to must find room.
        let reserved = (self.running.len() + 1) * limits.step_result + ROOM_TO_LEAVE;
        if self.history.size() + reserved > limits.state {
            if !self.running.is_empty() {
                // What is kept free for those that run is free again once they end.
                return StepVerdict::Held(Hold::New);
            }
            if self.beyond && leaves && (self.state_only < limits.state_only || self.asks_or_pauses()) {
                return StepVerdict::Held(Hold::Room);
            }
            let text = format!("The record of this call has no room for the step `{path}`");
            self.stop(Stop::Limit { name: "state", text });
            return StepVerdict::Never;
        }
        let Some(call) = &self.call else { return StepVerdict::Never };
        let (scope, key) = split(path);
        let key = call.secret().idempotency_key(scope, key);
        let running = Running { path: path.into(), seat: self.seat.clone(), input, place };
        self.running.push(running);
        self.beyond = true;
        StepVerdict::Run(key)
    }

    pub(super) fn recorded_step(
        &mut self,
        at: usize,
        path: &str,
        input: Option<Digest>,
        place: Place,
    ) -> StepVerdict {
        if let Some(first) = self.history.met_at(at) {
            self.used_twice("The step", path, first, place);
            return StepVerdict::Never;
        }
        if self.has_lost(&self.history.entry(at).seat) {
            // Its branch is not polled any more, so nothing else would notice.
            let text = format!(
                "The step `{path}` at {place} was recorded in a branch of a `select` that came too late: one key, one use"
            );
            self.stop(Stop::Author(text));
            return StepVerdict::Never;
        }
        let (recorded, outcome, is_stale) = self.history.step(at);
        if *outcome == StepOutcome::Abandoned {
            self.history.meet(at, place);
            self.lost += 1;
            return StepVerdict::Never;
        }
        let fits = match (recorded, &input) {
            (None, None) => !is_stale,
            (Some(recorded), Some(now)) => recorded.matches(now),
            _ => false,
        };
        if !fits {
            let why =
                if is_stale { "it rests on an answer that has changed" } else { "its input has changed" };
            self.diverged(path, why);
            return StepVerdict::Never;
        }
        if !self.history.is_due(at) {
            return StepVerdict::Held(Hold::Recorded);
        }
        let outcome = outcome.clone();
        self.witness.sees(&outcome);
        self.history.meet(at, place);
        self.epoch += 1;
        StepVerdict::Recorded(outcome)
    }

    /// New steps run only where all that was recorded has been met.
    pub(super) fn history_is_met(&self) -> bool {
        self.history.is_fresh() || (self.replayed && self.history.steps_are_met())
    }

    /// For a moment no new step is begun, or is again. What held before.
    pub(crate) fn hold_steps(&mut self, hold: bool) -> bool {
        std::mem::replace(&mut self.holds_steps, hold)
    }

    pub(crate) fn begins_steps(&self) -> bool {
        !self.holds_steps
    }

    /// Whether a step is held for no other reason than a race.
    pub(crate) fn take_held_by_race(&mut self) -> bool {
        std::mem::take(&mut self.held_by_race)
    }

    /// Something waits, or waits no more.
    pub(crate) fn hold(&mut self, hold: Hold) {
        *self.held(hold) += 1;
    }

    pub(crate) fn let_go(&mut self, hold: Hold) {
        let held = self.held(hold);
        *held = held.saturating_sub(1);
    }

    pub(super) fn held(&mut self, hold: Hold) -> &mut u32 {
        match hold {
            Hold::New => &mut self.held_new,
            Hold::Recorded => &mut self.held_recorded,
            Hold::Room => &mut self.held_room,
        }
    }

    /// The body of a step is polled, and no longer.
    pub(crate) fn enter_step(&mut self, path: &str) {
        self.in_step = Some(format!("the step `{path}`"));
    }

    /// A check of what happens behind a URL is polled, until [`leave_step`](Self::leave_step): it is called on some legs
    /// only, so nothing in it can be recorded.
    pub(crate) fn enter_check(&mut self, path: &str) {
        self.in_step = Some(format!("the check of `{path}`"));
    }

    pub(crate) fn leave_step(&mut self) {
        self.in_step = None;
    }

    /// Records what a step came to. Whether the handler goes on.
    pub(crate) fn end_step(&mut self, path: &str, outcome: StepOutcome) -> bool {
        let Some(at) = self.running.iter().position(|running| *running.path == *path) else { return false };
        let Running { path, seat, input, place } = self.running.swap_remove(at);
        let goes_on = self.stop.is_none() && !self.cancelled && !self.has_lost(&seat);
        let resolves = goes_on && outcome != StepOutcome::Abandoned;
        self.witness.sees(&outcome);
        self.history.record(Entry { path, seat, body: Body::Step { input, stale: false, outcome } }, place);
        self.epoch += 1;
        resolves
    }

    /// A step comes to no outcome: the leg ends without a record of it.
    pub(crate) fn fail_step(&mut self, path: &str, cause: String) {
        self.running.retain(|running| *running.path != *path);
        self.stop(Stop::StepFailed { path: path.to_owned(), cause });
    }
}
