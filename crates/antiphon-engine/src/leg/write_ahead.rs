//! What a leg writes to its store: the deliveries, before an effect that may depend on them. A step that began and that the leg
//! drops is in its record.

use super::{
    Leg,
    slot::{Slot, SlotId, SlotState, StepPhase},
};
use crate::record::{Entry, EntryBody, OpenStep, StepStart, WriteAhead, Written, write};
use std::sync::Arc;

impl Leg {
    /// Returns the text to store before this attempt of a step begins: everything that the handler has received up to here, and
    /// the start of the step. `None` if the leg has no store.
    pub fn write_ahead_of_step(&mut self, path: &str, attempt: u32) -> Option<WriteAhead> {
        let is_it = |id: &SlotId| self.slots.get(*id).is_some_and(|slot| *slot.path == *path);
        let id = self.running.iter().copied().find(is_it)?;
        let slot = self.slots.get(id)?;
        let SlotState::Step { input, phase: StepPhase::Running { open, round, .. } } = &slot.state else {
            return None;
        };
        let open = open.and_then(|at| self.history.open_step(at));
        let key_path = open.map_or(&slot.path, |open| &open.key_path).clone();
        let within = self.slots.within(slot.branch);
        let open = OpenStep { attempt, input: *input, key_path, within };
        let start = StepStart { path: slot.path.clone(), round: *round, open };
        if let Some(SlotState::Step { phase: StepPhase::Running { started, .. }, .. }) =
            self.slots.get_mut(id).map(|slot| &mut slot.state)
        {
            *started = self.setup.writes_ahead.then(|| Box::new(start.open.clone()));
        }
        self.write(Some(&start))
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
        Some(WriteAhead::new(Written { deliveries: count, notes: self.notes.len() }, text))
    }

    /// Notes that a text is in the store.
    pub fn written(&mut self, text: &WriteAhead) {
        self.history.written(text.written.deliveries);
        self.written_notes = self.written_notes.max(text.written.notes).min(self.notes.len());
    }

    /// Notes that an operation of the store has begun, or ended, without which the leg does not end.
    pub fn store_operation(&mut self, begins: bool) {
        self.storing = if begins { self.storing + 1 } else { self.storing.saturating_sub(1) };
    }

    /// Records the steps that still run when the leg ends: they have begun, and have no outcome.
    pub(super) fn keep_started_steps(&mut self) {
        for id in std::mem::take(&mut self.running) {
            if let Some(Slot {
                path,
                state: SlotState::Step { phase: StepPhase::Running { round, open, started, .. }, .. },
                ..
            }) = self.slots.get_mut(id)
            {
                let (path, round, open, started) = (path.clone(), *round, *open, started.take());
                self.keep_started_step(path, round, open, started);
            }
        }
    }

    pub(super) fn keep_started_step(
        &mut self,
        path: Arc<str>,
        round: u32,
        open: Option<usize>,
        started: Option<Box<OpenStep>>,
    ) {
        // A step that has begun in an earlier run too has its entry.
        if let (None, Some(started)) = (open, started) {
            self.history.record_open(Entry { path, round, body: EntryBody::Open(started) });
        }
    }
}
