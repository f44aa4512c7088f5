//! The kind of a result. `resultType` determines the kind before any other member of the result is read.
//!
//! The input requests that this version knows are exhaustive enums. [`InputRequest`] and [`AskKind`] may grow, so a match over one
//! of them has an arm for everything else in each other crate. The crates of this SDK match over [`KnownAsk`] and [`KnownKind`]: a new
//! kind does not compile until each of them handles it.

use crate::{
    AskKind, CallToolResult, CreateMessageParams, CreateTaskResult, ElicitRequest, FormSchema, InputRequest,
    InputRequests, Meta, UnknownAsk,
    foreign_text::escaped,
    lenient::optional_object_or_empty,
    members::{Members, Object, object_or_empty, present},
    tag::tag,
    walk,
};
use serde::{
    Deserialize, Serialize,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::value::RawValue;
use std::{borrow::Cow, fmt};

tag! {
    /// The constant `"resultType": "input_required"`.
    pub(crate) InputRequired = "input_required"
}

/// A result that is not final: the asks to answer, and the state to send back with the answers.
///
/// At least one of the two is present: [`new`](Self::new) returns an error otherwise.
#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InputRequiredResult {
    result_type: InputRequired,
    // Always written: some clients take a result without it as final.
    input_requests: InputRequests,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "walk::write_text")]
    request_state: Option<String>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Meta>,
}

/// An error: an `InputRequiredResult` has neither asks nor state.
///
/// > Servers **MUST** include at least one of `inputRequests` or `requestState` in every `InputRequiredResult`
/// > response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeitherAskNorState;

impl fmt::Display for NeitherAskNorState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an InputRequiredResult has neither inputRequests nor requestState")
    }
}

impl std::error::Error for NeitherAskNorState {}

impl InputRequiredResult {
    /// Creates a result with asks, a state, or both. An empty state is a state.
    ///
    /// # Errors
    /// Returns [`NeitherAskNorState`] if there are neither asks nor a state.
    pub fn new(
        input_requests: InputRequests,
        request_state: Option<String>,
    ) -> Result<Self, NeitherAskNorState> {
        if input_requests.is_empty() && request_state.is_none() {
            return Err(NeitherAskNorState);
        }
        Ok(Self { result_type: InputRequired, input_requests, request_state, meta: None })
    }

    /// Returns the asks. If there are none, the client sends the state back, perhaps after a pause.
    pub fn input_requests(&self) -> &InputRequests {
        &self.input_requests
    }

    /// Returns the state, which the client sends back unchanged.
    pub fn request_state(&self) -> Option<&str> {
        self.request_state.as_deref()
    }

    /// Returns the metadata (`_meta`).
    pub fn meta(&self) -> Option<&Meta> {
        self.meta.as_ref()
    }

    /// Returns the same result with this `_meta`.
    #[must_use]
    pub fn with_meta(mut self, meta: Option<Meta>) -> Self {
        self.meta = meta;
        self
    }

    /// Returns the asks and the state.
    pub fn into_parts(self) -> (InputRequests, Option<String>) {
        (self.input_requests, self.request_state)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InputRequiredIn {
    #[serde(default, deserialize_with = "optional_object_or_empty")]
    input_requests: Option<InputRequests>,
    #[serde(default)]
    request_state: Option<String>,
    #[serde(rename = "_meta", default)]
    meta: Option<Meta>,
}

/// The outcome of a request whose response may be an [`InputRequiredResult`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Outcome<T> {
    /// The final result.
    Complete(T),
    /// A result that is not final: the client answers the asks and sends the request again.
    InputRequired(InputRequiredResult),
    /// A task: the request continues without its client. Only the response to `tools/call` may be one.
    Task(CreateTaskResult),
}

/// The reason for which a result could not be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum OutcomeFault {
    /// A `resultType` that is not in the specification.
    ///
    /// > A `resultType` of any value unrecognized by the client **MUST** be considered invalid.
    UnknownResultType(String),
    /// The member `inputRequests` in a result without `resultType`, or `requestState` and no result: the form of a draft before
    /// 2026-07-28.
    AsksWithoutResultType,
    /// A result of `tools/call` with neither `content` nor `structuredContent`.
    NoContent,
    /// An `input_required` result with neither asks nor state.
    NeitherAskNorState,
    /// A task of an earlier revision in the place of the result: there is a member `task` and no result.
    Task {
        /// The id of the task, if the result has one.
        id: Option<String>,
    },
    /// An error of the deserializer: the members do not fit the type.
    Malformed(serde_json::Error),
}

impl fmt::Display for OutcomeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownResultType(name) => {
                write!(f, "the result has the unknown resultType {:?}", escaped(name))
            }
            Self::AsksWithoutResultType => {
                f.write_str("the result has inputRequests but is not `input_required`, or has a requestState and no content: the form of an older draft")
            }
            Self::NoContent => f.write_str("the result of the tool has neither `content` nor `structuredContent`"),
            Self::NeitherAskNorState => NeitherAskNorState.fmt(f),
            Self::Task { id: Some(id) } => write!(f, "the result is a task, with the id {:?}", escaped(id)),
            Self::Task { id: None } => f.write_str("the result is a task, without an id"),
            Self::Malformed(fault) => write!(f, "the result is malformed: {}", escaped(fault)),
        }
    }
}

impl std::error::Error for OutcomeFault {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Malformed(fault) => Some(fault),
            _ => None,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    #[serde(borrow, default)]
    result_type: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    input_requests: Option<&'a RawValue>,
    #[serde(borrow, default)]
    task: Option<&'a RawValue>,
    #[serde(default)]
    request_state: Option<IgnoredAny>,
    // The results of tools, prompts and resources.
    #[serde(default, deserialize_with = "present")]
    structured_content: Option<IgnoredAny>,
    #[serde(default)]
    content: Option<IgnoredAny>,
    #[serde(default)]
    messages: Option<IgnoredAny>,
    #[serde(default)]
    contents: Option<IgnoredAny>,
}

/// The member of a task that names the task.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TaskIn {
    task_id: String,
}

impl Head<'_> {
    /// Returns `true` if the result has no content of a tool, a prompt or a resource.
    fn is_without_content(&self) -> bool {
        [self.content, self.structured_content, self.messages, self.contents].iter().all(Option::is_none)
    }

    /// Returns `true` if there is a member `inputRequests` that is neither an empty object nor an empty array.
    fn has_asks(&self) -> bool {
        self.input_requests.is_some_and(|asks| {
            let asks = serde_json::from_str::<Members>(object_or_empty(asks).get());
            asks.map_or(true, |asks| !asks.0.is_empty())
        })
    }

    /// Returns the id of the task that is in the place of the result, if there is one.
    fn task_without_result(&self) -> Option<String> {
        if self.content.is_some() || self.messages.is_some() || self.contents.is_some() {
            return None;
        }
        let Object(task) = serde_json::from_str::<Object<TaskIn>>(self.task?.get()).ok()?;
        Some(task.task_id)
    }
}

impl<T: DeserializeOwned> Outcome<T> {
    /// Reads the `result` of a response.
    ///
    /// # Errors
    /// Returns an [`OutcomeFault`] that describes the fault of the result.
    pub fn read(result: &RawValue) -> Result<Self, OutcomeFault> {
        let Object(head) =
            serde_json::from_str::<Object<Head<'_>>>(result.get()).map_err(OutcomeFault::Malformed)?;
        match head.result_type.as_deref() {
            // > clients **MUST** treat an absent `resultType` as `"complete"`
            None if head.has_asks() => Err(OutcomeFault::AsksWithoutResultType),
            None if head.is_without_content()
                && (head.request_state.is_some() || head.input_requests.is_some()) =>
            {
                Err(OutcomeFault::AsksWithoutResultType)
            }
            // Without this check the task is lost, because most members of a result may be absent.
            None | Some("complete") => match head.task_without_result() {
                Some(id) => Err(OutcomeFault::Task { id: Some(id) }),
                None => {
                    serde_json::from_str(result.get()).map(Self::Complete).map_err(OutcomeFault::Malformed)
                }
            },
            Some("task") => {
                serde_json::from_str(result.get()).map(Self::Task).map_err(OutcomeFault::Malformed)
            }
            Some("input_required") => {
                let read: InputRequiredIn =
                    serde_json::from_str(result.get()).map_err(OutcomeFault::Malformed)?;
                InputRequiredResult::new(read.input_requests.unwrap_or_default(), read.request_state)
                    .map(|result| Self::InputRequired(result.with_meta(read.meta)))
                    .map_err(|NeitherAskNorState| OutcomeFault::NeitherAskNorState)
            }
            Some(other) => Err(OutcomeFault::UnknownResultType(other.to_owned())),
        }
    }
}

impl Outcome<CallToolResult> {
    /// Reads the `result` of a response to `tools/call`, which has `content` or `structuredContent`. A `content` that is `null`
    /// is empty.
    ///
    /// # Errors
    /// Returns an [`OutcomeFault`] that describes the fault of the result.
    pub fn read_tool(result: &RawValue) -> Result<Self, OutcomeFault> {
        #[derive(Deserialize)]
        struct Content {
            #[serde(default, deserialize_with = "present")]
            content: Option<IgnoredAny>,
        }
        let outcome = Self::read(result)?;
        if let Self::Complete(read) = &outcome
            && read.content.is_empty()
            && read.structured_content.is_none()
            && serde_json::from_str::<Content>(result.get()).is_ok_and(|read| read.content.is_none())
        {
            return Err(OutcomeFault::NoContent);
        }
        Ok(outcome)
    }
}

impl CallToolResult {
    /// Reads a final result of a tool, such as that of a task, as that of a call is read.
    ///
    /// # Errors
    /// Returns an [`OutcomeFault`] that describes the fault of the result. A result that is not final is one.
    pub fn read_final(result: &RawValue) -> Result<Self, OutcomeFault> {
        match Outcome::read_tool(result)? {
            Outcome::Complete(result) => Ok(result),
            Outcome::InputRequired(_) => Err(OutcomeFault::UnknownResultType("input_required".to_owned())),
            Outcome::Task(_) => Err(OutcomeFault::UnknownResultType("task".to_owned())),
        }
    }
}

impl fmt::Debug for InputRequiredResult {
    /// Formats the value without state, arguments and answers, which do not belong in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InputRequiredResult")
            .field("input_requests", &self.input_requests)
            .finish_non_exhaustive()
    }
}

/// An input request that this version knows.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum KnownAsk<'a> {
    Form { message: &'a str, requested_schema: &'a FormSchema },
    Url { message: &'a str, url: &'a str },
    Sampling(&'a CreateMessageParams),
    Roots,
}

/// A kind of input request that this version knows.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownKind {
    Form,
    Url,
    Sampling,
    Roots,
}

impl InputRequest {
    /// Returns the input request in the form that the crates of this SDK match over.
    ///
    /// # Errors
    /// The input request, if this version does not know it.
    #[doc(hidden)]
    pub fn known(&self) -> Result<KnownAsk<'_>, &UnknownAsk> {
        match self {
            Self::Elicit(ElicitRequest::Form { message, requested_schema }) => {
                Ok(KnownAsk::Form { message, requested_schema })
            }
            Self::Elicit(ElicitRequest::Url { message, url }) => Ok(KnownAsk::Url { message, url }),
            Self::CreateMessage(params) => Ok(KnownAsk::Sampling(params)),
            Self::ListRoots { .. } => Ok(KnownAsk::Roots),
            Self::Unknown(unknown) => Err(unknown),
        }
    }
}

impl AskKind {
    /// Returns the kind in the form that the crates of this SDK match over; none if this version does not know the kind.
    #[doc(hidden)]
    pub fn known(self) -> Option<KnownKind> {
        match self {
            Self::Form => Some(KnownKind::Form),
            Self::Url => Some(KnownKind::Url),
            Self::Sampling => Some(KnownKind::Sampling),
            Self::Roots => Some(KnownKind::Roots),
            Self::Unknown => None,
        }
    }
}
