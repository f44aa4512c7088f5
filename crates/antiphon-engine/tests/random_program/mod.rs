//! Random bytes as method calls on a leg, in any order and with any slots, as a faulty driver might make them. The fuzz
//! target `engine_leg` uses this file too.

use antiphon_engine::{
    BranchId, CallSite, Delivery, GraceReason, Leg, LegOutput, Limits, NextAction, PollContext, Purpose,
    Question, Record, Setup, SlotId, StepBegin, StepFailure, StepOutcome, StepPoll, StepWaker, StopReason,
    UrlReference, WakeTracker,
};
use antiphon_seal::{Call, CallSecret};
use antiphon_wire::{AskSupport, ElicitRequest, FormField, FormSchema, InputRequest, InputResponses};
use serde_json::json;
use std::{
    panic::Location,
    sync::Arc,
    task::Waker,
    time::{Duration, UNIX_EPOCH},
};

const NOW: u64 = 1_800_000_000;
const PATHS: [&str; 6] = ["a", "b", "c#1", "s/a", "s/b#-2", "x"];

/// A reader of bytes. It returns zeros after their end.
struct ByteReader<'b>(&'b [u8]);

impl ByteReader<'_> {
    fn next(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn flag(&mut self) -> bool {
        self.next() % 2 == 1
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        let at = usize::from(self.next());
        all.get(at.checked_rem(all.len())?).copied()
    }

    fn path(&mut self) -> &'static str {
        self.pick(&PATHS).unwrap_or_default()
    }

    fn outcome(&mut self) -> StepOutcome {
        match self.next() % 3 {
            0 => StepOutcome::Done("1".repeat(usize::from(self.next())).into()),
            1 => StepOutcome::Failed(StepFailure {
                message: "m".to_owned(),
                code: None,
                data: None,
                user_facing: self.flag(),
            }),
            _ => StepOutcome::Abandoned { is_done: self.flag() },
        }
    }

    fn answer(&mut self) -> serde_json::Value {
        match self.next() % 4 {
            0 => json!({"action": "accept", "content": {"x": "yes"}}),
            1 => json!({"action": "decline"}),
            2 => json!({"action": "accept", "content": {"x": 1}}),
            _ => json!([]),
        }
    }
}

/// The variables of a running program.
struct Program<'b> {
    bytes: ByteReader<'b>,
    leg: Leg,
    slots: Vec<SlotId>,
    branches: Vec<BranchId>,
    scopes: Vec<PollContext>,
    wakes: Vec<Arc<StepWaker>>,
    tracker: Option<WakeTracker>,
    /// True if the leg is over and the program still calls it.
    has_ended: bool,
}

/// Runs bytes as a program, beginning with this record. Checks that each record encodes and decodes to itself.
pub(crate) fn run(record: Option<Record>, bytes: &[u8]) {
    let mut bytes = ByteReader(bytes);
    let setup = setup(&mut bytes);
    let leg = match record {
        None => Leg::begin(setup),
        Some(record) => resume(call(1), record, &mut bytes, setup),
    };
    let (scopes, slots, branches) = (vec![PollContext::default()], Vec::new(), vec![BranchId::default()]);
    let mut program =
        Program { bytes, leg, slots, branches, scopes, wakes: Vec::new(), tracker: None, has_ended: false };
    while !program.bytes.0.is_empty() {
        program.step();
    }
    let left = program.leg.finish();
    check(&left);
}

fn call(leg: u16) -> Call {
    let mut call = Call::begin(UNIX_EPOCH + Duration::from_secs(NOW), None).expect("random bytes");
    for _ in 1..leg {
        call = call.next_leg().expect("few legs");
    }
    call
}

fn setup(bytes: &mut ByteReader<'_>) -> Setup {
    let kinds = bytes.next();
    let limits = if kinds & 1 == 0 {
        Limits::default()
    } else {
        Limits {
            legs: 3,
            asks: 2,
            times_asked: 1,
            state: 2048,
            step_result: 128,
            state_only_legs: 1,
            ..Limits::default()
        }
    };
    Setup {
        limits,
        delivery: if kinds & 2 == 0 { Delivery::NextLeg } else { Delivery::ThisLeg },
        purpose: match kinds & 12 {
            0 => Purpose::DryRun,
            4 => Purpose::Observe,
            _ => Purpose::Serve,
        },
        lenient: kinds & 16 != 0,
        now: NOW,
        ..Setup::default()
    }
}

fn resume(call: Call, record: Record, bytes: &mut ByteReader<'_>, setup: Setup) -> Leg {
    let mut responses = InputResponses::new();
    for asked in record.asked().iter().take(8) {
        if bytes.flag() {
            responses.insert(asked.path(), &bytes.answer()).expect("answers are JSON");
        }
    }
    *Leg::resume(call, record, bytes.flag().then_some(&responses), setup)
}

fn check(left: &LegOutput) -> Record {
    let bytes = left.record.encode().expect("a record encodes");
    let read = Record::decode(&bytes).expect("encoded bytes decode");
    assert_eq!(read.encode().expect("a record encodes"), bytes);
    assert_eq!(read.size(), left.record.size());
    read
}

#[track_caller]
fn here() -> CallSite {
    Location::caller()
}

impl Program<'_> {
    fn step(&mut self) {
        match self.bytes.next() % 12 {
            0..=2 => self.poll(),
            3 => self.begin(),
            4 => self.change_context(),
            5..=6 => self.poll_slot(),
            7..=8 => self.change_slot(),
            9 => self.select(),
            10 => self.end(),
            _ => self.call_minor_methods(),
        }
        for waker in self.leg.take_deferred_work().unwrap_or_default().wakes {
            waker.wake();
        }
    }

    fn slot(&mut self) -> Option<SlotId> {
        self.bytes.pick(&self.slots)
    }

    /// Returns a waker of the handler's poll, or another one.
    fn waker(&mut self) -> Waker {
        match (&self.tracker, self.bytes.next() % 3) {
            (Some(tracker), 0) => tracker.waker(),
            (_, 1) if !self.wakes.is_empty() => Waker::from(Arc::clone(&self.wakes[0])),
            _ => Waker::noop().clone(),
        }
    }

    /// Begins or ends a poll.
    fn poll(&mut self) {
        match self.bytes.next() % 4 {
            0 => {
                let tracker = WakeTracker::new(Waker::noop());
                self.leg.begin_poll(&tracker.waker(), Waker::noop());
                self.tracker = Some(tracker);
            }
            1 => self.leg.end_poll(),
            rest => {
                let waited = [
                    None,
                    Some(GraceReason::Ask),
                    Some(GraceReason::NewAsk),
                    Some(GraceReason::Replay),
                    Some(GraceReason::Refusal),
                    Some(GraceReason::Divergence),
                ];
                let waited = self.bytes.pick(&waited).flatten();
                let tracker = self.tracker.as_mut().filter(|_| rest == 2);
                if self.leg.after_poll(tracker, waited) == NextAction::Suspend && self.bytes.flag() {
                    self.next_leg();
                }
            }
        }
    }

    /// Begins to await a question, a step or a checkpoint.
    fn begin(&mut self) {
        let path = self.bytes.path();
        let _ = self.leg.call(|| Ok(call(1)));
        let other = CallSecret::from_bytes([9; 16]);
        let secret = self.leg.begun_call().map_or(&other, Call::secret);
        let digest = secret.pin(&[self.bytes.next() % 2]);
        let slot = match self.bytes.next() % 3 {
            0 => {
                let (within, until) = (self.bytes.flag().then_some(60), self.bytes.flag().then_some(digest));
                self.leg.ask(Question {
                    path: path.into(),
                    request: form(),
                    text: None,
                    digest,
                    within,
                    until,
                    elicitation_id: None,
                    site: here(),
                })
            }
            1 => {
                let input = self.bytes.flag().then_some(digest);
                self.leg.step(path.into(), input, here())
            }
            _ => {
                let wants_to_end = self.bytes.flag();
                self.leg.checkpoint(path.into(), wants_to_end, here()).err().flatten()
            }
        };
        self.slots.extend(slot);
    }

    /// Changes the context of the polled code.
    fn change_context(&mut self) {
        let scope = match self.bytes.next() % 4 {
            0 => self.bytes.pick(&self.branches).map(|branch| self.leg.in_branch(branch, false)),
            1 => self.bytes.pick(&self.branches).map(|branch| self.leg.in_branch(branch, true)),
            2 if self.bytes.next().is_multiple_of(8) => self.slot().map(|slot| self.leg.in_step(slot)),
            _ => self.bytes.pick(&self.scopes),
        };
        if let Some(scope) = scope {
            let before = self.leg.enter(scope);
            self.scopes.push(before);
        }
    }

    fn poll_slot(&mut self) {
        let Some(slot) = self.slot() else { return };
        let waker = self.waker();
        match self.bytes.next() % 4 {
            0 => drop(self.leg.poll_ask(slot, &waker, |text| Ok(text.to_owned()))),
            1 => {
                if let StepPoll::Run(StepBegin { wake, .. }) = self.leg.poll_step(slot, &waker, false) {
                    wake.begin_poll(&waker);
                    self.wakes.push(wake);
                }
            }
            2 => drop(self.leg.poll_checkpoint(slot, &waker)),
            _ => {
                self.leg.note_step_poll(slot, &waker);
                if let Some(wake) = self.wakes.last() {
                    wake.begin_poll(&waker);
                }
            }
        }
    }

    fn change_slot(&mut self) {
        let Some(slot) = self.slot() else { return };
        match self.bytes.next() % 8 {
            0..=1 => {
                let outcome = self.bytes.outcome();
                let _ = self.leg.end_step(slot, outcome);
            }
            2 => self.leg.fail_step(slot, "cause".to_owned()),
            3..=4 => {
                let unwinding = self.bytes.next().is_multiple_of(4);
                self.leg.release(slot, unwinding);
            }
            5 => {
                let answer = self.bytes.flag().then(|| self.bytes.answer().to_string());
                self.leg.receive_answer(slot, answer);
            }
            6 => drop(self.leg.resolve_agreed(slot, self.bytes.flag())),
            _ => self.leg.ask_again(slot, "again", Some(NOW)),
        }
    }

    fn select(&mut self) {
        if self.has_ended {
            // A recorded select is gone after the end, which `a_recorded_select_is_gone_after_the_end` checks.
            return;
        }
        match self.bytes.next() % 3 {
            0 => {
                let (path, count) = (self.bytes.path(), 1 + usize::from(self.bytes.next() % 3));
                if let Some((slot, first)) = self.leg.select(path.into(), count, here()) {
                    self.slots.push(slot);
                    self.branches.extend((0..count).map(|at| first.offset(at)));
                }
            }
            1 => {
                let (Some(slot), Some(first)) = (self.slot(), self.bytes.pick(&self.branches)) else {
                    return;
                };
                let (count, done) = (usize::from(self.bytes.next() % 4), self.bytes.next());
                let _ = self.leg.decide(slot, first, count, |branch| done & (1 << branch) != 0);
            }
            _ => {
                let Some(slot) = self.slot() else { return };
                let waker = self.waker();
                match self.bytes.next() % 3 {
                    0 => self.leg.end_select(slot),
                    1 => self.leg.wait_for_select(slot, &waker, self.bytes.flag()),
                    _ => drop((
                        self.leg.winner(slot),
                        self.leg.recorded_winner(slot),
                        self.leg.release_steps_of_select(),
                    )),
                }
            }
        }
    }

    /// Ends the leg, mostly with a leg after it. Some slots of the old leg stay known.
    fn end(&mut self) {
        match self.bytes.next() % 10 {
            0 => self.leg.cancel(),
            1 => self.leg.stop(StopReason::OutOfTime),
            2 => self.leg.stop_at_timeout(),
            3 => self.leg.stop_at_panic(None),
            4 => {
                let mut left = self.leg.finish();
                left.suspend_before_error(&Limits::default());
                self.begin_next_leg(left);
            }
            5 => {
                let _ = self.leg.call(|| Ok(call(1)));
                let key = self.bytes.path();
                let state = self.bytes.flag().then(|| "state".to_owned());
                let asks = if self.bytes.flag() { vec![(key.to_owned(), form())] } else { Vec::new() };
                let (_, left) = self.leg.ask_by_hand(asks, state);
                self.begin_next_leg(left);
            }
            _ => self.next_leg(),
        }
    }

    fn next_leg(&mut self) {
        let (_, left) = self.leg.suspend();
        self.begin_next_leg(left);
    }

    fn begin_next_leg(&mut self, left: Box<LegOutput>) {
        let mut record = check(&left);
        if self.bytes.next().is_multiple_of(8) {
            // The program calls the old leg, although it is over.
            self.has_ended = true;
            return;
        }
        let answer = self.bytes.answer().to_string();
        let answers = self.bytes.flag();
        let _ =
            record.receive(left.call.as_ref(), |_| answers.then_some(answer.as_str()), &Limits::default());
        let setup = setup(&mut self.bytes);
        let call = left.call.and_then(Call::next_leg).unwrap_or_else(|| call(2));
        self.has_ended = false;
        self.leg = match self.bytes.next() % 8 {
            0 => *Leg::dry_run(call, record, setup),
            1 => *Leg::resume(call, record.without_history(), None, setup),
            _ => resume(call, record, &mut self.bytes, setup),
        };
        // Branches of another leg are not used; `a_select_without_branches_has_no_branch` checks them.
        self.branches.truncate(1);
        self.scopes = vec![PollContext::default()];
        if !self.bytes.next().is_multiple_of(4) {
            self.slots.clear();
            self.wakes.clear();
            self.tracker = None;
        }
    }

    /// Calls methods that change little.
    fn call_minor_methods(&mut self) {
        let path = self.bytes.path();
        match self.bytes.next() % 8 {
            0 => self.leg.record_ask_support(AskSupport::FORM),
            1 => {
                let reference = UrlReference { first_asked: 1, created: 2, text: path.into() };
                self.leg.note_url_reference(path, reference);
            }
            2 => self.leg.reject_step_result(path),
            3 => drop(self.leg.read_by_hand(path)),
            4 => self.leg.note_refusal(),
            5 => self.leg.set_now(NOW + u64::from(self.bytes.next())),
            6 => {
                for slot in self.leg.asking_slots() {
                    assert!(self.leg.is_asking(slot) && self.leg.pending_ask(slot).is_some());
                }
                drop((self.leg.answered_by_hand(), self.leg.has_answer(path), self.leg.elicitation_id(path)));
            }
            _ => {
                if let Some(wake) = self.wakes.last() {
                    Waker::from(Arc::clone(wake)).wake();
                }
            }
        }
    }
}

fn form() -> InputRequest {
    InputRequest::Elicit(ElicitRequest::Form {
        message: "X?".to_owned(),
        requested_schema: FormSchema::new(vec![FormField::text("x")]),
    })
}
