//! Carriers: they transport questions to the client, and store the record of a call between its legs.
//!
//! | | sealed | pushed | task |
//! |---|---|---|---|
//! | a question | ends the leg, together with all pending questions | is sent at once; the handler waits | the same as sealed; beside a running step it is shown at once |
//! | the end of a leg | the record leaves in the token | the handler is entered again, with the record | the record stays in the task |
//! | a checkpoint | may end the leg | is passed | is passed |
//! | the time for the work behind a URL | [`Limits::url_retry_interval`] | as long as for an answer | [`Limits::max_answer_timeout`] |
//! | the time for which a reference in a URL is valid | 24 hours | 24 hours | 24 hours, or as long as the task exists |
//! | the time of the handler, if it sets no `timeout` | [`Limits::handler_timeout`] | the same, without the time of people | as long as the task exists |
//!
//! [`admit`](crate::request::admit::admit) decides the carrier of a call, once. All other code asks it by a method that names the
//! reason. Handlers, and the futures that they await, do not know it.
//!
//! A request has one of three forms of tasks, if it has any:
//!
//! | form | requests | a call becomes a task | questions |
//! |---|---|---|---|
//! | extension | of 2026-07-28 with the extension | if the tool says so | in `tasks/get` |
//! | session | in a session of 2025-11-25 | if `params.task` says so | pushed beside `tasks/result` |
//! | draft | of 2026-07-28 without the extension, if the server has the draft | if `params.task` and the tool say so | returned by `tasks/result` |
//!
//! All forms are views of the same tasks.

use crate::{
    errors::refusal::{Refusal, StepsKept},
    identity::Caller,
    options::{
        Level, Settings,
        limits::{Limits, URL_REF_WITHIN},
    },
    outbox::Outbox,
    request::receive::Request,
    runtime::{Runtime, TASK_STATE},
    session::{AnswerTimeout, OutboundRequest, Question, Session},
    task_registry::leg::TaskLeg,
};
use antiphon_engine::{Delivery, StopReason};
use antiphon_seal::Principal;
use antiphon_wire::{AskSupport, InputRequest, TaskMetadata};
use http::HeaderValue;
use std::{sync::Arc, time::Duration};

/// The transport of questions to the client, and the place of the call's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Carrier {
    /// A question ends the request; the record travels in the sealed `requestState`.
    Sealed,
    /// A question that is sent at once, as a request of the server on the session of a client before 2026-07-28, while the
    /// handler waits. The record is in memory, on the session's instance.
    Pushed,
    /// The call has become a task: its record is kept by the server, and its questions wait there for the client.
    Task,
}

/// The carrier of one call.
#[derive(Clone, Debug)]
pub(crate) enum LegCarrier {
    /// A request of 2026-07-28: the record is sealed in `requestState`.
    Sealed,
    /// A session of an earlier revision: the record is in the running call.
    Pushed(Arc<Pushed>),
    /// A leg of a task: the record is sealed, and stays in the task.
    Task(Arc<TaskLeg>),
}

/// Returns the principal of a call: that of its task, or else that of its caller. The text of an `Err` is for the log: such a caller
/// is refused.
pub(crate) fn principal(server: &Runtime, caller: &Caller<'_>) -> Result<Option<Principal>, String> {
    match caller.task {
        Some(task) => Ok(task.principal.clone()),
        None => server.identity.of(caller),
    }
}

/// Returns true for a leg of a task.
pub(crate) fn is_a_task(caller: &Caller<'_>) -> bool {
    caller.task.is_some()
}

/// Returns true if changes are sent to the caller as messages of its session, and not on a request of their own.
pub(crate) fn is_notified_in_session(request: &Request<'_>) -> bool {
    request.session.is_some()
}

/// Returns true if headers of the request may repeat its arguments. Earlier revisions have no such headers.
pub(crate) fn has_param_headers(request: &Request<'_>) -> bool {
    request.session.is_none()
}

/// Returns the id of a session over HTTP, of which a span has a digest.
pub(crate) fn session_id<'a>(request: &Request<'_>, caller: &Caller<'a>) -> Option<&'a [u8]> {
    request.session.as_ref()?;
    caller.headers?.get("mcp-session-id").map(HeaderValue::as_bytes)
}

impl LegCarrier {
    /// Returns the carrier of a request for an offer with these settings, from this principal.
    pub(crate) fn of(
        server: &Runtime,
        request: &Request<'_>,
        caller: &Caller<'_>,
        settings: &Settings,
        principal: Option<&Principal>,
    ) -> Self {
        match (caller.task, &request.session) {
            (Some(task), _) => Self::Task(Arc::clone(task)),
            (None, None) => Self::Sealed,
            (None, Some(session)) => Self::Pushed(Arc::new(Pushed {
                session: session.clone(),
                outbox: caller.outbox.cloned(),
                wait: AnswerTimeout {
                    limit: settings.answer_timeout.unwrap_or(server.answer_timeout),
                    at_most: Some(server.limits.max_answer_timeout),
                },
                scopes: settings.scopes.clone(),
                may_answer: settings.approved_by.permits(principal),
            })),
        }
    }

    /// Returns the public form of this carrier.
    pub(crate) fn kind(&self) -> Carrier {
        match self {
            Self::Sealed => Carrier::Sealed,
            Self::Pushed(_) => Carrier::Pushed,
            Self::Task(_) => Carrier::Task,
        }
    }

    /// Returns the leg in which answers arrive.
    pub(crate) fn delivery(&self) -> Delivery {
        match self {
            Self::Sealed | Self::Task(_) => Delivery::NextLeg,
            Self::Pushed(_) => Delivery::ThisLeg,
        }
    }

    /// Returns true if a leg may end at a checkpoint. A task moves to another process wherever its handler waits, so that it needs
    /// no checkpoint.
    pub(crate) fn has_checkpoints(&self) -> bool {
        matches!(self, Self::Sealed)
    }

    /// Returns what this question requires and this carrier does not support, regardless of the client's capabilities.
    pub(crate) fn lacks(&self, request: &InputRequest) -> AskSupport {
        match self {
            Self::Sealed | Self::Task(_) => AskSupport::NONE,
            Self::Pushed(pushed) => pushed.missing(request),
        }
    }

    /// Returns the time for which a check behind a URL is called before the URL is asked again. In a session no HTTP
    /// request waits, so the time is that of an answer; in a task, nobody waits at all. `timeout` is the handler's own.
    pub(crate) fn until(&self, limits: &Limits, timeout: Option<Duration>) -> Duration {
        match self {
            Self::Sealed => limits.url_retry_interval,
            Self::Task(_) => limits.max_answer_timeout,
            Self::Pushed(pushed) => pushed.wait.limit.min(timeout.unwrap_or(limits.handler_timeout) / 2),
        }
    }

    /// Returns the time for which a new reference in a URL is valid. A question of a task waits as long as the task exists.
    pub(crate) fn url_ref_timeout(&self) -> Duration {
        match self {
            Self::Sealed | Self::Pushed(_) => URL_REF_WITHIN,
            Self::Task(task) => task.state_ttl.max(URL_REF_WITHIN),
        }
    }

    /// Returns the limits of a leg. The legs of a task cost no client anything, and their record does not leave the server.
    pub(crate) fn limits(&self, limits: antiphon_engine::Limits) -> antiphon_engine::Limits {
        match self {
            Self::Sealed | Self::Pushed(_) => limits,
            Self::Task(_) => {
                let state = limits.state.max(TASK_STATE);
                antiphon_engine::Limits { legs: u16::MAX, state_only_legs: u8::MAX, state, ..limits }
            }
        }
    }

    /// Returns true if the state stays at the server, which then accepts it at any time, with [`TASK_STATE`].
    pub(crate) fn keeps_state_here(&self) -> bool {
        matches!(self, Self::Task(_))
    }

    /// Returns the time for which a sealed state is accepted. A question of a task waits as long as the task exists.
    pub(crate) fn state_ttl(&self, answer_timeout: Duration) -> Duration {
        match self {
            Self::Sealed | Self::Pushed(_) => answer_timeout,
            Self::Task(task) => task.state_ttl,
        }
    }

    /// Returns true if the server itself enters the handler again: then no result with state only is sent to the client.
    pub(crate) fn enters_again(&self) -> bool {
        matches!(self, Self::Pushed(_) | Self::Task(_))
    }

    /// Returns true if another run can continue the call. In a session, its record and answers are in the memory of this run.
    pub(crate) fn continues_in_another_run(&self) -> bool {
        matches!(self, Self::Sealed | Self::Task(_))
    }

    /// Returns true if answers can arrive in this leg, which has this number.
    pub(crate) fn may_have_answers(&self, leg: u16) -> bool {
        leg > 1 || self.delivery() == Delivery::ThisLeg
    }

    /// Returns true if the replay check covers the handler, which runs again with the client's next request.
    pub(crate) fn has_replay_check(&self) -> bool {
        matches!(self, Self::Sealed)
    }

    /// Returns the protection of a leg whose offer has this level. The steps of a task are always stored: its legs run again after a
    /// crash.
    pub(crate) fn level(&self, level: Level) -> Level {
        match self {
            Self::Sealed | Self::Pushed(_) => level,
            Self::Task(_) => Level::WriteAhead,
        }
    }

    /// Returns true if the call is a task already.
    pub(crate) fn is_a_task(&self) -> bool {
        matches!(self, Self::Task(_))
    }

    /// Returns true if the client says in the request whether the call becomes a task. Otherwise the tool decides.
    pub(crate) fn client_wishes_tasks(&self) -> bool {
        matches!(self, Self::Pushed(_))
    }

    /// Returns the runner of the task, to which progress and news of the leg go.
    pub(crate) fn task_leg(&self) -> Option<&Arc<TaskLeg>> {
        match self {
            Self::Sealed | Self::Pushed(_) => None,
            Self::Task(task) => Some(task),
        }
    }

    /// Returns the place in which the handler counts while it runs.
    pub(crate) fn handler_place(&self) -> HandlerPlace<'_> {
        match self {
            Self::Sealed => HandlerPlace::Request,
            Self::Pushed(pushed) => HandlerPlace::Session(&pushed.session),
            Self::Task(_) => HandlerPlace::Task,
        }
    }

    /// Returns the place of the record of completed steps. `is_lost` is true if no state has all of them.
    pub(crate) fn steps_kept(&self, is_lost: bool) -> StepsKept {
        match self {
            _ if is_lost => StepsKept::Nowhere,
            Self::Sealed | Self::Pushed(_) => StepsKept::InRecord,
            Self::Task(_) => StepsKept::InTask,
        }
    }

    /// Ends the event stream of the call, if the call can continue without it.
    pub(crate) fn close_stream(&self) {
        match self {
            Self::Sealed | Self::Task(_) => {}
            Self::Pushed(pushed) => pushed.close_stream(),
        }
    }

    /// Withdraws all questions: the request is gone, and only a step still runs.
    pub(crate) fn detach(&self) {
        match self {
            Self::Sealed | Self::Task(_) => {}
            Self::Pushed(pushed) => pushed.withdraw(),
        }
    }
}

/// The place in which a running handler counts.
pub(crate) enum HandlerPlace<'a> {
    /// Among the handlers of requests.
    Request,
    /// Among the handlers of sessions, which wait for people.
    Session(&'a Session),
    /// Nowhere: the runner counts its tasks.
    Task,
}

impl<'a> HandlerPlace<'a> {
    /// Returns the place for a request that is no call.
    pub(crate) fn of(request: &'a Request<'_>) -> Self {
        request.session.as_ref().map_or(Self::Request, Self::Session)
    }
}

/// The connection of a call to a client in a session.
#[derive(Debug)]
pub(crate) struct Pushed {
    pub(crate) session: Session,
    /// The stream of the call; `None` if its transport carries replies only.
    outbox: Option<Outbox>,
    /// The time limit of an answer.
    pub(crate) wait: AnswerTimeout,
    /// The scopes that the sender of an answer must have, the same as for the call.
    scopes: Vec<String>,
    /// False if the tool does not accept an answer of this caller: nobody else can answer in its session.
    pub(crate) may_answer: bool,
}

impl Pushed {
    /// Returns what this question requires and the client does not support. Without a stream, nothing can be asked.
    pub(crate) fn missing(&self, request: &InputRequest) -> AskSupport {
        match &self.outbox {
            Some(_) => self.session.missing(request),
            None => AskSupport::NONE.missing(request.needs()),
        }
    }

    /// Sends a question on the stream of the call.
    pub(crate) fn send(
        &self,
        question: &Question<'_>,
        wait: AnswerTimeout,
    ) -> Result<OutboundRequest, StopReason> {
        let Some(outbox) = &self.outbox else {
            let (path, missing) = (question.key.to_owned(), self.missing(question.request));
            return Err(StopReason::Capability { path, missing });
        };
        OutboundRequest::send(&self.session, outbox, &self.scopes, question, wait).map_err(StopReason::Author)
    }

    /// Ends the event stream of the call, if the client knows how to resume it.
    fn close_stream(&self) {
        if let Some(outbox) = &self.outbox
            && self.session.version().has_resumable_calls()
        {
            outbox.close_stream();
        }
    }

    /// Withdraws all questions of the call.
    fn withdraw(&self) {
        if let Some(outbox) = &self.outbox {
            self.session.withdraw(outbox);
        }
    }
}

/// The shortest time for which a task exists, whatever its client wants.
const SHORTEST: Duration = Duration::from_secs(1);

/// The form of tasks in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskForm {
    /// The extension.
    Extension,
    /// Sessions of a revision with tasks.
    Session,
    /// The draft after that revision.
    Draft,
}

impl TaskForm {
    /// Returns the form of tasks in this request; nothing if it has none.
    pub(crate) fn of(server: &Runtime, request: &Request<'_>) -> Option<Self> {
        let tasks = server.tasks.as_ref()?;
        match &request.session {
            Some(session) => session.has_tasks().then_some(Self::Session),
            None if request.meta.tasks => Some(Self::Extension),
            None => tasks.is_draft.then_some(Self::Draft),
        }
    }

    /// Returns the form if the client may wish for a task in it, and wishes for one.
    ///
    /// > Receivers that do not declare the task capability for a request type **MUST** process requests of that type
    /// > normally, ignoring any task-augmentation metadata if present.
    pub(crate) fn wished(server: &Runtime, request: &Request<'_>) -> Option<Self> {
        let form = Self::of(server, request).filter(|form| *form != Self::Extension);
        form.filter(|_| request.params.task.is_some())
    }
}

/// Returns true if a running call may become a task.
pub(crate) fn may_promote(server: &Runtime, request: &Request<'_>) -> bool {
    match TaskForm::of(server, request) {
        // > A server **MUST NOT** return `CreateTaskResult` to a client that did not include the extension capability on
        // > its request
        None | Some(TaskForm::Session) => false,
        Some(TaskForm::Extension) => true,
        Some(TaskForm::Draft) => request.params.task.is_some(),
    }
}

/// Returns the time for which the task of this request exists.
///
/// > Receivers **MAY** override the requested `ttl` duration.
pub(crate) fn ttl(server: &Runtime, request: &Request<'_>) -> Result<Option<Duration>, Refusal> {
    let at_most = server.tasks.as_ref().and_then(|tasks| tasks.options.ttl);
    let wish = request.params.task.filter(|_| TaskForm::wished(server, request).is_some());
    let Some(wish) = wish else { return Ok(at_most) };
    let wish: TaskMetadata = crate::errors::refusal::read_object(wish, "params.task")
        .map_err(|fault| Refusal::params(fault.message))?;
    let Some(wish) = wish.ttl else { return Ok(at_most) };
    let wish = Duration::from_millis(wish).max(SHORTEST);
    Ok(Some(at_most.map_or(wish, |at_most| wish.min(at_most))))
}
