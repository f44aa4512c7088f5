//! The record of one call: what was answered and what was done, in the order in which it happened.
//!
//! It travels inside the token as CBOR; answers and results are JSON text in it. Questions are not kept: an entry has the
//! digest of the question it answers.

use super::key::NUMBER;
use crate::server::settings::{Change, Migration};
use antiphon_seal::Digest;
use minicbor::{Decoder, Encoder, data::Type, decode, encode};
use std::convert::Infallible;

/// What an entry takes besides its texts, at most.
const PER_ENTRY: usize = 32;

/// Kinds have keys of their own: a step and a question may have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Ask,
    Step,
    Race,
    Pause,
    Note,
}

/// One thing that happened.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Scopes and key.
    pub(crate) path: Box<str>,
    /// The branches of `select` it happened in, outermost first; empty outside.
    pub(crate) seat: Box<str>,
    pub(crate) body: Body,
}

#[derive(Clone, Debug)]
pub(crate) enum Body {
    Answer {
        pin: Digest,
        /// How often it was asked until then.
        times: u8,
        /// A handler has read it, so it is checked, and later steps may rest on it.
        used: bool,
        /// As JSON; `None` if the time for it was over.
        text: Option<String>,
    },
    Step {
        /// What it was given, if that is pinned.
        input: Option<Digest>,
        /// It was recorded behind an answer that was dropped.
        stale: bool,
        outcome: StepOutcome,
    },
    /// Which branch came first.
    Race { winner: u8 },
    /// A checkpoint that ended a leg.
    Passed,
    /// What was read of the surroundings, or made once.
    Note { text: String },
}

/// What a step came to, as any leg sees it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StepOutcome {
    /// Its value, as JSON.
    Done(String),
    Failed(StepFailure),
    /// It was dropped while it ran: it is not run again, and never comes to an end.
    Abandoned,
}

/// An error as it is recorded.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StepFailure {
    pub(crate) message: String,
    pub(crate) code: Option<String>,
    /// As JSON.
    pub(crate) data: Option<String>,
    /// The caller may read the message.
    pub(crate) told: bool,
}

/// A question of the last round.
#[derive(Clone, Debug)]
pub(crate) struct AskedOnce {
    pub(crate) path: Box<str>,
    /// As that of an entry.
    pub(crate) seat: Box<str>,
    pub(crate) pin: Digest,
    /// How often it was asked, this time included.
    pub(crate) times: u8,
    /// The last second at which an answer counts, in Unix seconds.
    pub(crate) deadline: Option<u64>,
}

/// The record of one call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal {
    pub(crate) entries: Vec<Entry>,
    pub(crate) asked: Vec<AskedOnce>,
    /// Legs that ended with state only.
    pub(crate) state_only: u8,
}

impl Entry {
    pub(crate) fn kind(&self) -> Kind {
        match self.body {
            Body::Answer { .. } => Kind::Ask,
            Body::Step { .. } => Kind::Step,
            Body::Race { .. } => Kind::Race,
            Body::Passed => Kind::Pause,
            Body::Note { .. } => Kind::Note,
        }
    }

    /// About how many bytes it takes.
    pub(crate) fn size(&self) -> usize {
        let body = match &self.body {
            Body::Answer { text, .. } => 16 + text.as_ref().map_or(0, String::len),
            Body::Step { input, outcome, .. } => {
                let input = if input.is_some() { 16 } else { 0 };
                input
                    + match outcome {
                        StepOutcome::Done(text) => text.len(),
                        StepOutcome::Failed(failure) => failure.size(),
                        StepOutcome::Abandoned => 0,
                    }
            }
            Body::Note { text } => text.len(),
            Body::Race { .. } | Body::Passed => 0,
        };
        PER_ENTRY + self.path.len() + self.seat.len() + body
    }
}

impl AskedOnce {
    /// About how many bytes it takes.
    pub(crate) fn size(&self) -> usize {
        PER_ENTRY + 16 + self.path.len() + self.seat.len()
    }
}

impl StepFailure {
    pub(crate) fn size(&self) -> usize {
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        self.message.len() + text(&self.code) + text(&self.data)
    }
}

/// What stands behind the path of this step in that of the entry, if it is one of it: nothing, or its number.
fn number_of<'e>(entry: &'e Entry, step: &str) -> Option<&'e str> {
    let number = entry.path.strip_prefix(step)?;
    let is_one = number.is_empty() || number.starts_with(NUMBER);
    (entry.kind() == Kind::Step && is_one).then_some(number)
}

impl Journal {
    /// About how many bytes it takes.
    pub(crate) fn size(&self) -> usize {
        self.asked.iter().map(AskedOnce::size).sum::<usize>()
            + self.entries.iter().map(Entry::size).sum::<usize>()
    }

    /// Its largest entries, by path and size: for the log.
    pub(crate) fn largest(&self) -> Vec<(&str, usize)> {
        let mut sizes: Vec<(&str, usize)> =
            self.entries.iter().map(|entry| (&*entry.path, entry.size())).collect();
        sizes.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
        sizes.truncate(3);
        sizes
    }

    /// Does with recorded steps what a newer version wants done.
    pub(crate) fn migrate(&mut self, migration: &Migration) {
        for change in &migration.changes {
            match change {
                Change::Forget(step) => self.entries.retain(|entry| number_of(entry, step).is_none()),
                Change::Rename(from, to) if from == to => {}
                Change::Rename(from, to) => self.rename(from, to),
                // In front of every answer it rests on none.
                Change::KeepStale(step) => {
                    self.entries.sort_by_key(|entry| number_of(entry, step).is_none());
                    for entry in self.entries.iter_mut().filter(|entry| number_of(entry, step).is_some()) {
                        if let Body::Step { stale, .. } = &mut entry.body {
                            *stale = false;
                        }
                    }
                }
            }
        }
    }

    fn rename(&mut self, from: &str, to: &str) {
        let mut collisions = Vec::new();
        for at in 0..self.entries.len() {
            let Some(number) = number_of(&self.entries[at], from) else { continue };
            // A number stands there once.
            let path: Box<str> = match number {
                "" => to.into(),
                _ if to.contains(NUMBER) => continue,
                number => format!("{to}{number}").into(),
            };
            if self.entries.iter().any(|entry| entry.kind() == Kind::Step && entry.path == path) {
                collisions.push(path.clone());
            }
            self.entries[at].path = path;
        }
        for path in collisions {
            tracing::error!(from, to, %path, "a migration renames a step to one that was recorded too");
            self.discredit(&path);
        }
    }

    /// Of two results nobody knows which is this step's: neither counts.
    fn discredit(&mut self, step: &str) {
        for entry in self.entries.iter_mut().filter(|entry| *entry.path == *step) {
            if let Body::Step { input, stale, .. } = &mut entry.body {
                (*input, *stale) = (None, true);
            }
        }
    }

    pub(super) fn encode(&self, out: &mut Encoder<Vec<u8>>) -> Result<(), encode::Error<Infallible>> {
        out.array(3)?.u8(self.state_only)?.array(self.entries.len() as u64)?;
        for entry in &self.entries {
            entry.encode(out)?;
        }
        out.array(self.asked.len() as u64)?;
        for asked in &self.asked {
            out.array(5)?.str(&asked.path)?.str(&asked.seat)?.bytes(&asked.pin.to_bytes())?.u8(asked.times)?;
            match asked.deadline {
                Some(deadline) => out.u64(deadline)?,
                None => out.null()?,
            };
        }
        Ok(())
    }

    pub(super) fn decode(input: &mut Decoder<'_>) -> Result<Self, decode::Error> {
        expect(input.array()? == Some(3))?;
        let state_only = input.u8()?;
        let mut entries = Vec::new();
        for _ in 0..counted(input)? {
            entries.push(Entry::decode(input)?);
        }
        let mut asked = Vec::new();
        for _ in 0..counted(input)? {
            expect(input.array()? == Some(5))?;
            let (path, seat) = (input.str()?.into(), input.str()?.into());
            let (pin, times) = (digest(input)?, input.u8()?);
            asked.push(AskedOnce { path, seat, pin, times, deadline: optional(input, |input| input.u64())? });
        }
        Ok(Self { entries, asked, state_only })
    }
}

/// What an entry begins with.
mod tag {
    pub(super) const ANSWER: u8 = 0;
    pub(super) const STEP_DONE: u8 = 1;
    pub(super) const STEP_FAILED: u8 = 2;
    pub(super) const STEP_ABANDONED: u8 = 3;
    pub(super) const RACE: u8 = 4;
    pub(super) const PASSED: u8 = 5;
    pub(super) const NOTE: u8 = 6;
}

impl Entry {
    fn encode(&self, out: &mut Encoder<Vec<u8>>) -> Result<(), encode::Error<Infallible>> {
        let (tag, members) = match &self.body {
            Body::Answer { .. } => (tag::ANSWER, 4),
            Body::Step { outcome: StepOutcome::Done(_), .. } => (tag::STEP_DONE, 3),
            Body::Step { outcome: StepOutcome::Failed(_), .. } => (tag::STEP_FAILED, 6),
            Body::Step { outcome: StepOutcome::Abandoned, .. } => (tag::STEP_ABANDONED, 2),
            Body::Race { .. } => (tag::RACE, 1),
            Body::Passed => (tag::PASSED, 0),
            Body::Note { .. } => (tag::NOTE, 1),
        };
        out.array(3 + members)?.u8(tag)?.str(&self.path)?.str(&self.seat)?;
        match &self.body {
            Body::Answer { pin, times, used, text } => {
                out.bytes(&pin.to_bytes())?.u8(*times)?.bool(*used)?;
                maybe(out, text.as_deref())?;
            }
            Body::Step { input, stale, outcome } => {
                match input {
                    Some(input) => out.bytes(&input.to_bytes())?,
                    None => out.null()?,
                };
                out.bool(*stale)?;
                match outcome {
                    StepOutcome::Done(text) => {
                        out.str(text)?;
                    }
                    StepOutcome::Failed(failure) => {
                        out.str(&failure.message)?;
                        maybe(out, failure.code.as_deref())?;
                        maybe(out, failure.data.as_deref())?;
                        out.bool(failure.told)?;
                    }
                    StepOutcome::Abandoned => {}
                }
            }
            Body::Race { winner } => {
                out.u8(*winner)?;
            }
            Body::Passed => {}
            Body::Note { text } => {
                out.str(text)?;
            }
        }
        Ok(())
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, decode::Error> {
        let members = input.array()?;
        let tag = input.u8()?;
        let (path, seat) = (input.str()?.into(), input.str()?.into());
        let (body, expected) = match tag {
            tag::ANSWER => {
                let (pin, times, used) = (digest(input)?, input.u8()?, input.bool()?);
                (Body::Answer { pin, times, used, text: text(input)? }, 4)
            }
            tag::STEP_DONE => {
                let (pinned, stale) = (optional(input, digest)?, input.bool()?);
                let outcome = StepOutcome::Done(input.str()?.to_owned());
                (Body::Step { input: pinned, stale, outcome }, 3)
            }
            tag::STEP_FAILED => {
                let (pinned, stale) = (optional(input, digest)?, input.bool()?);
                let message = input.str()?.to_owned();
                let (code, data) = (text(input)?, text(input)?);
                let failure = StepFailure { message, code, data, told: input.bool()? };
                (Body::Step { input: pinned, stale, outcome: StepOutcome::Failed(failure) }, 6)
            }
            tag::STEP_ABANDONED => {
                let (pinned, stale) = (optional(input, digest)?, input.bool()?);
                (Body::Step { input: pinned, stale, outcome: StepOutcome::Abandoned }, 2)
            }
            tag::RACE => (Body::Race { winner: input.u8()? }, 1),
            tag::PASSED => (Body::Passed, 0),
            tag::NOTE => (Body::Note { text: input.str()?.to_owned() }, 1),
            _ => return Err(decode::Error::message("an entry of an unknown kind")),
        };
        expect(members == Some(3 + expected))?;
        Ok(Self { path, seat, body })
    }
}

pub(super) fn expect(holds: bool) -> Result<(), decode::Error> {
    if holds { Ok(()) } else { Err(decode::Error::message("not a payload of this format")) }
}

pub(super) fn counted(input: &mut Decoder<'_>) -> Result<u64, decode::Error> {
    input.array()?.ok_or_else(|| decode::Error::message("an open-ended list"))
}

pub(super) fn maybe(out: &mut Encoder<Vec<u8>>, text: Option<&str>) -> Result<(), encode::Error<Infallible>> {
    match text {
        Some(text) => out.str(text)?,
        None => out.null()?,
    };
    Ok(())
}

pub(super) fn text(input: &mut Decoder<'_>) -> Result<Option<String>, decode::Error> {
    optional(input, |input| input.str().map(str::to_owned))
}

fn digest(input: &mut Decoder<'_>) -> Result<Digest, decode::Error> {
    let bytes: [u8; 16] =
        input.bytes()?.try_into().map_err(|_| decode::Error::message("a digest has 16 bytes"))?;
    Ok(Digest::from_bytes(bytes))
}

fn optional<'b, T>(
    input: &mut Decoder<'b>,
    read: impl FnOnce(&mut Decoder<'b>) -> Result<T, decode::Error>,
) -> Result<Option<T>, decode::Error> {
    if input.datatype()? == Type::Null {
        input.null()?;
        return Ok(None);
    }
    read(input).map(Some)
}

#[cfg(test)]
mod tests;
