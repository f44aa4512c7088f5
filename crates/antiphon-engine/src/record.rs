//! The record of one call: what was answered and done, in the order in which the handler learned of it.
//!
//! The record travels between legs. It holds no question but those that were returned by hand: an entry has the digest of
//! the question it answers.

mod codec;
mod migrate;

pub use codec::RecordError;
pub use migrate::{Collision, Migration};
use std::sync::Arc;

use crate::answer::Response;
use antiphon_seal::Digest;
use antiphon_wire::AskSupport;

/// The estimated size of an entry besides its texts, in bytes.
const ENTRY_OVERHEAD: usize = 32;

/// The kinds of what has a key. Each kind has keys of its own: a step and a question may share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A question.
    Ask,
    /// A step.
    Step,
    /// A `select`.
    Select,
    /// A checkpoint.
    Checkpoint,
}

/// One thing that a handler has learned.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Scopes and key.
    pub(crate) path: Arc<str>,
    /// The round in which it was asked or begun. What was asked later was asked of people who knew of it.
    pub(crate) round: u32,
    pub(crate) body: EntryBody,
}

#[derive(Clone, Debug)]
pub(crate) enum EntryBody {
    Answer {
        /// Of the question it answers.
        digest: Digest,
        /// How often that was asked until then.
        times: u8,
        /// As checked JSON; `None` if the time for it was over.
        text: Option<String>,
        /// The person declined or went away.
        refusal: bool,
    },
    Step {
        /// Of its input, if that is pinned.
        input: Option<Digest>,
        /// An answer of an earlier round was dropped since.
        stale: bool,
        /// The leg was over when the step ended: the handler has not received the outcome yet, and may drop the step.
        undelivered: bool,
        outcome: StepOutcome,
    },
    Select {
        /// The branch that came first.
        winner: u8,
    },
    /// A checkpoint that ended a leg.
    Checkpoint,
}

/// The outcome of a step, the same on every leg.
#[derive(Clone, Debug, PartialEq)]
pub enum StepOutcome {
    /// Its value, as JSON.
    Done(String),
    /// Its error.
    Failed(StepFailure),
    /// The step was dropped while it ran, or ended in a branch that had lost: it does not run again and never resolves.
    Abandoned,
}

/// An error of a step as it is recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct StepFailure {
    /// The words.
    pub message: String,
    /// The author's code.
    pub code: Option<String>,
    /// The author's data, as JSON.
    pub data: Option<String>,
    /// True if the caller may read the message.
    pub user_facing: bool,
}

/// A question of the last round.
#[derive(Clone, Debug)]
pub struct AskRecord {
    pub(crate) path: Arc<str>,
    pub(crate) digest: Digest,
    /// How often it was asked, this time included; not counted again where the answer was only missing.
    pub(crate) times: u8,
    pub(crate) round: u32,
    /// The last second at which an answer counts, in Unix seconds.
    pub(crate) deadline: Option<u64>,
    /// The person has agreed before, to what has this digest, and what happens behind the URL was not finished.
    pub(crate) agreed: Option<Digest>,
    /// The question as JSON, if it was returned by hand: it is checked and asked again without its handler.
    pub(crate) question: Option<Arc<str>>,
    /// The checked answer to a question that was returned by hand, kept while others of its round are asked again.
    pub(crate) answer: Option<CheckedAnswer>,
    /// It did not leave with its round, for its leg had failed: why it was to be asked again, if it was.
    pub(crate) not_asked: Option<Box<str>>,
}

/// A checked answer, as it is recorded, and as it was read if that was in this leg.
#[derive(Clone, Debug)]
pub(crate) struct CheckedAnswer {
    pub(crate) text: String,
    pub(crate) response: Option<Response>,
}

impl From<String> for CheckedAnswer {
    fn from(text: String) -> Self {
        Self { text, response: None }
    }
}

/// An answer that has come and was not yet taken by an awaiting handler; or one to a question asked by hand, which is
/// checked.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedAnswer {
    /// The question.
    pub(crate) asked: AskRecord,
    /// As JSON; `None` if the time for it was over.
    pub(crate) text: Option<String>,
    /// The answer as it was read, if it was checked in this leg.
    pub(crate) response: Option<Response>,
}

/// Something that is read once and is the same on every later leg. It has no place in the order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Note {
    /// What the client said it can be asked.
    Asks(AskSupport),
    /// The reference in the URL of a question.
    UrlReference { path: Arc<str>, reference: UrlReference },
}

/// The reference in the URL of a question, as it is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlReference {
    /// When the question was first asked, in Unix seconds.
    pub first_asked: u64,
    /// When the reference was made, in Unix seconds.
    pub created: u64,
    /// The sealed text.
    pub text: Box<str>,
}

/// The state of a handler that asks by hand.
#[derive(Clone, Debug)]
pub(crate) struct HandlerState {
    /// The round in which the handler left it.
    pub(crate) round: u32,
    pub(crate) text: String,
}

/// The record of one call between two legs.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The handler's own state, if it asks by hand.
    pub(crate) state: Option<HandlerState>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) received: Vec<ReceivedAnswer>,
    pub(crate) asked: Vec<AskRecord>,
    pub(crate) notes: Vec<Note>,
    pub(crate) round: u32,
    /// Legs that ended with state only.
    pub(crate) state_only: u8,
}

impl Entry {
    pub(crate) fn kind(&self) -> EntryKind {
        match self.body {
            EntryBody::Answer { .. } => EntryKind::Ask,
            EntryBody::Step { .. } => EntryKind::Step,
            EntryBody::Select { .. } => EntryKind::Select,
            EntryBody::Checkpoint => EntryKind::Checkpoint,
        }
    }

    /// The estimated size in bytes.
    pub(crate) fn size(&self) -> usize {
        let body = match &self.body {
            EntryBody::Answer { text, .. } => 16 + text.as_ref().map_or(0, String::len),
            EntryBody::Step { input, outcome, .. } => {
                let input = if input.is_some() { 16 } else { 0 };
                input
                    + match outcome {
                        StepOutcome::Done(text) => text.len(),
                        StepOutcome::Failed(failure) => failure.size(),
                        StepOutcome::Abandoned => 0,
                    }
            }
            EntryBody::Select { .. } | EntryBody::Checkpoint => 0,
        };
        ENTRY_OVERHEAD + self.path.len() + body
    }
}

impl AskRecord {
    /// The estimated size in bytes.
    pub(crate) fn size(&self) -> usize {
        let texts = self.question.as_ref().map_or(0, |text| text.len())
            + self.not_asked.as_ref().map_or(0, |text| text.len())
            + self.answer.as_ref().map_or(0, |answer| answer.text.len());
        let agreed = if self.agreed.is_some() { 16 } else { 0 };
        ENTRY_OVERHEAD + 16 + self.path.len() + agreed + texts
    }

    /// The deadline for its answer, in Unix seconds.
    pub fn deadline(&self) -> Option<u64> {
        self.deadline
    }

    /// Scopes and key.
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl ReceivedAnswer {
    pub(crate) fn size(&self) -> usize {
        self.asked.size() + self.text.as_ref().map_or(0, String::len)
    }
}

impl Note {
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Asks(_) => ENTRY_OVERHEAD,
            Self::UrlReference { path, reference } => ENTRY_OVERHEAD + path.len() + reference.text.len(),
        }
    }
}

impl StepFailure {
    /// The size of its texts, in bytes.
    pub fn size(&self) -> usize {
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        self.message.len() + text(&self.code) + text(&self.data)
    }
}

impl Record {
    /// The record of the same call without what it came to. Legs that ended with state only stay counted, for its client
    /// counts them.
    #[must_use]
    pub fn without_history(&self) -> Self {
        Self { state_only: self.state_only, round: self.round, ..Self::default() }
    }

    /// The estimated size in bytes.
    pub fn size(&self) -> usize {
        self.sizes().map(|(_, size)| size).sum::<usize>() + self.state_size()
    }

    /// The three largest parts by path and size: for the log.
    pub fn largest_parts(&self) -> Vec<(&str, usize)> {
        let mut sizes: Vec<(&str, usize)> = self.sizes().collect();
        sizes.push(("(the handler's state)", self.state_size()));
        sizes.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
        sizes.truncate(3);
        sizes
    }

    fn state_size(&self) -> usize {
        self.state.as_ref().map_or(0, |state| state.text.len())
    }

    fn sizes(&self) -> impl Iterator<Item = (&str, usize)> {
        let entries = self.entries.iter().map(|entry| (&*entry.path, entry.size()));
        let received = self.received.iter().map(|received| (&*received.asked.path, received.size()));
        let asked = self.asked.iter().map(|asked| (&*asked.path, asked.size()));
        let notes = self.notes.iter().map(|note| ("(notes)", note.size()));
        entries.chain(received).chain(asked).chain(notes)
    }

    /// The questions of the last round.
    pub fn asked(&self) -> &[AskRecord] {
        &self.asked
    }

    /// The questions that are asked now, and were answered before or asked in other words.
    pub fn changed_asks<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = &'a str> {
        let changed = |now: &&AskRecord| {
            let is_answer = |entry: &Entry| entry.kind() == EntryKind::Ask && entry.path == now.path;
            let was_other = |was: &AskRecord| was.path == now.path && !was.digest.matches(&now.digest);
            before.entries.iter().any(is_answer) || before.asked.iter().any(was_other)
        };
        self.asked.iter().filter(changed).map(|asked| &*asked.path)
    }

    /// Returns whether a `select` was decided here that was not before.
    pub fn has_new_selects_since(&self, before: &Self) -> bool {
        let is_new = |entry: &&Entry| before.entries.iter().all(|known| known.path != entry.path);
        self.entries.iter().filter(|entry| entry.kind() == EntryKind::Select).any(|entry| is_new(&entry))
    }
}
