//! The part of a leg's record that a store holds: what earlier runs of the same leg have delivered, begun and ended, and
//! what this run delivers.
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
    Entry, EntryBody, Migration, Note, OpenStep, RecordError, StepOutcome, Within,
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
    /// The path of the step whose start is in the text, and the number of the attempt.
    pub(crate) start: Option<(Arc<str>, u32)>,
    /// The text. The server seals it.
    pub text: Vec<u8>,
}

/// The deliveries and notes of a leg that a text holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    /// The number of deliveries of the leg, from its beginning.
    pub(crate) deliveries: u32,
    /// The number of notes of the call, with those that others have replaced.
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
    pub(super) deliveries: Vec<(u32, Option<StoredDelivery>)>,
    pub(super) notes: Vec<Note>,
    pub(super) steps: Vec<StoredStep>,
    /// The indexes of the steps by the names of their records.
    names: HashMap<String, usize>,
    ended: u32,
}

#[derive(Clone, Debug)]
pub(super) enum StoredDelivery {
    Entry(Entry),
    Step(Arc<str>),
}

/// The stored records of one step.
#[derive(Clone, Debug)]
pub(super) struct StoredStep {
    pub(super) path: Arc<str>,
    /// The version of the tool that began the step. An earlier release did not store it.
    pub(super) version: Option<u32>,
    /// The round in which the step began, if that is stored.
    pub(super) round: Option<u32>,
    /// The last attempt that began, and what belongs to the step.
    pub(super) open: OpenStep,
    /// The last attempt whose failure is stored.
    pub(super) failed: u32,
    /// The number of deliveries before the first attempt.
    pub(super) place: u32,
    /// The outcome, and its number in the order of the ends.
    pub(super) end: Option<(u32, StepOutcome)>,
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

    fn read_from(&mut self, input: &mut Decoder<'_>) -> Result<(u32, u32, Option<StepStart>), decode::Error> {
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
}

/// Renames a step. Returns `false` if the version has removed it.
pub(super) fn rename(path: &mut Arc<str>, migration: &Migration) -> bool {
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
    pub(super) fn join(&mut self, later: Self) {
        if later.open.attempt > self.open.attempt {
            self.open.attempt = later.open.attempt;
            self.open.input = later.open.input;
        }
        self.failed = self.failed.max(later.failed);
        self.place = self.place.min(later.place);
        self.end = self.end.take().or(later.end);
    }

    pub(super) fn entry(&self, outcome: StepOutcome, undelivered: bool, round: u32) -> Entry {
        let undelivered = undelivered.then(|| self.open.within.clone());
        let body = EntryBody::Step { input: self.open.input, stale: false, undelivered, outcome };
        Entry { path: self.path.clone(), round: self.round.unwrap_or(round), body }
    }
}

impl Note {
    /// Returns `true` if this note stands in the place of that one.
    pub(super) fn replaces(&self, known: &Self) -> bool {
        match (self, known) {
            (Self::Asks(_), Self::Asks(_)) => true,
            (Self::UrlReference { path, .. }, Self::UrlReference { path: other, .. }) => path == other,
            _ => false,
        }
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
    pub(crate) fn new(written: Written, start: Option<(Arc<str>, u32)>, text: Vec<u8>) -> Self {
        Self { written, start, text }
    }

    /// Returns a number for the name of the record: another one for each text that holds more.
    pub fn number(&self) -> String {
        format!("{}.{}", self.written.deliveries, self.written.notes)
    }
}

/// The deliveries of a leg, as far as they go to its store.
#[derive(Debug, Default)]
pub(crate) struct Unwritten {
    /// The deliveries that are not in the store, as indexes, in their order. Kept if the leg has a store.
    deliveries: Option<Vec<usize>>,
    /// The number of deliveries before these.
    written: u32,
    /// The number of deliveries that texts for the store hold.
    submitted: u32,
}

impl Unwritten {
    pub(crate) fn of(is_kept: bool, written: u32) -> Self {
        Self { deliveries: is_kept.then(Vec::new), written, submitted: 0 }
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.deliveries.is_some()
    }

    pub(crate) fn push(&mut self, at: usize) {
        if let Some(deliveries) = &mut self.deliveries {
            deliveries.push(at);
        }
    }

    /// Returns the number of all deliveries.
    fn all(&self) -> u32 {
        self.written.saturating_add(u32::try_from(self.deliveries().len()).unwrap_or(u32::MAX))
    }

    pub(crate) fn note_written(&mut self, deliveries: u32) {
        let new = deliveries.saturating_sub(self.written);
        if let Some(unwritten) = &mut self.deliveries {
            unwritten.drain(..unwritten.len().min(new as usize));
            self.written = self.written.max(deliveries);
        }
    }

    pub(crate) fn deliveries(&self) -> &[usize] {
        self.deliveries.as_deref().unwrap_or_default()
    }

    /// Returns the number of deliveries that the store has.
    pub(crate) fn written(&self) -> u32 {
        self.written
    }

    /// Returns `true` if there are deliveries, and texts for the store hold them all.
    pub(crate) fn is_submitted(&self) -> bool {
        !self.deliveries().is_empty() && self.all() <= self.submitted
    }

    /// Notes that a text for the store holds all deliveries. Returns their number.
    pub(crate) fn submit(&mut self) -> u32 {
        self.submitted = self.all();
        self.submitted
    }
}
