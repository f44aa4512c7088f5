//! The loop of a call: legs and rounds, until the final result.

use crate::{
    asks::{
        AskRound, answer_round, callbacks::AskFault, must_be_declared, progress::AskProgress,
        questions::Origin,
    },
    call::{
        Call,
        error_kind::ClientErrorKind,
        errors::ClientError,
        legs::{Legs, Position, within},
        outcome::{CallProgress, Final, Finished, Leg, is_url_round, keep_consents, urls_finished},
        pending::{NotReady, Outgoing, PendingCall},
        task::{requests::cancel_after_error, run::TaskRun},
        task_handle::{TaskForm, TaskHandle},
    },
    lists::tools::ServerTools,
    request::{Core, fault::RequestFault},
    session::Connection,
    trace::{self, failed, otel},
};
use antiphon_wire::{
    CallToolResult, CreateTaskResult, ErrorCode, ErrorObject, InputRequests, Task, pacing::Pacing,
};
use tokio::time::{Instant, sleep};
use tracing::{Instrument as _, Span};

/// The text of the error of a server that does not accept its own state; the same text in other SDKs.
const STATE_REFUSED: &str = "Invalid or expired requestState";

/// The outcome of legs: a result, a question or a task.
enum Sent<T> {
    Done(T),
    Asked(Box<PendingCall>),
    Task(Box<(Task, TaskForm)>),
}

impl Sent<Finished> {
    fn of_tool(&self) -> Option<&CallToolResult> {
        match self {
            Self::Done(finished) => finished.of_tool(),
            Self::Asked(_) | Self::Task(_) => None,
        }
    }
}

/// One call under way. It keeps the answers so far, so that an error can return them.
pub(crate) struct Run<'a> {
    tools: &'a ServerTools,
    call: Call,
    pending: Option<PendingCall>,
    /// The task that the call became, as long as it may run.
    task: Option<TaskHandle>,
    /// The number of legs that were sent.
    legs: u32,
    /// `true` while a leg is under way.
    in_flight: bool,
    /// `true` if the program drives the call.
    by_hand: bool,
}

impl<'a> Run<'a> {
    /// Returns a call at its beginning.
    pub(crate) fn first(tools: &'a ServerTools, call: Call) -> Self {
        Self { tools, call, pending: None, task: None, legs: 0, in_flight: false, by_hand: false }
    }

    /// Returns a call that continues with its pending asks or state.
    pub(crate) fn resumed(tools: &'a ServerTools, pending: PendingCall) -> Self {
        let call = pending.call().clone();
        Self { tools, call, pending: Some(pending), task: None, legs: 0, in_flight: false, by_hand: false }
    }

    /// Returns the span of the call. A resumed call goes on in its trace.
    fn span(&self) -> Span {
        let span = self.core().span(self.call.method(), Some(self.call.name()));
        if let Some(trace) = self.pending.as_ref().and_then(PendingCall::trace) {
            otel::set_parent(&span, trace);
        }
        span
    }

    fn connection(&self) -> &'a Connection {
        &self.tools.lists.connection
    }

    fn core(&self) -> &'a Core {
        &self.connection().core
    }

    /// Runs the call up to its final result. The callbacks answer.
    pub(crate) async fn finish<T: Final>(mut self) -> Result<T, ClientError> {
        let (core, call) = (self.core(), self.call.clone());
        let span = self.span();
        let ended = within(core, call.options(), self.answer_and_send()).instrument(span.clone()).await;
        note_end(&span, ended.as_ref().map(Final::of_tool));
        match ended {
            Ok(result) => Ok(result),
            Err(kind) => {
                if let Some(task) = &self.task {
                    Box::pin(cancel_after_error(self.tools, task, call.options())).await;
                }
                Err(self.failed(kind))
            }
        }
    }

    /// Runs the call up to its next question, or its final result.
    pub(crate) async fn step(mut self) -> Result<CallProgress, ClientError> {
        let (core, call) = (self.core(), self.call.clone());
        self.by_hand = true;
        let span = self.span();
        let ended = within(core, call.options(), self.send::<Finished>()).instrument(span.clone()).await;
        note_end(&span, ended.as_ref().map(Sent::of_tool));
        match ended {
            Ok(Sent::Done(finished)) => Ok(CallProgress::Done(finished)),
            Ok(Sent::Asked(pending)) => Ok(CallProgress::Pending(*pending)),
            Ok(Sent::Task(task)) => Ok(CallProgress::Task(self.handle(&task))),
            Err(kind) => Err(self.failed(kind)),
        }
    }

    async fn answer_and_send<T: Final>(&mut self) -> Result<T, ClientErrorKind> {
        let core = self.core();
        let limit = core.bounds.max_rounds;
        let mut answered = 0;
        loop {
            // A call that is resumed may start with asks.
            if let Some(pending) = self.pending.as_mut().filter(|pending| !pending.asks().is_empty()) {
                if answered == limit {
                    return Err(ClientErrorKind::Ask(AskFault::RoundLimit { rounds: answered }));
                }
                answered += 1;
                belongs_here(core, pending)?;
                let origin = Origin {
                    server: pending.server().clone(),
                    method: self.call.method().into(),
                    target: self.call.name().to_owned(),
                    arguments: self.call.shared_arguments().cloned(),
                };
                let (handlers, round) = (&core.handlers, pending.round_mut());
                let span = trace::asked(round.number, round.asks.len());
                let progress = AskProgress::default();
                let wait = answer_round(handlers, &origin, round, &progress).instrument(span).await;
                let wait = wait.map_err(ClientErrorKind::Ask)?;
                // A timer of zero length still waits up to a millisecond.
                if !wait.is_zero() {
                    sleep(wait).await;
                }
            }
            match self.send().await? {
                Sent::Done(result) => return Ok(result),
                Sent::Asked(pending) => self.pending = Some(*pending),
                Sent::Task(task) => return Box::pin(self.follow(*task, answered)).await,
            }
        }
    }

    /// Follows the task that the call became to its end.
    async fn follow<T: Final>(
        &mut self,
        task: (Task, TaskForm),
        answered: u32,
    ) -> Result<T, ClientErrorKind> {
        let handle = self.handle(&task);
        let (task, _) = task;
        // The state of the call ends with the task.
        self.pending = None;
        let handle = self.task.insert(handle);
        let arguments = self.call.shared_arguments().cloned();
        let run = TaskRun::new(self.tools, handle, self.call.options(), arguments, answered);
        let ended = run.finish(Some((task.status, task.status_message))).await;
        if let Ok(_) | Err(ClientErrorKind::Request(RequestFault::UnknownTask(_))) = &ended {
            self.task = None;
        }
        ended?.result(self.tools, Some(self.call.name())).await
    }

    fn handle(&self, (task, form): &(Task, TaskForm)) -> TaskHandle {
        let round = self.pending.as_ref().map_or(0, PendingCall::round);
        TaskHandle::of_created(self.core().identity(), self.call.name(), round, (task, *form))
    }

    /// Sends legs until there is a final result or a round of asks.
    async fn send<T: Final>(&mut self) -> Result<Sent<T>, ClientErrorKind> {
        let bounds = self.core().bounds;
        let (mut pacing, mut since) = (Pacing::new(bounds.state_only_pacing), None);
        loop {
            let result = match self.leg().await? {
                Leg::Complete(result) => return Ok(Sent::Done(result)),
                Leg::InputRequired(result) => result,
                Leg::Task(CreateTaskResult { task, .. }, form) => {
                    return Ok(Sent::Task(Box::new((task, form))));
                }
            };
            let asks = result.input_requests().len();
            if asks > bounds.max_asks {
                return Err(ClientErrorKind::Ask(AskFault::TooManyAsks { asks, limit: bounds.max_asks }));
            }
            let pending = self.next_pending(result.into_parts());
            if asks > 0 {
                let handlers = &self.core().handlers;
                let undeclared = |(key, ask)| must_be_declared(handlers, key, ask).err();
                let fault = pending.asks().iter().find_map(undeclared);
                if let Some(fault) = fault {
                    self.pending = Some(pending);
                    return Err(ClientErrorKind::Ask(fault));
                }
                return Ok(Sent::Asked(Box::new(pending)));
            }
            self.pending = Some(pending);
            // > If the `InputRequiredResult` does _not_ contain the `inputRequests` field, the client **MAY** retry the
            // > original request immediately.
            let waited = since.get_or_insert_with(Instant::now).elapsed();
            let Some(wait) = pacing.next(waited) else { return Err(ClientErrorKind::StateOnlyLimit) };
            sleep(wait).await;
        }
    }

    async fn leg<T: Final>(&mut self) -> Result<Leg<T>, ClientErrorKind> {
        let core = self.core();
        let mut with = Outgoing::default();
        if let Some(pending) = &self.pending {
            belongs_here(core, pending)?;
            with = pending.outgoing(core.handlers.any_url_scheme).map_err(kind_of)?;
            if is_url_round(pending)
                && let Some(session) = self.connection().current_session()
            {
                Box::pin(urls_finished(&session, pending, core.bounds.url_retry_interval)).await?;
                // The request is sent again as it was.
                with = Outgoing::default();
            }
        }
        self.legs += 1;
        let round = self.pending.as_ref().map_or(0, PendingCall::round);
        let at = Position { round, leg: self.legs };
        let is_first = self.pending.is_none();
        self.in_flight = true;
        let leg = Legs { tools: self.tools, by_hand: self.by_hand }.leg(&self.call, &with, at).await;
        // The fault of an ask on its way cancelled the request.
        self.in_flight = matches!(leg, Err(RequestFault::Ask(_)));
        leg.map_err(|fault| match fault {
            RequestFault::Server(error) if !is_first && is_state_refusal(&error) => {
                ClientErrorKind::StateRefused(error)
            }
            fault => fault.into(),
        })
    }

    /// The latest result replaces what was pending: neither its state nor its answers are used again.
    fn next_pending(&self, (asks, state): (InputRequests, Option<String>)) -> PendingCall {
        let before = self.pending.as_ref().map_or(0, PendingCall::round);
        let number = before.saturating_add(u32::from(!asks.is_empty()));
        let round = AskRound::new(number, asks);
        let mut pending = PendingCall::new(self.core().identity(), self.call.clone(), round, state)
            .with_any_url_scheme(self.core().handlers.any_url_scheme)
            .with_trace(otel::current());
        if let Some(before) = &self.pending
            && is_url_round(&pending)
            && self.connection().current_session().is_some()
        {
            keep_consents(before, pending.round_mut());
        }
        pending
    }

    fn failed(self, kind: ClientErrorKind) -> ClientError {
        let interrupted = self.in_flight;
        ClientError::of_call(self.core().identity(), self.call, kind, self.pending, interrupted)
            .with_task(self.task)
    }
}

/// Returns `true` for the error of a server that does not accept its own state. Some servers send the text without `data`.
fn is_state_refusal(error: &ErrorObject) -> bool {
    error.code == ErrorCode::INVALID_PARAMS
        && (error.reason() == Some("invalid_request_state") || error.message == STATE_REFUSED)
}

fn kind_of(not_ready: NotReady) -> ClientErrorKind {
    match not_ready {
        NotReady::Missing(keys) => ClientErrorKind::MissingAnswers { keys },
        NotReady::Bad(error) => ClientErrorKind::Ask(AskFault::Answer(error)),
    }
}

/// > Both the `inputRequests` and `requestState` fields affect only the client's retry of the original request. They
/// > **MUST NOT** be used for any other request that the client may be sending in parallel.
fn belongs_here(core: &Core, pending: &PendingCall) -> Result<(), ClientErrorKind> {
    let target = &pending.server().target;
    if target == core.target() {
        return Ok(());
    }
    Err(ClientErrorKind::OtherServer { belongs_to: target.clone() })
}

/// Notes the end of a call: its result if a tool was called, or its error.
fn note_end(span: &Span, end: Result<Option<&CallToolResult>, &ClientErrorKind>) {
    match end {
        Ok(Some(result)) if result.failed() => failed(span, None, "tool_error"),
        Ok(_) => {}
        Err(kind) => note_error(span, kind),
    }
}

fn note_error(span: &Span, kind: &ClientErrorKind) {
    match kind {
        ClientErrorKind::StateRefused(error) | ClientErrorKind::Request(RequestFault::Server(error)) => {
            failed(span, Some(error.code.0), "");
        }
        ClientErrorKind::Request(RequestFault::Timeout(_)) | ClientErrorKind::Deadline(_) => {
            failed(span, None, "timeout");
        }
        ClientErrorKind::Cancelled | ClientErrorKind::TaskCancelled { .. } => failed(span, None, "cancelled"),
        ClientErrorKind::Ask(_) | ClientErrorKind::MissingAnswers { .. } => failed(span, None, "ask"),
        _ => failed(span, None, "_OTHER"),
    }
}
