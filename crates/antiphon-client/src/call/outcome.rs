//! The outcomes of legs and calls. Error `-32042` of legacy servers (URLs that must be finished before a request is sent
//! again) becomes a round of URLs.

use crate::{
    asks::AskRound,
    call::{
        CallKind,
        pending::PendingCall,
        task_handle::{TaskForm, TaskHandle},
    },
    request::fault::RequestFault,
    session::{Connection, legacy::Session},
};
use antiphon_wire::{
    Action, AskKind, CallToolResult, CreateTaskResult, ElicitRequest, ElicitResult, ErrorCode, ErrorObject,
    GetPromptResult, InputRequest, InputRequests, InputRequiredResult, Outcome, OutcomeFault,
    ReadResourceResult, UrlElicitations,
};
use futures_util::future::join_all;
use serde::{Deserialize as _, Serialize, Serializer, de::DeserializeOwned};
use serde_json::value::RawValue;
use std::time::Duration;
use tokio::time::timeout;

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

/// Turns the error into a round of the URLs that it names, if a person can be shown them.
pub(crate) fn round_of_urls<T>(
    connection: &Connection,
    leg: Result<Leg<T>, RequestFault>,
) -> Result<Leg<T>, RequestFault> {
    let Err(RequestFault::Server(error)) = &leg else { return leg };
    if error.code != ErrorCode::URL_ELICITATION_REQUIRED || !connection.core.handlers.declared.url {
        return leg;
    }
    let (Some(session), Some(urls)) = (connection.current_session(), UrlElicitations::of(error)) else {
        return leg;
    };
    let mut asks = InputRequests::new();
    for (id, ask) in urls.0 {
        session.expect_url(&id);
        let _ = asks.insert(id, InputRequest::Elicit(ask));
    }
    match InputRequiredResult::new(asks, None) {
        Ok(round) => Ok(Leg::InputRequired(round)),
        Err(_) => leg,
    }
}

/// Waits until the URLs of this round are finished, for `limit` at most: not every server reports that.
///
/// > Clients: **MAY** wait for this notification to automatically retry requests
pub(crate) async fn urls_finished(
    session: &Session,
    pending: &PendingCall,
    limit: Duration,
) -> Result<(), RequestFault> {
    if let Some(refused) = refused(pending) {
        return Err(RequestFault::Server(refused));
    }
    let all = join_all(pending.asks().iter().map(|(id, _)| session.url_finished(id)));
    if timeout(limit, all).await.is_err() {
        tracing::debug!("the server did not report that its URLs were finished: the request is sent again");
    }
    Ok(())
}

/// Returns `true` if this is such a round: URLs only, and no state.
pub(crate) fn is_url_round(pending: &PendingCall) -> bool {
    !pending.has_state()
        && !pending.asks().is_empty()
        && pending.asks().iter().all(|(_, ask)| ask.kind() == AskKind::Url)
}

/// The error of the server, if the person did not agree to all of its URLs.
fn refused(pending: &PendingCall) -> Option<ErrorObject> {
    let agreed = |id: &str| {
        let answer = pending.answers().get(id)?;
        Some(ElicitResult::deserialize(answer).ok()?.action == Action::Accept)
    };
    if pending.asks().iter().all(|(id, _)| agreed(id) == Some(true)) {
        return None;
    }
    let urls = pending.asks().iter().filter_map(|(id, ask)| match ask {
        InputRequest::Elicit(ask @ ElicitRequest::Url { .. }) => Some((id.to_owned(), ask.clone())),
        _ => None,
    });
    Some(UrlElicitations(urls.collect()).to_error())
}

/// Keeps the consents of the round before: the server still waits for those URLs, and they need no second consent.
pub(crate) fn keep_consents(before: &PendingCall, round: &mut AskRound) {
    let url = |ask: Option<&InputRequest>| match ask {
        Some(InputRequest::Elicit(ElicitRequest::Url { url, .. })) => Some(url.clone()),
        _ => None,
    };
    let same: Vec<String> = round
        .asks
        .iter()
        .filter(|(id, ask)| {
            before.answers().get(id).is_some() && url(Some(ask)) == url(before.asks().get(id))
        })
        .map(|(id, _)| id.to_owned())
        .collect();
    for id in same {
        // Only consents come this far: anything else ended the call.
        let _ = round.answer(&id, &ElicitResult::consent());
    }
}
