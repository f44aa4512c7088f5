//! The return values of handlers, and their conversion to outcomes.

use crate::{
    call::ask::{InputRequired, Reply},
    errors::{ask_error::AskError, error::Error},
};
use antiphon_wire::{
    CallToolResult, ContentBlock, GetPromptResult, PromptMessage, ReadResourceResult, ResourceContents,
};
use schemars::JsonSchema as HasSchema;
use serde::Serialize;
use serde_json::Value;

/// The outcome of a handler; `T` is the result on the wire.
#[derive(Debug)]
#[non_exhaustive]
pub enum HandlerOutcome<T> {
    /// The final result.
    Complete(T),
    /// Questions or state: the handler is not finished.
    InputRequired(InputRequired),
    /// The handler failed, with a text for the caller.
    UserFacing(String),
    /// The handler ended with a refusal: a person declined a question, or did not answer. The text is for the caller.
    Refused(String),
    /// The handler failed. The text is for the log.
    Failed(String),
    /// The handler failed because of a limit. The text is for the caller.
    OverLimit {
        /// The name of the limit.
        name: &'static str,
        /// The text.
        text: String,
    },
    /// The resource does not exist.
    NotFound,
}

/// The outcome of a handler that asks nothing: as [`HandlerOutcome`], which has the meaning of each case.
#[derive(Debug)]
pub(crate) enum FinalOutcome<T> {
    Complete(T),
    UserFacing(String),
    Refused(String),
    Failed(String),
    OverLimit { name: &'static str, text: String },
    NotFound,
}

impl<T> HandlerOutcome<T> {
    /// Returns the final outcome, or else the questions of a handler that is not finished.
    pub(crate) fn into_final(self) -> Result<FinalOutcome<T>, InputRequired> {
        Ok(match self {
            Self::Complete(result) => FinalOutcome::Complete(result),
            Self::InputRequired(required) => return Err(required),
            Self::UserFacing(text) => FinalOutcome::UserFacing(text),
            Self::Refused(text) => FinalOutcome::Refused(text),
            Self::Failed(cause) => FinalOutcome::Failed(cause),
            Self::OverLimit { name, text } => FinalOutcome::OverLimit { name, text },
            Self::NotFound => FinalOutcome::NotFound,
        })
    }
}

/// A return type of a handler that becomes a `T` on the wire.
///
/// For tools (`T = CallToolResult`): `String`, `&str`, `()`, [`Json`], content blocks, `CallToolResult`. For prompts
/// (`GetPromptResult`): `String` (one message of the user), a list of messages, `GetPromptResult`. For resources
/// (`ReadResourceResult`): `ResourceContents`, a list of them, `ReadResourceResult`. Around each: [`Reply`], which may
/// also ask, and `Result` with any error that converts to [`Error`].
#[diagnostic::on_unimplemented(
    message = "a handler cannot return `{Self}` here",
    note = "a tool returns String, Json<T>, Vec<ContentBlock> or CallToolResult; a prompt String, Vec<PromptMessage> or GetPromptResult; a resource ResourceContents, Vec<ResourceContents> or ReadResourceResult",
    note = "each may stand inside Reply<..> (to ask) and Result<.., E> (to fail)"
)]
pub trait IntoOutcome<T> {
    /// Returns the outcome.
    fn into_outcome(self) -> HandlerOutcome<T>;

    /// Returns the JSON Schema of the structured result, if the type has one: a tool from a function marked `#[tool]`
    /// declares it as its output schema. Default: none.
    fn output_schema() -> Option<Value> {
        None
    }
}

/// Returns the schema of a serialized `T`, always an object.
pub(crate) fn schema_of_result<T: HasSchema>() -> Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    // The name of a Rust type is not a useful title.
    schema.remove("title");
    // The schema of an unrestricted type is `true`; it must be an object.
    schema.ensure_object();
    schema.to_value()
}

/// A structured result: `structuredContent`, and the same JSON as text for clients that do not read it.
#[derive(Clone, Copy, Debug)]
pub struct Json<T>(pub T);

impl<T, R: IntoOutcome<T>> IntoOutcome<T> for Reply<R> {
    fn into_outcome(self) -> HandlerOutcome<T> {
        match self {
            Self::Complete(result) => result.into_outcome(),
            Self::InputRequired(required) => HandlerOutcome::InputRequired(required),
        }
    }

    fn output_schema() -> Option<Value> {
        R::output_schema()
    }
}

impl<T> IntoOutcome<T> for InputRequired {
    fn into_outcome(self) -> HandlerOutcome<T> {
        HandlerOutcome::InputRequired(self)
    }
}

/// An error that a handler may return: any type that converts to [`Error`].
#[diagnostic::on_unimplemented(
    message = "a handler cannot fail with `{Self}`",
    label = "it does not convert to `antiphon::Error`",
    note = "return `antiphon::Result<..>`: `?` takes every `std::error::Error` into it",
    note = "or implement `std::error::Error` for `{Self}` (its text is logged), or `From<{Self}> for antiphon::Error`"
)]
pub trait Failure: Into<Error> {}

#[diagnostic::do_not_recommend]
impl<E: Into<Error>> Failure for E {}

impl<T, R: IntoOutcome<T>, E: Failure> IntoOutcome<T> for Result<R, E> {
    fn into_outcome(self) -> HandlerOutcome<T> {
        let error: Error = match self {
            Ok(result) => return result.into_outcome(),
            Err(error) => error.into(),
        };
        if error.is_resource_not_found() {
            return HandlerOutcome::NotFound;
        }
        match (error.user_facing_text(), error.over_limit()) {
            (Some(text), _) if error.has_cause(|cause| cause.is::<AskError>()) => {
                HandlerOutcome::Refused(text.to_owned())
            }
            (Some(text), _) => HandlerOutcome::UserFacing(text.to_owned()),
            (None, Some((name, text))) => HandlerOutcome::OverLimit { name, text },
            (None, None) => HandlerOutcome::Failed(error.to_string()),
        }
    }

    fn output_schema() -> Option<Value> {
        R::output_schema()
    }
}

macro_rules! complete {
    ($result:ty: $($from:ty, $value:ident => $made:expr;)*) => { $(
        impl IntoOutcome<$result> for $from {
            fn into_outcome(self) -> HandlerOutcome<$result> {
                let $value = self;
                HandlerOutcome::Complete($made)
            }
        }
    )* };
}

complete! { CallToolResult:
    CallToolResult, result => result;
    String, text => CallToolResult::text(text);
    &'static str, text => CallToolResult::text(text);
    (), nothing => { let () = nothing; CallToolResult::new(Vec::new()) };
    ContentBlock, block => CallToolResult::new(vec![block]);
    Vec<ContentBlock>, blocks => CallToolResult::new(blocks);
}

complete! { GetPromptResult:
    GetPromptResult, result => result;
    String, text => GetPromptResult::new(vec![PromptMessage::user(text)]);
    Vec<PromptMessage>, messages => GetPromptResult::new(messages);
}

complete! { ReadResourceResult:
    ReadResourceResult, result => result;
    ResourceContents, contents => ReadResourceResult::new(vec![contents]);
    Vec<ResourceContents>, contents => ReadResourceResult::new(contents);
}

/// A type that can be a structured result.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a structured result",
    label = "not written as JSON, or without a schema",
    note = "derive `serde::Serialize` and `schemars::JsonSchema` for it"
)]
pub trait Structured: Serialize + HasSchema {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + HasSchema> Structured for T {}

impl<T: Structured> IntoOutcome<CallToolResult> for Json<T> {
    fn into_outcome(self) -> HandlerOutcome<CallToolResult> {
        match serde_json::to_value(&self.0) {
            Ok(value) => {
                let mut result = CallToolResult::text(value.to_string());
                result.structured_content = Some(value);
                HandlerOutcome::Complete(result)
            }
            Err(fault) => HandlerOutcome::Failed(format!("the result cannot be written as JSON: {fault}")),
        }
    }

    fn output_schema() -> Option<Value> {
        let schema = schema_of_result::<T>();
        // The schema of an unrestricted type has no content to declare.
        let tells = |keyword: &String| keyword != "$schema";
        schema.as_object().is_some_and(|members| members.keys().any(tells)).then_some(schema)
    }
}
