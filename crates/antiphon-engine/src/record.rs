//! The record of one call: its answers and steps, in the order in which the handler received them.
//!
//! The record travels between legs. An entry holds the digest of its question. Only questions asked by hand are stored
//! in full.

mod codec;
mod continued;
mod migrate;
mod stored;

pub use codec::RecordError;
pub(crate) use continued::Continuation;
pub use migrate::{Collision, Migration};
use std::sync::Arc;
pub(crate) use stored::{Delivered, StepStart, Unwritten, Written, write};
pub use stored::{StoredLeg, WriteAhead};

use crate::limits::InputResponse;
use antiphon_seal::Digest;
use antiphon_wire::AskSupport;

/// The estimated size of an entry without its texts, in bytes.
const ENTRY_OVERHEAD: usize = 32;

/// The kinds of entries. Each kind has keys of its own: a step and a question may use the same key.
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

/// One outcome that a handler has received.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The scopes and the key.
    pub(crate) path: Arc<str>,
    /// The round in which the question was asked or the step began. People who answered in later rounds knew of it.
    pub(crate) round: u32,
    pub(crate) body: EntryBody,
}

#[derive(Clone, Debug)]
pub(crate) enum EntryBody {
    Answer {
        /// The digest of the question.
        digest: Digest,
        /// The number of times that the question was asked.
        times: u8,
        /// The valid answer as JSON, or `None` if the person's time was over.
        text: Option<String>,
        /// True if the person declined or cancelled.
        refusal: bool,
        /// The time at which the answer came, in Unix seconds. An earlier release did not record it.
        at: Option<u64>,
        /// The round in which the question was first open with its text.
        first: u32,
    },
    Step {
        /// The digest of the input, if the input is part of the step.
        input: Option<Digest>,
        /// True if an answer of an earlier round was removed.
        stale: bool,
        /// The selects around the step, if its leg was over when it ended. The handler has not received the outcome, and may drop
        /// the step.
        undelivered: Option<Within>,
        outcome: StepOutcome,
    },
    /// A step that has begun and has no outcome, because its process died.
    Open(Box<OpenStep>),
    Select {
        /// The branch that ended first.
        winner: u8,
    },
    /// A checkpoint that ended a leg.
    Checkpoint,
}

/// The branches of `select`s around a step, from the outside in: the path of each select, and the number of the branch.
pub(crate) type Within = Box<[(Arc<str>, u8)]>;

/// A step that has begun and has no outcome.
#[derive(Clone, Debug)]
pub(crate) struct OpenStep {
    /// The number of the last attempt that began.
    pub(crate) attempt: u32,
    /// The digest of the input, if the input is part of the step.
    pub(crate) input: Option<Digest>,
    /// The path of which the idempotency key is derived: that of the first attempt, before any rename.
    pub(crate) key_path: Arc<str>,
    pub(crate) within: Within,
}

/// The outcome of a step. It is the same on every leg.
#[derive(Clone, Debug, PartialEq)]
pub enum StepOutcome {
    /// The value, as JSON.
    Done(Arc<str>),
    /// The error.
    Failed(StepFailure),
    /// The step was dropped while it ran, or ended in an abandoned branch. It does not run again and never resolves.
    Abandoned {
        /// True if it ended with a result: it has had its effect.
        is_done: bool,
    },
}

impl StepOutcome {
    /// Returns `true` if the step ended with a result, whether its handler receives it or not.
    fn is_done(&self) -> bool {
        matches!(self, Self::Done(_) | Self::Abandoned { is_done: true })
    }

    /// Returns the outcome of the same step in an abandoned branch.
    pub(crate) fn abandoned(&self) -> Self {
        Self::Abandoned { is_done: self.is_done() }
    }
}

impl EntryBody {
    /// Returns `true` for a step that ended with a result.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self, Self::Step { outcome, .. } if outcome.is_done())
    }
}

/// The recorded error of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepFailure {
    /// The message.
    pub message: String,
    /// The author's code.
    pub code: Option<String>,
    /// The author's data, as JSON.
    pub data: Option<String>,
    /// True if the caller may read the message.
    pub user_facing: bool,
}

/// The code of a step that did not run, because the task was cancelled.
pub const CANCELLED: &str = "cancelled";
/// The text of such a step.
const REFUSED: &str = "the task was cancelled before this step";

impl StepFailure {
    /// Returns the failure of a step that does not run, because the task was cancelled.
    pub(crate) fn cancellation() -> Self {
        let (message, code) = (REFUSED.to_owned(), Some(CANCELLED.to_owned()));
        Self { message, code, data: None, user_facing: true }
    }

    pub(crate) fn is_cancellation(&self) -> bool {
        *self == Self::cancellation()
    }
}

/// A question of the last round.
#[derive(Clone, Debug)]
pub struct AskRecord {
    pub(crate) path: Arc<str>,
    pub(crate) digest: Digest,
    /// The number of times that the question was asked, with this one. An answer that is missing beside others of its
    /// round does not count.
    pub(crate) times: u8,
    pub(crate) round: u32,
    /// The round in which the question was first open with this text. It was open from then until `round`.
    pub(crate) first: u32,
    /// The last second at which an answer counts, in Unix seconds.
    pub(crate) deadline: Option<u64>,
    /// The digest of the purpose that the person has agreed to, if the action behind the URL is not finished.
    pub(crate) agreed: Option<Digest>,
    /// The question as JSON, if it was asked by hand. It is validated and asked again without its handler.
    pub(crate) question: Option<Arc<str>>,
    /// The valid answer to a question asked by hand, kept while other questions of its round are asked again.
    pub(crate) answer: Option<CheckedAnswer>,
    /// The reason to ask again, if the question did not leave because its leg failed. Empty if it was not asked before.
    pub(crate) not_asked: Option<Box<str>>,
    /// The selects around the question. Nobody needs its answer if another branch has won one of them.
    pub(crate) within: Within,
}

/// A valid answer: its recorded text, and the decoded value if the answer came in this leg.
#[derive(Clone, Debug)]
pub(crate) struct CheckedAnswer {
    pub(crate) text: String,
    pub(crate) response: Option<InputResponse>,
}

impl From<String> for CheckedAnswer {
    fn from(text: String) -> Self {
        Self { text, response: None }
    }
}

/// An answer that no awaited question has taken yet, or the valid answer to a question asked by hand.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedAnswer {
    /// The record of the question.
    pub(crate) asked: AskRecord,
    /// The answer as JSON, or `None` if the person's time was over.
    pub(crate) text: Option<String>,
    /// The decoded answer, if it was validated in this leg.
    pub(crate) response: Option<InputResponse>,
    /// The time at which the answer came, in Unix seconds.
    pub(crate) at: Option<u64>,
}

/// A value that is read once and is the same on every later leg. It has no position in the order of delivery.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Note {
    /// The kinds of questions that the client declared.
    Asks(AskSupport),
    /// The reference in the URL of a question.
    UrlReference { path: Arc<str>, reference: UrlReference },
}

/// The recorded reference in the URL of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlReference {
    /// The time at which the question was first asked, in Unix seconds.
    pub first_asked: u64,
    /// The time at which the reference was created, in Unix seconds.
    pub created: u64,
    /// The sealed text.
    pub text: Box<str>,
}

/// The state of a handler that asks by hand.
#[derive(Clone, Debug)]
pub(crate) struct HandlerState {
    /// The round in which the handler returned the state.
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
    /// The number of legs that ended with state only.
    pub(crate) state_only_count: u8,
    /// The entries of earlier runs of the next leg, from the store. They are not encoded.
    pub(crate) stored: Option<Box<Continuation>>,
    /// The questions that the client was asked, if a migration has removed some of them. They are not encoded.
    pub(crate) asked_before: Option<Box<[Arc<str>]>>,
}

impl Entry {
    pub(crate) fn kind(&self) -> EntryKind {
        match self.body {
            EntryBody::Answer { .. } => EntryKind::Ask,
            EntryBody::Step { .. } | EntryBody::Open(_) => EntryKind::Step,
            EntryBody::Select { .. } => EntryKind::Select,
            EntryBody::Checkpoint => EntryKind::Checkpoint,
        }
    }

    /// Returns the estimated size in bytes.
    pub(crate) fn size(&self) -> usize {
        let body = match &self.body {
            EntryBody::Answer { text, .. } => 16 + text.as_ref().map_or(0, String::len),
            EntryBody::Step { input, outcome, undelivered, .. } => {
                let input = if input.is_some() { 16 } else { 0 };
                input
                    + undelivered.as_ref().map_or(0, size_of_within)
                    + match outcome {
                        StepOutcome::Done(text) => text.len(),
                        StepOutcome::Failed(failure) => failure.size(),
                        StepOutcome::Abandoned { .. } => 0,
                    }
            }
            EntryBody::Open(open) => 16 + open.key_path.len() + size_of_within(&open.within),
            EntryBody::Select { .. } | EntryBody::Checkpoint => 0,
        };
        ENTRY_OVERHEAD + self.path.len() + body
    }
}

impl AskRecord {
    /// Returns the record of a question that is asked for the first time, without a deadline.
    pub(crate) fn new(path: Arc<str>, digest: Digest, round: u32) -> Self {
        Self {
            path,
            digest,
            times: 1,
            round,
            first: round,
            deadline: None,
            agreed: None,
            question: None,
            answer: None,
            not_asked: None,
            within: Within::default(),
        }
    }

    /// Returns the estimated size in bytes.
    pub(crate) fn size(&self) -> usize {
        let texts = self.question.as_ref().map_or(0, |text| text.len())
            + self.not_asked.as_ref().map_or(0, |text| text.len())
            + self.answer.as_ref().map_or(0, |answer| answer.text.len());
        let agreed = if self.agreed.is_some() { 16 } else { 0 };
        ENTRY_OVERHEAD + 16 + self.path.len() + agreed + texts + size_of_within(&self.within)
    }

    /// Returns `true` if the question was open in this round.
    pub(crate) fn was_open_in(&self, round: u32) -> bool {
        (self.first..=self.round).contains(&round)
    }

    /// Returns the last second at which an answer counts, in Unix seconds.
    pub fn deadline(&self) -> Option<u64> {
        self.deadline
    }

    /// Returns the scopes and the key.
    pub fn path(&self) -> &str {
        &self.path
    }
}

fn size_of_within(within: &Within) -> usize {
    within.iter().map(|(path, _)| path.len() + 4).sum()
}

impl ReceivedAnswer {
    pub(crate) fn size(&self) -> usize {
        9 + self.asked.size() + self.text.as_ref().map_or(0, String::len)
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
    /// Returns the size of all texts, in bytes.
    pub fn size(&self) -> usize {
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        self.message.len() + text(&self.code) + text(&self.data)
    }
}

impl Record {
    /// Returns the record of the same call without its entries. The number of legs with state only stays, because the
    /// client counts them too.
    #[must_use]
    pub fn without_history(&self) -> Self {
        let asked_before = Some(self.asked_paths().cloned().collect());
        Self { state_only_count: self.state_only_count, round: self.round, asked_before, ..Self::default() }
    }

    /// Returns the paths of the questions that the client was asked in the last round, in their order, also of those that a
    /// migration has removed.
    pub fn asked_paths(&self) -> impl Iterator<Item = &Arc<str>> {
        let (before, now) = match &self.asked_before {
            Some(before) => (&before[..], &[][..]),
            None => (&[][..], &self.asked[..]),
        };
        before.iter().chain(now.iter().map(|asked| &asked.path))
    }

    /// Returns the paths of the valid steps that have a result.
    pub fn steps_done(&self) -> Vec<String> {
        let done = self.entries.iter().filter(|entry| entry.body.is_done());
        done.map(|entry| entry.path.to_string()).collect()
    }

    /// Returns `true` if a step of the record has begun and has no outcome.
    pub fn has_open_steps(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry.body, EntryBody::Open(_)))
    }

    /// Returns the estimated size in bytes.
    pub fn size(&self) -> usize {
        self.sizes().map(|(_, size)| size).sum::<usize>() + self.state_size()
    }

    /// Returns the three largest parts, by path and size in bytes, for the log.
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

    /// Returns the questions of the last round.
    pub fn asked(&self) -> &[AskRecord] {
        &self.asked
    }

    /// Returns the present questions that were answered before or had another text.
    pub fn changed_asks<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = &'a str> {
        let changed = |now: &&AskRecord| {
            let is_answer = |entry: &Entry| entry.kind() == EntryKind::Ask && entry.path == now.path;
            let was_other = |was: &AskRecord| was.path == now.path && !was.digest.matches(&now.digest);
            before.entries.iter().any(is_answer) || before.asked.iter().any(was_other)
        };
        self.asked.iter().filter(changed).map(|asked| &*asked.path)
    }

    /// Returns `true` if this record has a decided `select` that `before` has not.
    pub fn has_new_selects_since(&self, before: &Self) -> bool {
        let is_new = |entry: &&Entry| before.entries.iter().all(|known| known.path != entry.path);
        self.entries.iter().filter(|entry| entry.kind() == EntryKind::Select).any(|entry| is_new(&entry))
    }
}
