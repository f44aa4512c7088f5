//! What a leg writes to its store: the deliveries, before an effect that may depend on them, and the starts of steps.

use super::{
    Leg,
    slot::{Slot, SlotId, SlotState, StepPhase},
    step::Stopped,
};
use crate::record::{Entry, EntryBody, OpenStep, StepStart, WriteAhead, Written, write};
use antiphon_seal::Digest;

impl Leg {
    /// Returns the text to store before this attempt of a step begins: everything that the handler has received up to here, and
    /// the start of the step. `None` if the leg has no store.
    pub fn write_ahead_of_step(&mut self, path: &str, attempt: u32) -> Option<WriteAhead> {
        let id = self.running_step(path)?;
        let slot = self.slots.get(id)?;
        let SlotState::Step { input, phase: StepPhase::Running { open, round, .. } } = &slot.state else {
            return None;
        };
        let open = self.open_step(slot, *input, *open, attempt);
        let start = StepStart { path: slot.path.clone(), round: *round, open };
        self.write(Some(&start))
    }

    fn running_step(&self, path: &str) -> Option<SlotId> {
        let is_it = |id: &SlotId| self.slots.get(*id).is_some_and(|slot| *slot.path == *path);
        self.running.iter().copied().find(is_it)
    }

    fn open_step(&self, slot: &Slot, input: Option<Digest>, open: Option<usize>, attempt: u32) -> OpenStep {
        let before = open.and_then(|at| self.history.open_step(at));
        let key_path = before.map_or(&slot.path, |open| &open.key_path).clone();
        OpenStep { attempt, input, key_path, within: self.slots.within(slot.branch) }
    }

    /// Returns the text to store before anything else happens that depends on the deliveries up to here; `None` if the store has
    /// them all, or the leg has no store.
    pub fn write_ahead(&mut self) -> Option<WriteAhead> {
        let is_written = self.history.unwritten().1.len() == 0;
        if is_written && self.notes.len() <= self.written_notes {
            return None;
        }
        self.write(None)
    }

    /// Returns `true` if all deliveries up to here are in texts of which some are not in the store yet.
    pub fn is_written_soon(&self) -> bool {
        let (first, deliveries) = self.history.unwritten();
        deliveries.len() > 0
            && first.saturating_add(u32::try_from(deliveries.len()).unwrap_or(u32::MAX)) <= self.submitted
    }

    fn write(&mut self, step: Option<&StepStart>) -> Option<WriteAhead> {
        if !self.setup.writes_ahead {
            return None;
        }
        let (first, deliveries) = self.history.unwritten();
        let count = first.saturating_add(u32::try_from(deliveries.len()).unwrap_or(u32::MAX));
        let notes = self.notes.get(self.written_notes..).unwrap_or_default();
        // The parts were made or decoded here: there is nothing in them that cannot be written.
        let text = write(self.setup.version, first, deliveries, notes, step).ok()?;
        self.submitted = count;
        let written = Written { deliveries: count, notes: self.notes.len() };
        Some(WriteAhead::new(written, step.map(|start| (start.path.clone(), start.open.attempt)), text))
    }

    /// Notes that a text is in the store.
    pub fn written(&mut self, text: &WriteAhead) {
        self.history.written(text.written.deliveries);
        self.written_notes = self.written_notes.max(text.written.notes).min(self.notes.len());
        if let Some((path, attempt)) = &text.start {
            self.set_started(path, Some(*attempt));
        }
    }

    /// Notes that the present attempt of a step has ended without an effect.
    pub fn attempt_failed(&mut self, path: &str) {
        self.set_started(path, None);
    }

    fn set_started(&mut self, path: &str, attempt: Option<u32>) {
        if let Some(id) = self.running_step(path)
            && let Some(SlotState::Step { phase: StepPhase::Running { started, .. }, .. }) =
                self.slots.get_mut(id).map(|slot| &mut slot.state)
        {
            *started = attempt;
        }
    }

    /// Notes that an operation of the store has begun, or ended, without which the leg does not end.
    pub fn store_operation(&mut self, begins: bool) {
        self.storing = if begins { self.storing + 1 } else { self.storing.saturating_sub(1) };
    }

    /// Records the steps that still run when the leg ends: they have begun, and have no outcome.
    pub(super) fn keep_started_steps(&mut self) {
        let started = |id: &SlotId| {
            let slot = self.slots.get(*id)?;
            let SlotState::Step { input, phase: StepPhase::Running { round, open: None, started, .. } } =
                &slot.state
            else {
                return None;
            };
            let open = self.open_step(slot, *input, None, (*started)?);
            Some(Entry { path: slot.path.clone(), round: *round, body: EntryBody::Open(Box::new(open)) })
        };
        let started: Vec<Entry> = self.running.iter().filter_map(started).collect();
        started.into_iter().for_each(|entry| self.history.record_open(entry));
    }

    /// Returns the start of a step that was stopped, if the store has one of this run or of an earlier one.
    pub(super) fn started_step(&self, stopped: &Stopped) -> Option<Box<OpenStep>> {
        let Stopped { slot, input, open, started, .. } = stopped;
        let before = open.and_then(|at| self.history.open_step(at)).map(|open| open.attempt);
        started.or(before).map(|attempt| Box::new(self.open_step(slot, *input, *open, attempt)))
    }
}
