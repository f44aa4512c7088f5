//! `tasks/result` in the forms of sessions and of the draft: it waits for the end of a task.
//!
//! ```text
//!  over? ──▶ the result of the call, or its error
//!    │ no
//!  questions? ──▶ draft: they are the result      session: each is sent once, as a request of the server
//!    │                                                │ its response is an answer to the task
//!    └── a change of the task ◀───────────────────────┘
//! ```

use crate::{
    errors::refusal::Refusal,
    identity::Caller,
    outbox::Outbox,
    request::{carrier::TaskForm, receive::Request},
    runtime::Runtime,
    session::{AnswerTimeout, AskEnd, OutboundRequest, Question, Session, not_answered},
    subscribe::{Change, SubscriptionHandle, WatchList},
    task::{
        earlier::is_cancelled,
        next::{GivenAnswer, Message},
        requests::{Addressed, SettingsOf, addressed, send},
        sealed::{self, Opening},
        view::{self, Content},
        watch::Changes,
    },
    task_registry::leg::{AskedQuestion, AskedQuestions},
};
use antiphon_store::TaskKey;
use antiphon_wire::{AskSupport, ErrorCode, ErrorObject, InputRequest, InputRequests, escaped};
use serde_json::{json, value::RawValue};
use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
};

/// The reply to `tasks/result`.
pub(crate) enum TaskResult {
    /// The result of the call, as JSON. The right to open it is held until the reply is written.
    Final(Box<RawValue>, Opening),
    /// The open questions, in the draft.
    Questions(InputRequests, Opening),
}

/// Waits for the end of a task, or in the draft for a question of it. Returns the result with the id of the task.
///
/// > When a receiver receives a `tasks/result` request for a task in any other non-terminal status (`working` or
/// > `input_required`), it **MUST** block the response until the task reaches a terminal status.
pub(crate) async fn result(
    server: &Arc<Runtime>,
    request: &Request<'_>,
    caller: &Caller<'_>,
    settings: SettingsOf<'_>,
    form: TaskForm,
) -> Result<(String, TaskResult), Refusal> {
    let mut addressed = addressed(server, request, caller, settings).await?;
    let id = sealed::text(addressed.key);
    if is_over(server, &addressed) {
        return end_of(server, caller, &mut addressed, form).await.map(|end| (id, end));
    }
    // A request that waits counts as a subscription, and ends with all subscriptions if the server drains.
    let account = server.accounts.of(caller, addressed.principal.as_ref());
    let place = server.subscriptions.join(account, WatchList::default(), &server.limits)?;
    let mut pushed = pushed(server, request, caller, &addressed, settings);
    // Before the next look, so that no change is missed.
    let mut changes = Changes::of(addressed.tasks);
    loop {
        addressed.reload(server).await?;
        if is_over(server, &addressed) {
            return end_of(server, caller, &mut addressed, form).await.map(|end| (id, end));
        }
        let (open, opening) = awaited(server, caller, &mut addressed).await?;
        if form == TaskForm::Draft && !open.is_empty() {
            return Ok((id, TaskResult::Questions(open, opening)));
        }
        drop(opening);
        if let Some(pushed) = &mut pushed {
            // > it **MUST** block the response until the task reaches a terminal status.
            //
            // An error tells the caller what the wait would not.
            if pushed.wait_for_others(&open) {
                return Err(Refusal::NotApprover);
            }
            pushed.send(&open, |key| addressed.shown.elicitation_id(key));
        }
        // A request may wait for days.
        drop(open);
        addressed.forget();
        tokio::select! {
            () = changes.of_task(addressed.key) => {}
            (key, end) = answered(&mut pushed) => take(server, caller, &mut addressed, key, end).await?,
            () = drained(&place) => return Err(Refusal::Busy),
        }
    }
}

/// Returns true if the task is over for its client.
fn is_over(server: &Runtime, addressed: &Addressed<'_>) -> bool {
    let Addressed { key, row, shown, .. } = addressed;
    shown.end.is_some() || is_cancelled(server, *key, row, shown)
}

/// Returns the result of a task that is over.
///
/// > For tasks in a terminal status, receivers **MUST** return from `tasks/result` exactly what the underlying request would have
/// > returned, whether that is a successful result or a JSON-RPC error.
async fn end_of(
    server: &Runtime,
    caller: &Caller<'_>,
    addressed: &mut Addressed<'_>,
    form: TaskForm,
) -> Result<TaskResult, Refusal> {
    if is_cancelled(server, addressed.key, &addressed.row, &addressed.shown) {
        let error = ErrorObject::new(ErrorCode::INTERNAL_ERROR, "The task was cancelled: it has no result");
        return Err(Refusal::Again(Box::new(error.with_data(json!({ "reason": "cancelled" })))));
    }
    let opening = addressed.opening(server, caller).await?;
    let Addressed { key, row, shown, .. } = addressed;
    match view::content(server, *key, row, shown, shown)? {
        Content::Result(result) => Ok(TaskResult::Final(result, opening)),
        Content::Error(error) => {
            let mut error: ErrorObject =
                serde_json::from_str(error.get()).map_err(|_fault| Refusal::Internal)?;
            if form == TaskForm::Session && error.code == ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY {
                // The revision has no code for a missing capability.
                error = ErrorObject::invalid_request(error.message);
            }
            Err(Refusal::Again(Box::new(error)))
        }
        Content::Questions(_) | Content::None => Err(Refusal::Internal),
    }
}

/// Returns the questions that wait for an answer. One that has an answer which is not valid is asked again soon, with the reason.
async fn awaited(
    server: &Runtime,
    caller: &Caller<'_>,
    addressed: &mut Addressed<'_>,
) -> Result<(InputRequests, Opening), Refusal> {
    let now = addressed.now(server);
    if !now.questions.iter().any(|question| now.is_awaited(&question.key)) {
        return Ok((InputRequests::new(), Opening::default()));
    }
    let opening = addressed.opening(server, caller).await?;
    let now = addressed.now(server);
    let Addressed { key, row, shown, .. } = addressed;
    let open = view::questions(server, *key, row, shown, |key| now.is_awaited(key))?;
    Ok((open, opening))
}

/// Returns the questions that this request can send; nothing without a stream for them.
fn pushed<'a>(
    server: &Runtime,
    request: &'a Request<'_>,
    caller: &Caller<'a>,
    addressed: &Addressed<'_>,
    settings: SettingsOf<'_>,
) -> Option<PushedQuestions<'a>> {
    let (session, outbox) = (request.session.as_ref()?, caller.outbox()?);
    let settings = settings(&addressed.shown.tool);
    let rules = PushRules {
        scopes: settings.map(|settings| settings.scopes.clone()).unwrap_or_default(),
        may_answer: settings.is_none_or(|tool| tool.approved_by.permits(addressed.principal.as_ref())),
        // The task sets no shorter limit: after that, another `tasks/result` asks again.
        wait: AnswerTimeout { limit: server.limits.max_answer_timeout, at_most: None },
        at_most: server.limits.engine.asks,
    };
    Some(PushedQuestions::new(session, outbox, addressed, rules))
}

async fn answered(pushed: &mut Option<PushedQuestions<'_>>) -> (String, AskEnd) {
    match pushed {
        Some(pushed) => poll_fn(|cx| pushed.poll(cx)).await,
        None => std::future::pending().await,
    }
}

/// Takes the end of a question.
async fn take(
    server: &Arc<Runtime>,
    caller: &Caller<'_>,
    addressed: &mut Addressed<'_>,
    key: String,
    end: AskEnd,
) -> Result<(), Refusal> {
    match end {
        AskEnd::Answer(Ok(answer)) => {
            addressed.reload(server).await?;
            let (open, opening) = awaited(server, caller, addressed).await?;
            // A question that is not open any more was withdrawn.
            let Some(question) = open.get(&key) else { return Ok(()) };
            let given = GivenAnswer::new(server, &key, question, &answer);
            // Others may open a content while the store writes.
            drop(opening);
            send(server, addressed, &Message::Answers(vec![given])).await
        }
        // The task still waits, and another request may ask again.
        AskEnd::Answer(Err(error)) => Err(Refusal::UserFacing(not_answered(&key, &error))),
        AskEnd::SessionOver => Err(Refusal::UserFacing("The session ended".to_owned())),
        AskEnd::TooLate(waited) => {
            let seconds = waited.as_secs();
            tracing::debug!(task = %escaped(&addressed.key), key, seconds, "a question of a task was not answered in time");
            Ok(())
        }
    }
}

async fn drained(place: &SubscriptionHandle) {
    poll_fn(|cx| match place.poll_change(cx) {
        Poll::Ready(Change::End) => Poll::Ready(()),
        // No other change concerns this request.
        _ => Poll::Pending,
    })
    .await;
}

/// The questions of a task that one request sends.
pub(super) struct PushedQuestions<'a> {
    session: &'a Session,
    outbox: &'a Outbox,
    all: Arc<AskedQuestions>,
    task: TaskKey,
    scopes: Vec<String>,
    /// False if the tool does not accept an answer of this caller.
    may_answer: bool,
    wait: AnswerTimeout,
    at_most: usize,
    sent: Vec<SentQuestion>,
}

/// A question that was sent.
struct SentQuestion {
    /// Nothing after the answer has come, or was not given in time.
    outbound: Option<OutboundRequest>,
    /// Dropped after the request.
    asked: AskedQuestion,
}

/// The rules for the questions of one request.
pub(super) struct PushRules {
    pub(super) scopes: Vec<String>,
    pub(super) may_answer: bool,
    pub(super) wait: AnswerTimeout,
    /// The number of questions at once.
    pub(super) at_most: usize,
}

impl<'a> PushedQuestions<'a> {
    pub(super) fn new(
        session: &'a Session,
        outbox: &'a Outbox,
        addressed: &Addressed<'_>,
        rules: PushRules,
    ) -> Self {
        let all = Arc::clone(&addressed.tasks.asked);
        let PushRules { scopes, may_answer, wait, at_most } = rules;
        Self {
            session,
            outbox,
            all,
            task: addressed.key,
            scopes,
            may_answer,
            wait,
            at_most,
            sent: Vec::new(),
        }
    }

    /// Sends the open questions that nobody was sent, and withdraws those that are not open any more.
    /// `elicitation_id` returns the id that the author gave to a URL question.
    pub(super) fn send<'q>(
        &mut self,
        open: &InputRequests,
        elicitation_id: impl Fn(&str) -> Option<&'q str>,
    ) {
        self.sent.retain(|sent| open.get(sent.asked.key()).is_some());
        for (key, request) in open.iter() {
            if self.sent.len() >= self.at_most {
                return;
            }
            if self.is_for_client(request)
                && let Some(asked) = self.all.take(self.task, key)
            {
                self.send_one(request, asked, elicitation_id(key));
            }
        }
    }

    /// Returns true if one of these questions waits for a person who is not the caller: a task has one caller, so nobody can answer.
    pub(super) fn wait_for_others(&self, open: &InputRequests) -> bool {
        !self.may_answer && open.iter().any(|(_, request)| matches!(request, InputRequest::Elicit(_)))
    }

    fn is_for_client(&self, request: &InputRequest) -> bool {
        // > A server **MUST NOT** send requests for capabilities that were not negotiated.
        self.session.missing(request) == AskSupport::NONE
            && (self.may_answer || !matches!(request, InputRequest::Elicit(_)))
    }

    fn send_one(&mut self, request: &InputRequest, asked: AskedQuestion, given: Option<&str>) {
        let task = sealed::text(self.task);
        let is_url = matches!(request, InputRequest::Elicit(elicit) if elicit.is_url());
        let named = || given.map_or_else(|| format!("{task}.{}", asked.key()), ToOwned::to_owned);
        let elicitation_id = is_url.then(named);
        let (elicitation_id, related_task) = (elicitation_id.as_deref(), Some(task.as_str()));
        let question = Question { key: asked.key(), request, elicitation_id, related_task };
        match OutboundRequest::send(self.session, self.outbox, &self.scopes, &question, self.wait) {
            Ok(outbound) => self.sent.push(SentQuestion { outbound: Some(outbound), asked }),
            Err(fault) => {
                tracing::error!(task, fault = %escaped(&fault), "a question of a task cannot be written");
            }
        }
    }

    /// Polls for the end of a question that was sent. The question stays with this request until it is not open any more.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<(String, AskEnd)> {
        for sent in &mut self.sent {
            if let Some(outbound) = &mut sent.outbound
                && let Poll::Ready(end) = outbound.poll(cx)
            {
                // Too late: the client gets a cancellation of the question.
                sent.outbound = None;
                return Poll::Ready((sent.asked.key().to_owned(), end));
            }
        }
        Poll::Pending
    }
}
