//! The outcomes of legs and calls.

use crate::call::{
    definition::CallKind,
    pending::PendingCall,
    task_handle::{TaskForm, TaskHandle},
};
use antiphon_wire::{
    CallToolResult, CreateTaskResult, GetPromptResult, InputRequiredResult, Outcome, OutcomeFault,
    ReadResourceResult,
};
use serde::{Serialize, Serializer, de::DeserializeOwned};
use serde_json::value::RawValue;

/// The progress of a call that is driven by hand: a result, a question or a task.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum CallProgress {
    /// The final result.
    Done(Finished),
    /// The server asks something: answer it, and resume.
    Pending(PendingCall),
    /// The server made a task of the call, which continues without its request: [`Client::task`](crate::Client::task).
    Task(TaskHandle),
}

impl CallProgress {
    /// The pending call, if it is one.
    pub fn pending(self) -> Option<PendingCall> {
        match self {
            Self::Pending(pending) => Some(pending),
            _ => None,
        }
    }

    /// The final result, if it is one.
    pub fn done(self) -> Option<Finished> {
        match self {
            Self::Done(finished) => Some(finished),
            _ => None,
        }
    }

    /// The handle of the task, if the call became one.
    pub fn task(self) -> Option<TaskHandle> {
        match self {
            Self::Task(handle) => Some(handle),
            _ => None,
        }
    }
}

/// The final result of a call, by what was called. It is serialized as the result alone.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Finished {
    /// The result of `tools/call`.
    Tool(CallToolResult),
    /// The result of `prompts/get`.
    Prompt(GetPromptResult),
    /// The result of `resources/read`.
    Resource(ReadResourceResult),
}

impl Finished {
    /// The result, if a tool was called.
    pub fn into_tool(self) -> Option<CallToolResult> {
        match self {
            Self::Tool(result) => Some(result),
            _ => None,
        }
    }

    /// The result, if a prompt was asked for.
    pub fn into_prompt(self) -> Option<GetPromptResult> {
        match self {
            Self::Prompt(result) => Some(result),
            _ => None,
        }
    }

    /// The result, if a resource was read.
    pub fn into_resource(self) -> Option<ReadResourceResult> {
        match self {
            Self::Resource(result) => Some(result),
            _ => None,
        }
    }
}

impl Serialize for Finished {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Tool(result) => result.serialize(serializer),
            Self::Prompt(result) => result.serialize(serializer),
            Self::Resource(result) => result.serialize(serializer),
        }
    }
}

/// The outcome of one leg.
pub(crate) enum Leg<T> {
    /// The final result.
    Complete(T),
    /// Asks, state, or both.
    InputRequired(InputRequiredResult),
    /// The call became a task of this form.
    Task(CreateTaskResult, TaskForm),
}

impl<T: DeserializeOwned> Leg<T> {
    fn read(result: &RawValue) -> Result<Self, OutcomeFault> {
        Self::of(Outcome::read(result)?)
    }
}

impl<T> Leg<T> {
    fn of(outcome: Outcome<T>) -> Result<Self, OutcomeFault> {
        match outcome {
            Outcome::Complete(result) => Ok(Self::Complete(result)),
            Outcome::InputRequired(result) => Ok(Self::InputRequired(result)),
            Outcome::Task(created) => Ok(Self::Task(created, TaskForm::Extension)),
            // > A `resultType` of any value unrecognized by the client **MUST** be considered invalid.
            _ => Err(OutcomeFault::UnknownResultType("one of a newer version".into())),
        }
    }

    fn map<U>(self, name: impl FnOnce(T) -> U) -> Leg<U> {
        match self {
            Self::Complete(result) => Leg::Complete(name(result)),
            Self::InputRequired(result) => Leg::InputRequired(result),
            Self::Task(created, form) => Leg::Task(created, form),
        }
    }
}

/// A final result that is read by the kind of the call.
pub(crate) trait Final: Sized + Send {
    fn read(called: CallKind, result: &RawValue) -> Result<Leg<Self>, OutcomeFault>;

    /// The result, if a tool was called.
    fn of_tool(&self) -> Option<&CallToolResult> {
        None
    }
}

impl Final for CallToolResult {
    fn read(_: CallKind, result: &RawValue) -> Result<Leg<Self>, OutcomeFault> {
        Leg::of(Outcome::read_tool(result)?)
    }

    fn of_tool(&self) -> Option<&CallToolResult> {
        Some(self)
    }
}

impl Final for GetPromptResult {
    fn read(_: CallKind, result: &RawValue) -> Result<Leg<Self>, OutcomeFault> {
        Leg::read(result)
    }
}

impl Final for ReadResourceResult {
    fn read(_: CallKind, result: &RawValue) -> Result<Leg<Self>, OutcomeFault> {
        Leg::read(result)
    }
}

impl Final for Finished {
    fn read(called: CallKind, result: &RawValue) -> Result<Leg<Self>, OutcomeFault> {
        match called {
            CallKind::Tool => CallToolResult::read(called, result).map(|leg| leg.map(Self::Tool)),
            CallKind::Prompt => Leg::read(result).map(|leg| leg.map(Self::Prompt)),
            CallKind::Resource => Leg::read(result).map(|leg| leg.map(Self::Resource)),
        }
    }

    fn of_tool(&self) -> Option<&CallToolResult> {
        match self {
            Self::Tool(result) => Some(result),
            _ => None,
        }
    }
}
