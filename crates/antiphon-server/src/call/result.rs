//! The input and the result of one leg.

use crate::{
    at_most_once::{ClaimedLeg, StoredReply},
    call::DriveResult,
    errors::refusal::Refusal,
};
use antiphon_engine::Record;
use antiphon_store::TaskKey;
use antiphon_wire::{CreateTaskResult, InputRequiredResult, InputResponses};
use futures_util::future::BoxFuture;
use std::sync::Arc;

/// The result of a leg.
pub(crate) enum LegResult<T> {
    Complete(T),
    InputRequired(InputRequiredResult),
    /// The call becomes the task with this key; the round holds its state.
    Promoted(TaskKey, InputRequiredResult),
    /// The call has become a task.
    Task(CreateTaskResult),
    /// The arguments do not decode.
    BadArguments(String),
    /// The handler failed; the text, if there is one, is for the caller.
    Failed(Option<String>),
    /// The resource does not exist.
    NotFound,
    /// The reply to an earlier delivery of the same request.
    Again(StoredReply),
}

/// The end of a leg, before its reply is written. If the leg was claimed, the reply is committed first.
pub(crate) struct LegReply<T> {
    pub(crate) result: Result<LegResult<T>, Refusal>,
    pub(crate) claim: Option<Arc<ClaimedLeg>>,
}

impl<T> LegReply<T> {
    /// Returns the reply with another result, made from a result that is not an error.
    pub(crate) fn map(self, change: impl FnOnce(LegResult<T>) -> Result<LegResult<T>, Refusal>) -> Self {
        Self { result: self.result.and_then(change), claim: self.claim }
    }
}

impl<T> From<LegResult<T>> for LegReply<T> {
    fn from(result: LegResult<T>) -> Self {
        Self { result: Ok(result), claim: None }
    }
}

/// The future of a handler that is ready to run.
pub(crate) type HandlerFuture<T> = BoxFuture<'static, DriveResult<T>>;

/// The input of a leg besides its request.
#[derive(Default)]
pub(crate) struct LegInput {
    /// The record of the leg before, if the request did not bring it in its state. Boxed, because only sessions have one.
    pub(crate) record: Option<Box<Record>>,
    pub(crate) responses: Option<InputResponses>,
}
