//! What a leg writes to its store: the deliveries, before an effect that may depend on them, and the starts of steps.

use super::{
    Leg,
    replay::Replay,
    slot::{Slot, SlotId},
    step::Stopped,
};
use crate::record::{Entry, EntryBody, OpenStep, StepStart, WriteAhead, Written, write};
use antiphon_seal::Digest;

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
