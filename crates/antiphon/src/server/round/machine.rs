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
mod race;
mod step;

mod turn;

mod history;
mod stop;
mod witness;

pub(crate) use ask::{AskVerdict, Decodes, Question};
pub(crate) use history::Place;
pub(crate) use stop::Stop;
pub(crate) use witness::Witness;

use super::{
    journal::{AskedOnce, Body, Entry, Journal, Kind, StepOutcome},
    judge::too_long,
};
use crate::server::Limits;
use antiphon_seal::{Call, Digest};
use antiphon_wire::InputResponses;
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
    pauses: Vec<(Entry, Place)>,
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
    /// New steps for which this leg has left no room.
    held_room: u32,
    /// Abandoned steps that are waited for: they never end.
    lost: u32,
    /// A poll is over in which nothing recorded had to wait.
    replayed: bool,
    /// A new step has run: what was recorded and is not met by then is of another path.
    beyond: bool,
    /// A race looks at answers first.
    holds_steps: bool,
    /// A step is held for that alone.
    held_by_race: bool,
    lenient: bool,
    /// Nothing leaves before the call ends: it is in a session.
    stays: bool,
    cancelled: bool,
    state_only: u8,
    /// Changes whenever something that is held may go on.
    epoch: u64,
    /// When the leg began, in Unix seconds.
    now: u64,
    order: u64,
    /// How often a question was put again that had an answer.
    once_more: u16,
    /// What is kept of the leg was taken.
    has_ended: bool,
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
    /// Until what was done in this leg has left with its record.
    Room,
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
    /// The same, once the steps that run have come to their end.
    StopSoon,
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
                // A short one is not at fault where the record is full.
                Some(text) if text.len() > room.max(ROOM_TO_LEAVE) => {
                    let fault = Some(too_long(room.max(ROOM_TO_LEAVE)));
                    machine.open.push(Open { asked, fault });
                    continue;
                }
                Some(text) => {
                    room = room.saturating_sub(text.len());
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

    /// What time it is, where a leg waits for people.
    pub(crate) fn set_now(&mut self, now: u64) {
        self.now = now;
    }

    /// Recorded steps that are not met do not end the leg.
    pub(crate) fn be_lenient(&mut self) {
        self.lenient = true;
    }

    /// This leg is all of the call.
    pub(crate) fn stay(&mut self) {
        self.stays = true;
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
        (self.history.unmet() > 0 || !self.open.is_empty()) && !self.beyond
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
        self.stop.is_some() || self.cancelled || self.has_lost(&self.seat)
    }

    /// Whether a race that this seat is in was won by another branch.
    fn has_lost(&self, seat: &str) -> bool {
        self.closed.iter().any(|lost| seat.starts_with(&**lost))
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
        if !ends || self.rehearses() || self.state_only >= budget || self.is_replaying() {
            return true;
        }
        match self.pauses.iter().find(|(known, _)| *known.path == *path) {
            Some((_, first)) => self.used_twice("The checkpoint", path, first, place),
            None => {
                self.pauses
                    .push((Entry { path: path.into(), seat: self.seat.clone(), body: Body::Passed }, place));
            }
        }
        false
    }

    pub(crate) fn withdraw_pause(&mut self, path: &str) {
        self.pauses.retain(|(known, _)| *known.path != *path);
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

    /// What was noted for a question is used in place of an answer. Whether it may be: by one question, once.
    pub(crate) fn use_note(&mut self, note: &str, path: &str, place: Place) -> bool {
        if self.refuse_in_step("The question", path, place) || self.is_over() {
            return false;
        }
        let Some(at) = self.history.find(Kind::Note, note) else { return false };
        if let Some(first) = self.history.met_at(at) {
            self.used_twice("The question", path, first, place);
            return false;
        }
        self.history.meet(at, place);
        true
    }

    /// Forgets a note that later steps may rest on.
    pub(crate) fn drop_note(&mut self, note: &str) {
        if let Some(at) = self.history.find(Kind::Note, note) {
            self.history.make_stale(at);
            self.history.forget(at);
        }
    }

    fn diverged(&mut self, path: &str, why: &'static str) {
        let stop = Stop::Diverged { path: path.to_owned(), why, record: self.history.in_words() };
        self.stop(stop);
    }
}

/// Whole seconds since 1970.
pub(crate) fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}
