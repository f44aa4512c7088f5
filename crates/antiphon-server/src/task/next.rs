//! The decision about a task between two legs, and after one, from the messages in its queue. No I/O: the run reads and writes.

use crate::{
    runtime::Runtime,
    task::{
        run_leg::LegEnd,
        sealed::{Cancellation, open, seal},
        snapshot::{End, LegInput, Snapshot},
    },
    task_registry::leg::LegNews,
};
use antiphon_engine::check_answer;
use antiphon_seal::canonical;
use antiphon_store::{TaskKey, TaskRow};
use antiphon_wire::{InputRequest, UniqueNames};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::time::Duration;

/// The number of legs in a row that may fail for now.
const FAILURES: u32 = 5;
/// The number of times that a cancelled task may ask again. Each question is cancelled at once.
const ASKED_AFTER_CANCELLATION: u32 = 16;

/// The next action of a task.
#[derive(Debug)]
pub(super) enum Next {
    /// A leg runs, with this input.
    Leg(LegInput),
    /// The task waits for a message, and until this second at most.
    Wait(Option<u64>),
    /// The task is over.
    End(End),
}

/// The action after a leg.
#[derive(Debug)]
pub(super) enum After {
    /// The task goes on.
    Continue,
    /// The same leg runs again, after this time.
    Again(Duration),
    /// The task is over.
    End(End),
    /// The server is gone.
    Gone,
}

/// Takes answers, by key, into the input of the next leg. Returns true if one of them belongs to an open question.
pub(super) fn take_answers(snapshot: &mut Snapshot, input: &mut LegInput, answers: &[GivenAnswer]) -> bool {
    let before = input.answers.len();
    for GivenAnswer { key, text, is_valid } in answers {
        // > A server **SHOULD** ignore any `inputResponses` responses mapped to a key that is not currently outstanding
        if let Some(path) = snapshot.questions.answer(key, *is_valid) {
            input.answers.push((path, text.clone()));
        }
    }
    input.answers.len() > before
}

/// Decides what the task does, with the answers that were taken. `now` is in Unix seconds.
pub(super) fn next(snapshot: &mut Snapshot, mut input: LegInput, now: u64) -> Next {
    match snapshot.cancellation {
        Cancellation::None => {}
        Cancellation::Requested => {
            let cancelled = snapshot.questions.cancel();
            if !snapshot.questions.is_empty() {
                // A question to the client's model cannot be cancelled by an answer.
                return Next::End(End::Cancelled);
            }
            if cancelled.is_empty() && input.answers.is_empty() {
                input.refuses_step = true;
            } else if !cancelled.is_empty() {
                input.cancel(cancelled);
                snapshot.cancellation = Cancellation::Met { asked: 0 };
            }
            return Next::Leg(input);
        }
        Cancellation::Met { asked } => {
            let cancelled = snapshot.questions.cancel();
            if !snapshot.questions.is_empty() || asked >= ASKED_AFTER_CANCELLATION {
                return Next::End(End::Cancelled);
            }
            if !cancelled.is_empty() {
                input.cancel(cancelled);
                snapshot.cancellation = Cancellation::Met { asked: asked + 1 };
            }
        }
    }
    let is_late = snapshot.deadline.is_some_and(|deadline| now > deadline);
    if snapshot.runs || is_late || !input.answers.is_empty() {
        return Next::Leg(input);
    }
    Next::Wait(snapshot.deadline.map(|deadline| deadline + 1))
}

/// Takes the end of a leg into the snapshot. At most `asks` questions are open then.
pub(super) fn after(snapshot: &mut Snapshot, end: LegEnd, news: LegNews, asks: usize) -> After {
    if let Some(status) = news.status {
        snapshot.report(status);
    }
    let refused = snapshot.leg.as_ref().is_some_and(|leg| leg.refuses_step);
    if refused && !news.is_cancellation_unmet && !matches!(end, LegEnd::Again(_) | LegEnd::Gone) {
        snapshot.cancellation = Cancellation::Met { asked: 0 };
    }
    let is_cancelled = matches!(snapshot.cancellation, Cancellation::Met { .. });
    match end {
        LegEnd::Completed(_) | LegEnd::Failed(_) if is_cancelled => After::End(End::Cancelled),
        LegEnd::Completed(result) => After::End(End::Completed(result)),
        LegEnd::Failed(error) => After::End(End::Failed(error)),
        LegEnd::Round(requests, state) => {
            let is_unmet = refused && !is_cancelled;
            // The handler waits too long for something that is not recorded: it is gone, and its guards have run.
            if is_unmet && requests.is_empty() && news.is_grace_over {
                return After::End(End::Cancelled);
            }
            (snapshot.state, snapshot.leg, snapshot.failures) = (state, None, 0);
            snapshot.runs = requests.is_empty();
            snapshot.questions.replace(requests.iter(), &news.kept, &news.elicitation_ids, asks);
            snapshot.deadline = news.deadline;
            After::Continue
        }
        LegEnd::Again(time) => After::Again(time),
        LegEnd::FailedForNow(error) => {
            snapshot.failures += 1;
            if snapshot.failures >= FAILURES {
                return After::End(if is_cancelled { End::Cancelled } else { End::Failed(error) });
            }
            After::Again(Duration::from_secs(1 << (snapshot.failures - 1)))
        }
        LegEnd::Gone => After::Gone,
    }
}

/// A message to a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Message {
    Answers(Vec<GivenAnswer>),
    Cancel,
}

/// An answer to an open question.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct GivenAnswer {
    /// The key of the question on the wire.
    pub(super) key: String,
    pub(super) text: Box<RawValue>,
    /// False if the answer does not fit its question: the next leg asks again, and the question stays open until then.
    pub(super) is_valid: bool,
}

impl GivenAnswer {
    /// Checks an answer as the leg will.
    pub(super) fn new(server: &Runtime, key: &str, question: &InputRequest, answer: &RawValue) -> Self {
        // An answer that names a member twice would end the task: it counts as one that cannot be read.
        let is_unique = UniqueNames::from_walk(answer.get(), canonical::check).is_ok();
        let text = if is_unique { answer } else { RawValue::NULL };
        let is_valid = check_answer(question, text.get(), &server.engine_limits()).is_ok();
        Self { key: key.to_owned(), text: text.to_owned(), is_valid }
    }
}

impl Message {
    pub(super) fn seal(&self, server: &Runtime, key: TaskKey) -> Option<Vec<u8>> {
        seal(server, key, "message", self)
    }

    pub(super) fn open(server: &Runtime, key: TaskKey, sealed: &[u8]) -> Option<Self> {
        open(server, key, "message", sealed)
    }
}

/// Returns true if a cancellation waits in the queue.
pub(super) fn has_cancel(server: &Runtime, key: TaskKey, row: &TaskRow) -> bool {
    row.messages
        .iter()
        .any(|message| matches!(Message::open(server, key, &message.body), Some(Message::Cancel)))
}
