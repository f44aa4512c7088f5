//! The input and the result of one leg.

use crate::call::DriveResult;
use antiphon_engine::Record;
use antiphon_wire::{InputRequiredResult, InputResponses};
use futures_util::future::BoxFuture;

/// The result of a leg.
pub(crate) enum LegResult<T> {
    Complete(T),
    InputRequired(InputRequiredResult),
    /// The arguments do not decode.
    BadArguments(String),
    /// The handler failed; the text, if there is one, is for the caller.
    Failed(Option<String>),
    /// The resource does not exist.
    NotFound,
}

/// The future of a handler that is ready to run.
pub(crate) type HandlerFuture<T> = BoxFuture<'static, DriveResult<T>>;

/// The input of a leg besides its request.
#[derive(Default)]
pub(crate) struct LegInput {
    /// `None` on a first leg.
    pub(crate) record: Option<Record>,
    pub(crate) responses: Option<InputResponses>,
}
