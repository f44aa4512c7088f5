//! A leg and its store: what is written before an effect, and the steps that earlier runs of the leg have begun or ended.
//!
//! The handler receives the steps of earlier runs when it has reached all that it can reach.
//!
//! ```text
//!  ended, not delivered ── reached ──▶ idle: the first one that ended ──▶ delivered, as a new outcome
//!  begun, no outcome ── its turn ─┬─ can be found out ──▶ idle ──▶ begins again
//!                                 └─ cannot ───────────▶ waits: `outcome_unknown`, if the handler needs it
//! ```

use crate::{
    leg::{
        Leg, StepPoll,
        replay::Replay,
        slot::{Slot, SlotId, SlotState, StepPhase},
        slots::Counted,
        step::Stopped,
        steps::{release_ended, release_interrupted},
    },
    record::{Entry, EntryBody, OpenStep, StepOutcome, StepStart, WriteAhead, Written, write},
};
use antiphon_seal::Digest;
use std::task::Waker;

impl Leg {
    /// Returns the text to store before this attempt of a step begins: everything that the handler has received up to here, and
    /// the start of the step. `None` if the leg has no store.
    pub fn write_ahead_of_step(&mut self, path: &str, attempt: u32) -> Option<WriteAhead> {
        let slots = self.replay.slots();
        let slot = slots.get(self.steps.find_running(path, slots)?)?;
        let (input, running) = slot.running_step()?;
        let open = open_step(&self.replay, slot, input, running.open, attempt);
        let start = StepStart { path: slot.path.clone(), round: running.round, open };
        self.write(Some(&start))
    }

    /// Returns the text to store before anything else happens that depends on the deliveries up to here; `None` if the store has
    /// them all, or the leg has no store.
    pub fn write_ahead(&mut self) -> Option<WriteAhead> {
        let is_written = self.replay.history().unwritten().len() == 0;
        if is_written && self.memory.unwritten().1.is_empty() {
            return None;
        }
        self.write(None)
    }

    /// Returns `true` if all deliveries up to here are in texts of which some are not in the store yet.
    pub fn is_written_soon(&self) -> bool {
        self.replay.history().is_written_soon()
    }

    fn write(&mut self, step: Option<&StepStart>) -> Option<WriteAhead> {
        if !self.setup.writes_ahead {
            return None;
        }
        let history = self.replay.history();
        let (all_notes, notes) = self.memory.unwritten();
        // The parts were made or decoded here: there is nothing in them that cannot be written.
        let text = write(self.setup.version, history.written(), history.unwritten(), notes, step).ok()?;
        let written = Written { deliveries: self.replay.history_mut().submit(), notes: all_notes };
        Some(WriteAhead::new(written, step.map(|start| (start.path.clone(), start.open.attempt)), text))
    }

    /// Notes that a text is in the store.
    pub fn written(&mut self, text: &WriteAhead) {
        self.replay.history_mut().note_written(text.written.deliveries);
        self.memory.note_written(text.written.notes);
        if let Some((path, attempt)) = &text.start {
            self.set_started(path, Some(*attempt));
        }
    }

    /// Notes that the present attempt of a step has ended without an effect.
    pub fn attempt_failed(&mut self, path: &str) {
        self.set_started(path, None);
    }

    fn set_started(&mut self, path: &str, attempt: Option<u32>) {
        if let Some(id) = self.steps.find_running(path, self.replay.slots()) {
            self.replay.slots_mut().set_started(id, attempt);
        }
    }

    /// Notes that an operation of the store has begun, or ended, without which the leg does not end.
    pub fn store_operation(&mut self, begins: bool) {
        self.ending.store_operation(begins);
    }

    /// Records the steps that still run when the leg ends: they have begun, and have no outcome.
    pub(super) fn keep_started_steps(&mut self) {
        let started = |id: &SlotId| {
            let slot = self.replay.slots().get(*id)?;
            let (input, running) = slot.running_step().filter(|(_, running)| running.open.is_none())?;
            let open = open_step(&self.replay, slot, input, None, running.started?);
            let body = EntryBody::Open(Box::new(open));
            Some(Entry { path: slot.path.clone(), round: running.round, body })
        };
        let started: Vec<Entry> = self.steps.running().iter().filter_map(started).collect();
        started.into_iter().for_each(|entry| self.replay.history_mut().record_open(entry));
    }

    /// Returns the start of a step that was stopped, if the store has one of this run or of an earlier one.
    pub(super) fn started_step(&self, stopped: &Stopped) -> Option<Box<OpenStep>> {
        let Stopped { slot, input, open, started, .. } = stopped;
        let before = open.and_then(|at| self.replay.history().open_step(at)).map(|open| open.attempt);
        started.or(before).map(|attempt| Box::new(open_step(&self.replay, slot, *input, *open, attempt)))
    }
}

/// Returns the start of a step with this number of attempts. `open` is its entry, if it has begun in an earlier run too.
fn open_step(
    replay: &Replay,
    slot: &Slot,
    input: Option<Digest>,
    open: Option<usize>,
    attempt: u32,
) -> OpenStep {
    let before = open.and_then(|at| replay.history().open_step(at));
    let key_path = before.map_or(&slot.path, |open| &open.key_path).clone();
    OpenStep { attempt, input, key_path, within: replay.slots().branches().within(slot.branch) }
}

impl Leg {
    /// Waits without an end for a step whose effect nobody can find out.
    pub(super) fn leave_open(&mut self, id: SlotId, at: usize, waker: &Waker) -> StepPoll {
        self.replay.slots_mut().set_step(id, StepPhase::Unresolved(at));
        let next = self.replay.history_mut().pass(at);
        self.wake(next);
        self.register(id, waker);
        StepPoll::Pending
    }

    /// Waits until the handler has reached all that it can reach, and then begins a step again: what it finds out may end the
    /// branches beside it. The entries behind the step may be delivered meanwhile, as in the run before.
    pub(super) fn interrupt(&mut self, id: SlotId, at: usize, waker: &Waker) -> StepPoll {
        let Some(site) = self.replay.slots().get(id).map(|slot| slot.site) else {
            return StepPoll::Pending;
        };
        let next = self.replay.deliver(at, site);
        self.wake(next);
        self.replay.slots_mut().set_step(id, StepPhase::Interrupted { at, may_begin: false });
        self.register(id, waker);
        StepPoll::Pending
    }

    /// Notes that a step was dropped which an earlier run has begun or ended. If the handler has not received its outcome, the step is
    /// abandoned from here on, as one that is dropped while it runs: on a later leg, the handler may drop it before it reaches it.
    pub(super) fn give_up_step(&mut self, at: usize, slot: &Slot, unwinding: bool) {
        let SlotState::Step { input, .. } = slot.state else { return };
        let is_running = self.is_running();
        let history = self.replay.history_mut();
        if !is_running || !history.is_unfinished(at) {
            return history.give_up_step(at);
        }
        let round = history.entry(at).round;
        let unfinished = history.take(at);
        let outcome = StepOutcome::Abandoned { is_done: unfinished.body.is_done() };
        let body = EntryBody::Step { input, stale: false, undelivered: None, outcome };
        let abandoned = Entry { path: slot.path.clone(), round, body };
        match unwinding {
            true => history.record_unwinding(abandoned, slot.site, Some(unfinished)),
            false => history.record(abandoned, slot.site),
        }
    }

    /// Returns the path of a step whose effect nobody can find out, and for which the handler waits.
    pub(super) fn unresolved_step(&self) -> Option<String> {
        let slots = self.replay.slots();
        if !slots.has(Counted::Unresolved) {
            return None;
        }
        let waits = |slot: &&Slot| matches!(slot.step(), Some(StepPhase::Unresolved(_)));
        slots.iter().map(|(_, slot)| slot).find(waits).map(|slot| slot.path.to_string())
    }

    /// Returns `true` if a step of an earlier run waits until the handler has reached the others.
    pub(super) fn waits_for_earlier_steps(&self) -> bool {
        self.steps.waits_for_earlier(&self.replay)
    }

    /// Lets futures continue that waited until the handler is idle: outcomes of earlier runs, then steps that such runs have begun, then
    /// new steps. Returns `true` if there are any. `may_reach` is true if other code may still reach more.
    pub(super) fn release_waiting(&mut self, may_reach: bool) -> bool {
        let waits = may_reach && self.waits_for_earlier_steps();
        !waits && (self.release_ended() || self.release_interrupted()) || self.release_steps()
    }

    /// Wakes the step that the handler has reached and that was the first to end in an earlier run. Returns `true` if there is one.
    fn release_ended(&mut self) -> bool {
        let ended = release_ended(&mut self.replay);
        let is_any = ended.is_any();
        self.wake(ended);
        is_any
    }

    /// Wakes the steps that begin again. Returns `true` if there are any.
    fn release_interrupted(&mut self) -> bool {
        let released = release_interrupted(&mut self.replay);
        let is_any = !released.is_empty();
        self.wake(released);
        is_any
    }
}
