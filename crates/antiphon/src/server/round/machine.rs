//! What may happen next in one leg: history in; answers, "run", "wait" or the end of the leg out.
//!
//! ```text
//!                    ┌── recorded ──▶ given at once, in the order in which it was recorded
//!  ask, step ──▶ ────┤
//!                    └── new ──┬─ ask ──▶ pending ─────── handler blocked ──▶ Suspend: a round leaves
//!                              └─ step ─▶ held until history has been met ──▶ Run
//!                                          └─ never met, all quiet ──▶ Stop: diverged
//! ```
//!
//! Nothing here waits, reads a clock or does I/O. Wakers, timers and futures are the driver's.

mod ask;
mod history;
mod stop;
mod witness;

pub(crate) use ask::{AskVerdict, Question};
pub(crate) use history::Place;
pub(crate) use stop::Stop;
pub(crate) use witness::Witness;

use super::journal::{AskedOnce, Body, Entry, Journal, Kind, StepOutcome};
use crate::server::Limits;
use antiphon_seal::{Call, Digest};
use antiphon_wire::{InputRequests, InputResponses};
use ask::Pending;
use history::History;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What a payload takes besides the entries of its journal.
const FRAME: usize = 32;
/// So much is kept free before a step runs, besides for what it comes to: at least one question finds room behind it.
const ROOM_TO_LEAVE: usize = 512;

/// One leg of one call.
#[derive(Debug, Default)]
pub(crate) struct Machine {
    /// `None` until something needs it: a call that never asks has no id.
    call: Option<Call>,
    history: History,
    /// Questions of the last round that were not answered, and why not.
    open: Vec<Open>,
    /// Until when the questions of the last round may be answered.
    deadlines: Vec<(Box<str>, u64)>,
    pending: Vec<Pending>,
    /// Checkpoints at which the leg is to end.
    pauses: Vec<(Box<str>, Place)>,
    /// Races that are not decided.
    races: Vec<(Box<str>, Place)>,
    running: Vec<Running>,
    /// The step or check whose body is polled just now, in words.
    in_step: Option<String>,
    /// The branch of a `select` that is polled just now, and those that have lost.
    seat: Box<str>,
    closed: Vec<Box<str>>,
    /// New steps that wait for history, and recorded entries that wait for their turn.
    held_new: u32,
    held_recorded: u32,
    /// Abandoned steps that are waited for: they never end.
    lost: u32,
    polled_once: bool,
    /// A race looks at answers first.
    holds_steps: bool,
    /// A step is held for that alone.
    held_by_race: bool,
    lenient: bool,
    cancelled: bool,
    state_only: u8,
    /// Changes whenever something that is held may go on.
    epoch: u64,
    /// When the leg began, in Unix seconds.
    now: u64,
    order: u64,
    stop: Option<Stop>,
    witness: Witness,
}

#[derive(Debug)]
struct Open {
    asked: AskedOnce,
    fault: Option<String>,
}

#[derive(Debug)]
struct Running {
    path: Box<str>,
    seat: Box<str>,
    input: Option<Digest>,
    place: Place,
}

/// What becomes of a step.
#[derive(Debug)]
pub(crate) enum StepVerdict {
    /// It was run before.
    Recorded(StepOutcome),
    /// It is to run, under this idempotency key.
    Run(String),
    /// Not yet.
    Held(Hold),
    /// It neither runs nor resolves.
    Never,
}

/// Why something waits though it needs no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    New,
    Recorded,
}

/// What the driver does after a poll that left the handler pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Something that was held may go on.
    Again,
    /// For what wakes the handler: ordinary I/O, or a step.
    Wait,
    /// Nothing but an answer, or the end of the leg, may help: see whether anything can still wake the handler.
    Judge,
    /// Cancelled, and no step runs any more.
    Cancelled,
    /// The leg is over: see [`Machine::take_stop`].
    Stop,
}

/// What the driver does once all is quiet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quiet {
    Again,
    Suspend,
    Stop,
    /// Something else must still happen.
    Wait,
}

/// What a leg leaves behind.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(crate) call: Option<Call>,
    pub(crate) journal: Journal,
    /// An ask was awaited.
    pub(crate) asked: bool,
    /// Recorded steps that this leg did not come to.
    pub(crate) unmet: Vec<String>,
    pub(crate) witness: Witness,
}

impl Machine {
    /// A first leg.
    pub(crate) fn begin(now: SystemTime) -> Self {
        Self { now: seconds(now), ..Self::default() }
    }

    /// A later leg, with what came in answer to the last round.
    pub(crate) fn resume(
        call: Call,
        journal: Journal,
        responses: Option<&InputResponses>,
        limits: &Limits,
        now: SystemTime,
    ) -> Self {
        let mut room = limits.state.saturating_sub(journal.size() + limits.step_result + ROOM_TO_LEAVE);
        let mut machine = Self {
            call: Some(call),
            state_only: journal.state_only,
            history: History::of(journal.entries),
            ..Self::begin(now)
        };
        for asked in journal.asked {
            machine.deadlines.extend(asked.deadline.map(|deadline| (asked.path.clone(), deadline)));
            let sent = responses.and_then(|responses| responses.get(&asked.path)).map(|text| text.get());
            let is_over = asked.deadline.is_some_and(|deadline| machine.now > deadline);
            let answer = match sent {
                _ if is_over => None,
                Some(text) if text.len() > room => {
                    let fault = "The answers together are too long.".to_owned();
                    machine.open.push(Open { asked, fault: Some(fault) });
                    continue;
                }
                Some(text) => {
                    room -= text.len();
                    Some(text.to_owned())
                }
                None => {
                    machine.open.push(Open { asked, fault: None });
                    continue;
                }
            };
            let body = Body::Answer { pin: asked.pin, times: asked.times, used: false, text: answer };
            machine.history.remember(Entry { path: asked.path, seat: asked.seat, body });
        }
        machine
    }

    /// Recorded steps that are not met do not end the leg.
    pub(crate) fn be_lenient(&mut self) {
        self.lenient = true;
    }

    /// The call, which begins where it is first needed.
    pub(crate) fn call(&mut self, begin: impl FnOnce() -> Result<Call, String>) -> Option<&Call> {
        if self.call.is_none() {
            match begin() {
                Ok(call) => self.call = Some(call),
                Err(fault) => self.stop(Stop::Author(fault)),
            }
        }
        self.call.as_ref()
    }

    /// A number for what is called next.
    pub(crate) fn next_order(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    /// Whether what happens now has happened in an earlier leg.
    pub(crate) fn is_replaying(&self) -> bool {
        self.history.unmet() > 0 || !self.open.is_empty()
    }

    /// What is told now was told before, or is told to nobody.
    pub(crate) fn is_silent(&self) -> bool {
        self.cancelled || self.is_replaying()
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// No step is begun and nothing resolves from here on.
    pub(crate) fn cancel(&mut self) {
        self.cancelled = true;
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    pub(crate) fn runs_a_step(&self) -> bool {
        !self.running.is_empty()
    }

    /// Ends the leg, unless something has ended it.
    pub(crate) fn stop(&mut self, stop: Stop) {
        self.stop.get_or_insert(stop);
    }

    pub(crate) fn take_stop(&mut self) -> Option<Stop> {
        self.stop.take()
    }

    /// Whether nothing resolves any more where the handler is polled just now.
    pub(crate) fn is_over(&self) -> bool {
        self.stop.is_some() || self.cancelled || self.closed.iter().any(|lost| self.seat.starts_with(&**lost))
    }

    /// Whether this may be called where it was called.
    fn refuse_in_step(&mut self, what: &str, path: &str, place: Place) -> bool {
        let Some(step) = &self.in_step else { return false };
        let text = format!(
            "{what} `{path}` at {place} is inside of {step}, which runs to its end by itself: await it before or behind that"
        );
        self.stop(Stop::Author(text));
        true
    }

    fn used_twice(&mut self, what: &str, path: &str, first: Place, second: Place) {
        let cure = match what {
            "The step" => "a number from the program, `step((\"key\", i), ..)`",
            _ => "`.key(\"..\")`, or a number from the program with `.nth(i)`",
        };
        let text = format!(
            "{what} `{path}` is used twice, at {first} and at {second}: one key, one use. Give it {cure}, or use `ctx.scope(\"..\")`"
        );
        self.stop(Stop::Author(text));
    }

    /// A step is called for.
    pub(crate) fn step(
        &mut self,
        path: &str,
        input: Option<Digest>,
        place: Place,
        limits: &Limits,
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
        if self.witness.rehearses() {
            self.would_run(path);
            return StepVerdict::Never;
        }
        // Before the effect, not behind it: what it comes to must find room.
        let reserved = (self.running.len() + 1) * limits.step_result + ROOM_TO_LEAVE;
        if self.history.size() + reserved > limits.state {
            let text = format!("The record of this call has no room for the step `{path}`");
            self.stop(Stop::Limit { name: "state", text });
            return StepVerdict::Never;
        }
        let Some(call) = &self.call else { return StepVerdict::Never };
        let (scope, key) = super::key::split(path);
        let key = call.secret().idempotency_key(scope, key);
        let running = Running { path: path.into(), seat: self.seat.clone(), input, place };
        self.running.push(running);
        StepVerdict::Run(key)
    }

    fn recorded_step(&mut self, at: usize, path: &str, input: Option<Digest>, place: Place) -> StepVerdict {
        if let Some(first) = self.history.met_at(at) {
            self.used_twice("The step", path, first, place);
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
    fn history_is_met(&self) -> bool {
        self.history.is_fresh() || (self.polled_once && self.history.steps_are_met())
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

    fn held(&mut self, hold: Hold) -> &mut u32 {
        match hold {
            Hold::New => &mut self.held_new,
            Hold::Recorded => &mut self.held_recorded,
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
        let resolves = outcome != StepOutcome::Abandoned
            && !self.cancelled
            && !self.closed.iter().any(|lost| seat.starts_with(&**lost));
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

    /// A checkpoint. Whether it is passed; otherwise the leg ends here.
    pub(crate) fn pass(&mut self, path: &str, ends: bool, budget: u8, place: Place) -> bool {
        if self.refuse_in_step("The checkpoint", path, place) || self.is_over() {
            return false;
        }
        if let Some(at) = self.history.find(Kind::Pause, path) {
            match self.history.met_at(at) {
                None => self.history.meet(at, place),
                Some(first) => {
                    self.used_twice("The checkpoint", path, first, place);
                    return false;
                }
            }
            return true;
        }
        // What was done is with the client already, or the client has had enough of these.
        if !ends || self.witness.rehearses() || self.state_only >= budget || self.is_replaying() {
            return true;
        }
        match self.pauses.iter().find(|(known, _)| **known == *path) {
            Some((_, first)) => self.used_twice("The checkpoint", path, first, place),
            None => self.pauses.push((path.into(), place)),
        }
        false
    }

    pub(crate) fn withdraw_pause(&mut self, path: &str) {
        self.pauses.retain(|(known, _)| **known != *path);
    }

    /// What was noted under this path.
    pub(crate) fn noted(&self, path: &str) -> Option<&str> {
        let at = self.history.find(Kind::Note, path)?;
        match &self.history.entry(at).body {
            Body::Note { text } => Some(text),
            _ => None,
        }
    }

    /// Notes something once.
    pub(crate) fn note(&mut self, path: &str, text: String, place: Place) {
        let entry = Entry { path: path.into(), seat: self.seat.clone(), body: Body::Note { text } };
        self.history.record(entry, place);
    }

    /// Forgets a note.
    pub(crate) fn forget_note(&mut self, path: &str) {
        if let Some(at) = self.history.find(Kind::Note, path) {
            self.history.forget(at);
        }
    }

    /// A race begins: the recorded winner, if it was decided. `false` in the second place ends it.
    pub(crate) fn race(&mut self, path: &str, place: Place) -> (Option<u8>, bool) {
        if self.refuse_in_step("The select", path, place) || self.is_over() {
            return (None, false);
        }
        let at = self.history.find(Kind::Race, path);
        let running = self.races.iter().find(|(known, _)| **known == *path);
        if let Some(first) = running.map(|(_, first)| *first).or(at.and_then(|at| self.history.met_at(at))) {
            self.used_twice("The select", path, first, place);
            return (None, false);
        }
        let Some(at) = at else {
            self.races.push((path.into(), place));
            return (None, true);
        };
        let Body::Race { winner } = self.history.entry(at).body else { return (None, true) };
        self.history.meet(at, place);
        self.lose(path, winner);
        // What waited for what the others recorded need not.
        self.epoch += 1;
        (Some(winner), true)
    }

    /// A race is over, or was dropped.
    pub(crate) fn end_race(&mut self, path: &str) {
        self.races.retain(|(known, _)| **known != *path);
    }

    /// A race is decided.
    pub(crate) fn decide(&mut self, path: &str, winner: u8, place: Place) {
        let entry = Entry { path: path.into(), seat: self.seat.clone(), body: Body::Race { winner } };
        self.history.record(entry, place);
        self.lose(path, winner);
        self.epoch += 1;
    }

    /// What the other branches recorded need not be met, and what they ask is not asked.
    fn lose(&mut self, path: &str, winner: u8) {
        for branch in (0..super::BRANCHES).filter(|branch| *branch != winner) {
            let seat = self.seat_in(path, branch);
            self.history.excuse(&seat);
            self.pending.retain(|pending| !pending.asked.seat.starts_with(&*seat));
            self.closed.push(seat);
        }
    }

    fn seat_in(&self, path: &str, branch: u8) -> Box<str> {
        // Paths have no spaces: no seat is the beginning of another one by chance.
        format!("{}{path} {branch} ", self.seat).into()
    }

    /// Takes the seat of a branch; gives the one it was in.
    pub(crate) fn sit(&mut self, path: &str, branch: u8) -> Box<str> {
        let seat = self.seat_in(path, branch);
        std::mem::replace(&mut self.seat, seat)
    }

    pub(crate) fn stand(&mut self, seat: Box<str>) {
        self.seat = seat;
    }

    /// Whether a step runs in one of the branches of this race.
    pub(crate) fn runs_in(&self, path: &str) -> bool {
        let prefix = format!("{}{path} ", self.seat);
        self.running.iter().any(|running| running.seat.starts_with(&prefix))
    }

    /// After a poll that left the handler pending.
    pub(crate) fn after_poll(&mut self, epoch: u64) -> Next {
        let was_first = !std::mem::replace(&mut self.polled_once, true);
        self.witness.poll_is_over();
        let is_held = self.held_new > 0 || self.held_recorded > 0;
        if self.stop.is_some() {
            Next::Stop
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
        !self.pending.is_empty() || !self.pauses.is_empty()
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
        if self.held_new > 0 {
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
        if self.asks_or_pauses() { Quiet::Suspend } else { Quiet::Wait }
    }

    /// Recorded entries have waited long enough for their turn.
    pub(crate) fn order_is_over(&mut self) {
        self.history.give_up_order();
    }

    /// The leg's time is over while new steps are held.
    pub(crate) fn out_of_time(&mut self) -> Option<Stop> {
        if self.held_new > 0 && self.quiet() == Quiet::Stop { self.take_stop() } else { None }
    }

    fn diverged(&mut self, path: &str, why: &'static str) {
        let stop = Stop::Diverged { path: path.to_owned(), why, record: self.history.in_words() };
        self.stop(stop);
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
        self.witness.paused = !self.pauses.is_empty();
        for (path, place) in std::mem::take(&mut self.pauses) {
            let entry = Entry { path, seat: Box::default(), body: Body::Passed };
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

    fn take(&mut self, asked: Vec<AskedOnce>) -> Kept {
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

/// Whole seconds since 1970.
pub(crate) fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}
