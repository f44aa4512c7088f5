//! The result of one leg.

use crate::call::DriveResult;
use antiphon_store::TaskKey;
use antiphon_wire::InputRequiredResult;
use futures_util::future::BoxFuture;

/// The result of a leg.
pub(crate) enum LegResult<T> {
    /// The call is over.
    Over(CallEnd<T>),
    /// A round, or state only.
    InputRequired(InputRequiredResult),
    /// The call becomes the task with this key; the round holds its state.
    Promoted(TaskKey, InputRequiredResult),
}

/// The end of a call.
pub(crate) enum CallEnd<T> {
    Complete(T),
    /// The arguments do not decode.
    BadArguments(String),
    /// The handler failed; the text, if there is one, is for the caller.
    Failed(Option<String>),
    /// The resource does not exist.
    NotFound,
}

/// The future of a handler that is ready to run.
pub(crate) type HandlerFuture<T> = BoxFuture<'static, DriveResult<T>>;
