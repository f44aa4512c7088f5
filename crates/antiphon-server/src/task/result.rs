//! `tasks/result` in the forms of sessions and of the draft: it waits for the end of a task.
//!
//! ```text
//!  over? ──▶ the result of the call, or its error
//!    │ no
//!  questions? ──▶ draft: they are the result      session: each is sent once, as a request of the server
//!    │                                                │ its response is an answer to the task
//!    └── a change of the task ◀───────────────────────┘
//! ```

use super::{
    earlier::is_cancelled,
    id,
    pushed::{PushRules, PushedQuestions},
    requests::{Addressed, SettingsOf, addressed, load, not_found, send_to},
    snapshot::{End, Message, Snapshot},
    view,
    watch::Changes,
};
use crate::{
    Caller, Request,
    refusal::Refusal,
    runtime::Runtime,
    session::{AnswerTimeout, AskEnd, not_answered},
    subscribe::registry::{Change, SubscriptionHandle, WatchList},
    task_registry::Tasks,
};
use antiphon_seal::Principal;
use antiphon_store::{TaskKey, TaskRow};
use antiphon_wire::{ErrorCode, ErrorObject, InputRequests, escaped};
use serde_json::{json, value::RawValue};
use std::{future::poll_fn, sync::Arc, task::Poll};

/// The reply to `tasks/result`.
pub(crate) enum TaskResult {
    /// The result of the call, as JSON.
    Final(Box<RawValue>),
    /// The open questions, in the draft.
    Questions(InputRequests),
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
) -> Result<(String, TaskResult), Refusal> {
    let addressed = addressed(server, request, caller, settings).await?;
    let id = id::text(addressed.key);
    let in_session = request.session.is_some();
    if let Some(end) = end_of(server, addressed.key, &addressed.row, &addressed.snapshot, in_session) {
        return end.map(|result| (id, TaskResult::Final(result)));
    }
    // A request that waits counts as a subscription, and ends with all subscriptions if the server drains.
    let account = server.accounts.of(caller, addressed.principal.as_ref());
    let place = server.subscriptions.join(account, WatchList::default(), &server.limits)?;
    let mut pushed = pushed(server, request, caller, &addressed, settings);
    let Addressed { tasks, key, principal, row, snapshot } = addressed;
    // A request may wait for days.
    drop((row, snapshot));
    let waiting = Waiting { server, tasks, key, principal, in_session };
    // Before the next look, so that no change is missed.
    let mut changes = Changes::of(tasks);
    loop {
        if let Some(result) = waiting.look(&mut pushed).await? {
            return Ok((id, result));
        }
        tokio::select! {
            () = changes.of_task(key) => {}
            (question, end) = answered(&mut pushed) => take(&waiting, question, end).await?,
            () = drained(&place) => return Err(Refusal::Busy),
        }
    }
}

/// A request that waits for the end of a task, without a copy of the task.
struct Waiting<'a> {
    server: &'a Arc<Runtime>,
    tasks: &'a Tasks,
    key: TaskKey,
    principal: Option<Principal>,
    in_session: bool,
}

impl Waiting<'_> {
    /// Returns the reply, if the task has come so far. Questions of a session are sent.
    async fn look(&self, pushed: &mut Option<PushedQuestions<'_>>) -> Result<Option<TaskResult>, Refusal> {
        let Self { server, tasks, key, principal, in_session } = self;
        let loaded = load(server, tasks, *key, principal.as_ref()).await?;
        let (row, snapshot) = loaded.ok_or_else(not_found)?;
        if let Some(end) = end_of(server, *key, &row, &snapshot, *in_session) {
            return end.map(|result| Some(TaskResult::Final(result)));
        }
        let view = view::detailed(server, *key, &row, snapshot.clone());
        let open = view.input_requests().cloned().unwrap_or_default();
        if !in_session && !open.is_empty() {
            return Ok(Some(TaskResult::Questions(open)));
        }
        if let Some(pushed) = pushed {
            // > it **MUST** block the response until the task reaches a terminal status.
            //
            // An error tells the caller what the wait would not.
            if pushed.wait_for_others(&open) {
                return Err(Refusal::NotApprover);
            }
            pushed.send(&open, |question| snapshot.questions.elicitation_id(question));
        }
        Ok(None)
    }
}

/// Returns the result of a task that is over.
///
/// > For tasks in a terminal status, receivers **MUST** return from `tasks/result` exactly what the underlying request would have
/// > returned, whether that is a successful result or a JSON-RPC error.
fn end_of(
    server: &Runtime,
    key: TaskKey,
    row: &TaskRow,
    snapshot: &Snapshot,
    in_session: bool,
) -> Option<Result<Box<RawValue>, Refusal>> {
    if is_cancelled(server, key, row, snapshot) {
        let error = ErrorObject::new(ErrorCode::INTERNAL_ERROR, "The task was cancelled: it has no result");
        return Some(Err(Refusal::Again(Box::new(error.with_data(json!({ "reason": "cancelled" }))))));
    }
    match snapshot.end.as_ref()? {
        End::Completed(result) => Some(Ok(result.clone())),
        End::Failed(error) => {
            let mut error = error.clone();
            if in_session && error.code == ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY {
                // The revision has no code for a missing capability.
                error = ErrorObject::invalid_request(error.message);
            }
            Some(Err(Refusal::Again(Box::new(error))))
        }
        End::Cancelled => None,
    }
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
    let settings = settings(&addressed.snapshot.request.name);
    let rules = PushRules {
        scopes: settings.map(|settings| settings.scopes.clone()).unwrap_or_default(),
        may_answer: settings.is_none_or(|tool| tool.approved_by.permits(addressed.principal.as_ref())),
        // The task sets no shorter limit: after that, another `tasks/result` asks again.
        wait: AnswerTimeout { limit: server.limits.max_answer_timeout, at_most: None },
        at_most: server.limits.asks,
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
async fn take(waiting: &Waiting<'_>, key: String, end: AskEnd) -> Result<(), Refusal> {
    let Waiting { server, tasks, key: task, .. } = *waiting;
    match end {
        AskEnd::Answer(Ok(answer)) => {
            send_to(server, tasks, task, &Message::Answers(vec![(key, answer)])).await
        }
        // The task still waits, and another request may ask again.
        AskEnd::Answer(Err(error)) => Err(Refusal::UserFacing(not_answered(&key, &error))),
        AskEnd::SessionOver => Err(Refusal::UserFacing("The session ended".to_owned())),
        AskEnd::TooLate(waited) => {
            let seconds = waited.as_secs();
            tracing::debug!(task = %escaped(&task), key, seconds, "a question of a task was not answered in time");
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
