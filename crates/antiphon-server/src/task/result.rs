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
    requests::{Addressed, SettingsOf, addressed, send},
    snapshot::{End, Message},
    view,
    watch::Changes,
};
use crate::{
    Caller, Request,
    refusal::Refusal,
    runtime::Runtime,
    session::{AnswerTimeout, AskEnd, not_answered},
    subscribe::registry::{Change, SubscriptionHandle},
};
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
    let mut addressed = addressed(server, request, caller, settings).await?;
    let id = id::text(addressed.key);
    if let Some(end) = end_of(server, &addressed, request.session.is_some()) {
        return end.map(|result| (id, TaskResult::Final(result)));
    }
    // A request that waits counts as a subscription, and ends with all subscriptions if the server drains.
    let place = server.subscriptions.join([false; 3], Vec::new(), &server.limits)?;
    let mut pushed = pushed(server, request, caller, &addressed, settings);
    // Before the next look, so that no change is missed.
    let mut changes = Changes::of(addressed.tasks);
    loop {
        addressed.reload(server).await?;
        if let Some(end) = end_of(server, &addressed, request.session.is_some()) {
            return end.map(|result| (id, TaskResult::Final(result)));
        }
        let view = view::detailed(server, addressed.key, &addressed.row, addressed.snapshot.clone());
        let open = view.input_requests().cloned().unwrap_or_default();
        if request.session.is_none() && !open.is_empty() {
            return Ok((id, TaskResult::Questions(open)));
        }
        if let Some(pushed) = &mut pushed {
            pushed.send(&open, |key| addressed.snapshot.questions.elicitation_id(key));
        }
        tokio::select! {
            () = changes.of_task(addressed.key) => {}
            (key, end) = answered(&mut pushed) => take(server, &addressed, key, end).await?,
            () = drained(&place) => return Err(Refusal::Busy),
        }
    }
}

/// Returns the result of a task that is over.
///
/// > For tasks in a terminal status, receivers **MUST** return from `tasks/result` exactly what the underlying request would have
/// > returned, whether that is a successful result or a JSON-RPC error.
fn end_of(
    server: &Runtime,
    addressed: &Addressed<'_>,
    in_session: bool,
) -> Option<Result<Box<RawValue>, Refusal>> {
    let Addressed { key, row, snapshot, .. } = addressed;
    if is_cancelled(server, *key, row, snapshot) {
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
async fn take(
    server: &Arc<Runtime>,
    addressed: &Addressed<'_>,
    key: String,
    end: AskEnd,
) -> Result<(), Refusal> {
    match end {
        AskEnd::Answer(Ok(answer)) => send(server, addressed, &Message::Answers(vec![(key, answer)])).await,
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
