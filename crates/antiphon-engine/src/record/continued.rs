//! The sealed record of a call and the stored record of its leg, as one.

use super::{
    Entry, EntryBody, EntryKind, Migration, Record, StepFailure, StepOutcome, Within,
    stored::{StoredDelivery, StoredLeg, StoredStep, rename},
};
use std::sync::Arc;

/// The entries of earlier runs of a leg, as its history replays them after the sealed ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Continuation {
    /// The entries: the delivered ones and the steps without an outcome in their order, then the steps that ended and were not
    /// delivered.
    pub(crate) entries: Vec<Entry>,
    /// The number of deliveries.
    pub(crate) deliveries: u32,
    /// The last attempts of steps that have failed, by path.
    pub(crate) failed: Vec<(Arc<str>, u32)>,
}

impl Record {
    /// Returns the record with the stored part of its next leg. `migration` has the changes of this `version` of the tool.
    #[must_use]
    pub fn continued(mut self, mut stored: StoredLeg, migration: &Migration, version: u32) -> Self {
        stored.migrate(migration, version);
        let round = self.round.saturating_add(1);
        for note in std::mem::take(&mut stored.notes) {
            self.notes.retain(|known| !note.replaces(known));
            self.notes.push(note);
        }
        let mut steps: Vec<Option<StoredStep>> = stored.steps.into_iter().map(Some).collect();
        let take = |steps: &mut Vec<Option<StoredStep>>, path: &str| {
            steps.iter_mut().find(|step| step.as_ref().is_some_and(|step| *step.path == *path))?.take()
        };
        let deliveries = u32::try_from(stored.deliveries.len()).unwrap_or(u32::MAX);
        let mut delivered: Vec<Option<Entry>> = Vec::with_capacity(stored.deliveries.len());
        for (_, delivery) in stored.deliveries {
            let entry = match delivery {
                None => None,
                Some(StoredDelivery::Entry(entry)) => {
                    if entry.kind() == EntryKind::Step {
                        drop(take(&mut steps, &entry.path));
                    }
                    Some(entry)
                }
                Some(StoredDelivery::Step(path)) => take(&mut steps, &path).and_then(|mut step| {
                    let (_, outcome) = step.end.take()?;
                    Some(step.entry(outcome, false, round))
                }),
            };
            if let Some(entry) = &entry {
                self.remove_unfinished(&entry.path, entry.kind());
                // An entry that a later run has written in the place of an earlier one, which was not valid any more.
                let is_before = |known: &Entry| known.kind() == entry.kind() && known.path == entry.path;
                delivered
                    .iter_mut()
                    .filter(|known| known.as_ref().is_some_and(is_before))
                    .for_each(|known| *known = None);
                self.remove_asked(entry);
            }
            delivered.push(entry);
        }
        let steps = steps.into_iter().flatten().filter_map(|step| self.join_unfinished(step));
        let steps: Vec<StoredStep> = steps.collect();
        let stored = Continuation { deliveries, ..Continuation::default() };
        self.stored = Some(Box::new(stored.with(delivered, steps.into_iter(), round)));
        self
    }

    /// Returns the place of a sealed step without an outcome, or whose outcome the handler has not received.
    fn unfinished(&self, path: &str) -> Option<usize> {
        self.entries.iter().position(|entry| {
            let is_unfinished =
                matches!(entry.body, EntryBody::Open(_) | EntryBody::Step { undelivered: Some(_), .. });
            is_unfinished && *entry.path == *path
        })
    }

    /// Removes such a step, because a run of this leg has finished it.
    fn remove_unfinished(&mut self, path: &str, kind: EntryKind) {
        if kind == EntryKind::Step
            && let Some(at) = self.unfinished(path)
        {
            self.entries.remove(at);
        }
    }

    /// Takes the stored records of a sealed step without an outcome into it. Returns the step unless it stays where it is.
    fn join_unfinished(&mut self, step: StoredStep) -> Option<StoredStep> {
        let Some(at) = self.unfinished(&step.path) else { return Some(step) };
        if step.end.is_none()
            && step.open.attempt > step.failed
            && let EntryBody::Open(open) = &mut self.entries[at].body
        {
            open.attempt = step.open.attempt;
            return None;
        }
        self.entries.remove(at);
        Some(step)
    }

    /// Removes the question of a recorded answer from those that wait for an answer.
    fn remove_asked(&mut self, entry: &Entry) {
        if entry.kind() == EntryKind::Ask {
            self.asked.retain(|asked| asked.path != entry.path || asked.question.is_some());
            self.received
                .retain(|received| received.asked.path != entry.path || received.asked.question.is_some());
        }
    }
}

impl Continuation {
    /// Returns the estimated size in bytes.
    pub(crate) fn size(&self) -> usize {
        self.entries.iter().map(Entry::size).sum()
    }

    /// Returns `true` if an earlier run of the leg has refused a step because its task was cancelled: the handler has met the
    /// cancellation, and its later steps run.
    pub(crate) fn has_refused_step(&self) -> bool {
        let mut outcomes = self.entries.iter().filter_map(|entry| match &entry.body {
            EntryBody::Step { outcome: StepOutcome::Failed(failure), .. } => Some(failure),
            _ => None,
        });
        outcomes.any(StepFailure::is_cancellation)
    }

    /// Puts the steps that were not delivered between and behind the deliveries.
    fn with(
        mut self,
        delivered: Vec<Option<Entry>>,
        steps: impl Iterator<Item = StoredStep>,
        round: u32,
    ) -> Self {
        let winners: Vec<(Arc<str>, u8)> = delivered.iter().flatten().filter_map(Entry::winner).collect();
        let is_lost = |within: &Within| {
            within.iter().any(|(path, branch)| winners.iter().any(|(of, won)| of == path && won != branch))
        };
        let (mut opens, mut ends) = (Vec::new(), Vec::new());
        for mut step in steps {
            match step.end.take() {
                // Its branch has lost its select: the handler never receives the outcome.
                Some((number, outcome)) if is_lost(&step.open.within) => {
                    ends.push((number, step.entry(outcome.abandoned(), false, round)));
                }
                Some((number, outcome)) => {
                    ends.push((number, step.entry(outcome, true, round)));
                }
                None if step.open.attempt > step.failed => opens.push(step),
                None => self.failed.push((step.path.clone(), step.failed)),
            }
        }
        opens.sort_by_key(|step| step.place);
        ends.sort_by_key(|(number, _)| *number);
        let mut opens = opens.into_iter().peekable();
        let open = |step: StoredStep| {
            let round = step.round.unwrap_or(round);
            Entry { path: step.path, round, body: EntryBody::Open(Box::new(step.open)) }
        };
        for (place, entry) in (0_u32..).zip(delivered) {
            while let Some(step) = opens.next_if(|step| step.place <= place) {
                self.entries.push(open(step));
            }
            self.entries.extend(entry);
        }
        self.entries.extend(opens.map(open));
        self.entries.extend(ends.into_iter().map(|(_, entry)| entry));
        self
    }
}

impl StoredLeg {
    /// Applies the changes of this version to what other versions have stored.
    fn migrate(&mut self, migration: &Migration, version: u32) {
        let is_old = |was: Option<u32>| was != Some(version);
        for (was, delivery) in self.deliveries.iter_mut().filter(|(was, _)| is_old(Some(*was))) {
            let is_kept = match delivery {
                None => true,
                Some(StoredDelivery::Step(path)) => rename(path, migration),
                Some(StoredDelivery::Entry(entry)) => match entry.kind() {
                    EntryKind::Step => rename(&mut entry.path, migration),
                    EntryKind::Ask => !migration.forgets(&entry.path),
                    EntryKind::Select | EntryKind::Checkpoint => true,
                },
            };
            if !is_kept {
                *delivery = None;
            }
            *was = version;
        }
        self.steps.retain_mut(|step| !is_old(step.version) || rename(&mut step.path, migration));
        // One step under its old and its new path is one.
        let mut joined: Vec<StoredStep> = Vec::with_capacity(self.steps.len());
        for step in self.steps.drain(..) {
            match joined.iter_mut().find(|known| known.path == step.path) {
                Some(known) => known.join(step),
                None => joined.push(step),
            }
        }
        for step in joined.iter_mut().filter(|step| is_old(step.version) && migration.keeps_stale(&step.path))
        {
            step.round = Some(0);
        }
        self.steps = joined;
    }
}
