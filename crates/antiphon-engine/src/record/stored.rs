//! The part of a leg's record that a store holds: what earlier runs of the same leg have delivered, begun and ended.
//!
//! The record of a call continues in the store. While a leg runs, the server appends the start and the end of each step, and the
//! winner of each select. The value of a start or winner also holds everything that the handler has received since the value
//! before, in its order: the deliveries. So the deliveries on which an effect depends are durable before the effect.
//!
//! ```text
//!  [1, version, first, [delivery, ..], [note, ..], step | null]
//!  delivery = entry | path of a step whose end is stored | null (removed)
//!  step     = [path, attempt, input | null, round, path of the key | null, [[select, branch], ..]]
//! ```
//!
//! `first` is the number of the first delivery in the leg. A later run of the leg replays the sealed entries, then the stored
//! ones: [`Record::continued`].

use super::{
    Entry, EntryBody, EntryKind, Migration, Note, OpenStep, Record, RecordError, StepOutcome, Within,
    codec::{
        Encoded, Out, digest, expect, optional, optional_text, read_list, read_within, write_list,
        write_optional_digest, write_optional_text, write_within,
    },
};
use minicbor::{Decoder, Encoder, data::Type, decode};
use std::{collections::HashMap, sync::Arc};

const FORMAT: u8 = 1;

/// The text that a server appends to the store, before an effect or a winner.
#[derive(Clone, Debug)]
pub struct WriteAhead {
    /// The deliveries and notes up to here are in the text. [`Leg::written`](crate::Leg::written) receives them once the text is stored.
    pub(crate) written: Written,
    /// The text. The server seals it.
    pub text: Vec<u8>,
}

/// The deliveries and notes of a leg that a text holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    /// The number of deliveries of the leg, from its beginning.
    pub(crate) deliveries: u32,
    /// The number of notes of the call.
    pub(crate) notes: usize,
}

/// The start of a step.
#[derive(Clone, Debug)]
pub(crate) struct StepStart {
    pub(crate) path: Arc<str>,
    pub(crate) round: u32,
    pub(crate) open: OpenStep,
}

/// One delivery, as it is written.
pub(crate) enum Delivered<'e> {
    /// The entry in full.
    Entry(&'e Entry),
    /// A step whose end is a record of its own.
    Step(&'e str),
    /// An entry that is not valid any more.
    Removed,
}

/// Writes the deliveries from number `first` on, the notes, and the start of a step if one begins.
pub(crate) fn write<'e>(
    version: u32,
    first: u32,
    deliveries: impl ExactSizeIterator<Item = Delivered<'e>>,
    notes: &[Note],
    step: Option<&StepStart>,
) -> Result<Vec<u8>, RecordError> {
    let mut out = Encoder::new(Vec::with_capacity(128));
    let encoded = (|| -> Encoded {
        out.array(6)?.u8(FORMAT)?.u32(version)?.u32(first)?.array(deliveries.len() as u64)?;
        for delivery in deliveries {
            match delivery {
                Delivered::Entry(entry) => entry.encode(&mut out)?,
                Delivered::Step(path) => drop(out.str(path)?),
                Delivered::Removed => drop(out.null()?),
            }
        }
        write_list(&mut out, notes, Note::encode)?;
        match step {
            Some(step) => step.encode(&mut out),
            None => out.null().map(drop),
        }
    })();
    encoded.map_err(|fault| RecordError(fault.to_string()))?;
    Ok(out.into_writer())
}

impl StepStart {
    fn encode(&self, out: &mut Out) -> Encoded {
        let OpenStep { attempt, input, key_path, within } = &self.open;
        out.array(6)?.str(&self.path)?.u32(*attempt)?;
        write_optional_digest(out, input.as_ref())?;
        out.u32(self.round)?;
        write_optional_text(out, Some(&**key_path).filter(|path| **path != *self.path))?;
        write_within(out, within)
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, decode::Error> {
        expect(input.array()? == Some(6))?;
        let (path, attempt): (Arc<str>, u32) = (input.str()?.into(), input.u32()?);
        let (pinned, round) = (optional(input, digest)?, input.u32()?);
        let key_path = optional_text(input)?.map_or_else(|| path.clone(), Into::into);
        let open = OpenStep { attempt, input: pinned, key_path, within: read_within(input)? };
        Ok(Self { path, round, open })
    }
}

/// The stored records of one leg, in the order in which they were appended.
#[derive(Clone, Debug, Default)]
pub struct StoredLeg {
    /// The deliveries by their numbers, each with the version of the tool that wrote it.
    deliveries: Vec<(u32, Option<StoredDelivery>)>,
    notes: Vec<Note>,
    steps: Vec<StoredStep>,
    /// The indexes of the steps by the names of their records.
    names: HashMap<String, usize>,
    ended: u32,
}

#[derive(Clone, Debug)]
enum StoredDelivery {
    Entry(Entry),
    Step(Arc<str>),
}

/// The stored records of one step.
#[derive(Clone, Debug)]
struct StoredStep {
    path: Arc<str>,
    /// The version of the tool that began the step. An earlier release did not store it.
    version: Option<u32>,
    /// The round in which the step began, if that is stored.
    round: Option<u32>,
    /// The last attempt that began, and what belongs to the step.
    open: OpenStep,
    /// The last attempt whose failure is stored.
    failed: u32,
    /// The number of deliveries before the first attempt.
    place: u32,
    /// The outcome, and its number in the order of the ends.
    end: Option<(u32, StepOutcome)>,
}

impl StoredLeg {
    /// Returns `true` if nothing was stored.
    pub fn is_empty(&self) -> bool {
        self.deliveries.is_empty() && self.steps.is_empty() && self.notes.is_empty()
    }

    /// Adds the start of an attempt. `name` is the name of the step's records; `text` is that of [`Leg::write_ahead`](crate::Leg::write_ahead), if the
    /// release that stored the start had one.
    ///
    /// # Errors
    /// If `text` is not such a text.
    pub fn begin(&mut self, name: &str, attempt: u32, text: Option<&[u8]>) -> Result<(), RecordError> {
        let start = text.map(|text| self.read(text)).transpose()?;
        let at = self.step(name, start);
        let open = &mut self.steps[at].open;
        open.attempt = open.attempt.max(attempt);
        Ok(())
    }

    /// Adds the failure of an attempt.
    pub fn failed(&mut self, name: &str, attempt: u32) {
        let at = self.step(name, None);
        let step = &mut self.steps[at];
        step.failed = step.failed.max(attempt);
    }

    /// Adds the end of a step, with the text of its start if that was not stored alone.
    ///
    /// # Errors
    /// If `text` is not a text of [`Leg::write_ahead`](crate::Leg::write_ahead).
    pub fn end(&mut self, name: &str, outcome: StepOutcome, text: Option<&[u8]>) -> Result<(), RecordError> {
        let start = text.map(|text| self.read(text)).transpose()?;
        let at = self.step(name, start);
        self.ended += 1;
        self.steps[at].end.get_or_insert((self.ended, outcome));
        Ok(())
    }

    /// Adds deliveries that were stored without a step: those up to the winner of a select.
    ///
    /// # Errors
    /// If `text` is not a text of [`Leg::write_ahead`](crate::Leg::write_ahead).
    pub fn delivered(&mut self, text: &[u8]) -> Result<(), RecordError> {
        self.read(text).map(drop)
    }

    /// Returns the index of the step with this name.
    fn step(&mut self, name: &str, start: Option<(u32, u32, Option<StepStart>)>) -> usize {
        let known = self.names.get(name).copied();
        let (version, place, start) = match start {
            Some((version, place, start)) => (Some(version), place, start),
            None => (None, u32::MAX, None),
        };
        if let Some(at) = known {
            let step = &mut self.steps[at];
            if let (None, Some(start)) = (step.round, start) {
                (step.path, step.round, step.version) = (start.path, Some(start.round), version);
                step.open = OpenStep { attempt: step.open.attempt, ..start.open };
            }
            step.place = step.place.min(place);
            return at;
        }
        let (path, round, open) = match start {
            Some(StepStart { path, round, open }) => (path, Some(round), open),
            None => {
                let path: Arc<str> = name.into();
                let open =
                    OpenStep { attempt: 0, input: None, key_path: path.clone(), within: Within::default() };
                (path, None, open)
            }
        };
        self.names.insert(name.to_owned(), self.steps.len());
        self.steps.push(StoredStep { path, version, round, open, failed: 0, place, end: None });
        self.steps.len() - 1
    }

    /// Reads a text. Returns the version that wrote it, the number of deliveries up to it, and the start of a step.
    fn read(&mut self, text: &[u8]) -> Result<(u32, u32, Option<StepStart>), RecordError> {
        let mut input = Decoder::new(text);
        self.read_from(&mut input).map_err(|fault| RecordError(fault.to_string()))
    }

    fn read_from(
        &mut self,
        input: &mut Decoder<'_>,
    ) -> Result<(u32, u32, Option<StepStart>), decode::Error> {
        expect(input.array()? == Some(6) && input.u8()? == FORMAT)?;
        let (version, first) = (input.u32()?, input.u32()?);
        let deliveries = read_list(input, |input| match input.datatype()? {
            Type::Null => input.null().map(|()| None),
            Type::String => Ok(Some(StoredDelivery::Step(input.str()?.into()))),
            _ => Entry::decode(input).map(|entry| Some(StoredDelivery::Entry(entry))),
        })?;
        let place = first.saturating_add(u32::try_from(deliveries.len()).unwrap_or(u32::MAX));
        for (number, delivery) in (first as usize..).zip(deliveries) {
            // Each text repeats what was not confirmed before it.
            match self.deliveries.get(number) {
                Some(_) => {}
                None if number == self.deliveries.len() => self.deliveries.push((version, delivery)),
                None => return Err(decode::Error::message("deliveries are missing")),
            }
        }
        for note in read_list(input, Note::decode)? {
            self.notes.retain(|known| !note.replaces(known));
            self.notes.push(note);
        }
        Ok((version, place, optional(input, StepStart::decode)?))
    }

    /// Drops everything but the steps that may have had an effect which no entry holds: the tool has changed, and its calls begin
    /// again.
    pub fn restart(&mut self, version: u32) {
        let is_old = |was: Option<u32>| was != Some(version);
        for (was, delivery) in &mut self.deliveries {
            if is_old(Some(*was)) {
                *delivery = None;
            }
        }
        self.steps.retain(|step| step.end.is_none() || !is_old(step.version));
        self.names.clear();
    }

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
        for step in joined.iter_mut().filter(|step| is_old(step.version) && migration.keeps_stale(&step.path)) {
            step.round = Some(0);
        }
        self.steps = joined;
    }
}

/// Renames a step. Returns `false` if the version has removed it.
fn rename(path: &mut Arc<str>, migration: &Migration) -> bool {
    match migration.path_of_step(path.clone()) {
        Some(new) => {
            *path = new;
            true
        }
        None => false,
    }
}

impl StoredStep {
    /// Takes the records of a later version into those of this one.
    fn join(&mut self, later: Self) {
        if later.open.attempt > self.open.attempt {
            self.open.attempt = later.open.attempt;
            self.open.input = later.open.input;
        }
        self.failed = self.failed.max(later.failed);
        self.place = self.place.min(later.place);
        self.end = self.end.take().or(later.end);
    }

    fn entry(&self, outcome: StepOutcome, undelivered: bool, round: u32) -> Entry {
        let body = EntryBody::Step { input: self.open.input, stale: false, undelivered, outcome };
        Entry { path: self.path.clone(), round: self.round.unwrap_or(round), body }
    }
}

impl Note {
    /// Returns `true` if this note stands in the place of that one.
    fn replaces(&self, known: &Self) -> bool {
        match (self, known) {
            (Self::Asks(_), Self::Asks(_)) => true,
            (Self::UrlReference { path, .. }, Self::UrlReference { path: other, .. }) => path == other,
            _ => false,
        }
    }
}

/// The entries of earlier runs of a leg, as its history replays them after the sealed ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Continuation {
    /// The entries, each with the branches around it if it is an undelivered step: the delivered ones and the steps without an
    /// outcome in their order, then the steps that ended and were not delivered.
    pub(crate) entries: Vec<(Entry, Within)>,
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
                delivered.iter_mut().filter(|known| known.as_ref().is_some_and(is_before)).for_each(|known| *known = None);
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
                matches!(entry.body, EntryBody::Open(_) | EntryBody::Step { undelivered: true, .. });
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
            self.received.retain(|received| {
                received.asked.path != entry.path || received.asked.question.is_some()
            });
        }
    }
}

impl Continuation {
    /// Returns the estimated size in bytes.
    pub(crate) fn size(&self) -> usize {
        self.entries.iter().map(|(entry, _)| entry.size()).sum()
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
                Some((number, _)) if is_lost(&step.open.within) => {
                    ends.push((number, step.entry(StepOutcome::Abandoned, false, round), Within::default()));
                }
                Some((number, outcome)) => {
                    let entry = step.entry(outcome, true, round);
                    ends.push((number, entry, std::mem::take(&mut step.open.within)));
                }
                None if step.open.attempt > step.failed => opens.push(step),
                None => self.failed.push((step.path.clone(), step.failed)),
            }
        }
        opens.sort_by_key(|step| step.place);
        ends.sort_by_key(|(number, ..)| *number);
        let mut opens = opens.into_iter().peekable();
        let open = |step: StoredStep| {
            let round = step.round.unwrap_or(round);
            (Entry { path: step.path, round, body: EntryBody::Open(Box::new(step.open)) }, Within::default())
        };
        for (place, entry) in (0_u32..).zip(delivered) {
            while let Some(step) = opens.next_if(|step| step.place <= place) {
                self.entries.push(open(step));
            }
            self.entries.extend(entry.map(|entry| (entry, Within::default())));
        }
        self.entries.extend(opens.map(open));
        self.entries.extend(ends.into_iter().map(|(_, entry, within)| (entry, within)));
        self
    }
}

impl Entry {
    /// Returns the path and the winner of a select.
    pub(crate) fn winner(&self) -> Option<(Arc<str>, u8)> {
        match self.body {
            EntryBody::Select { winner } => Some((self.path.clone(), winner)),
            _ => None,
        }
    }
}

impl WriteAhead {
    pub(crate) fn new(written: Written, text: Vec<u8>) -> Self {
        Self { written, text }
    }

    /// Returns a number for the name of the record: another one for each text that holds more.
    pub fn number(&self) -> String {
        format!("{}.{}", self.written.deliveries, self.written.notes)
    }
}
