//! The reply of a call: written, and committed first if its leg was claimed; and the writing of every other result.

use crate::{
    at_most_once::{ClaimedLeg, StoredReply},
    errors::refusal::{Refusal, StepsKept},
    reply::{HasMeta, WithServerInfo},
    request::{carrier::TaskForm, receive::Request},
    runtime::Runtime,
    session::{InSession, SessionResult},
};
use antiphon_wire::{
    Complete, CreateTaskResult, InputRequiredResult, LegacyCreateTaskResult, escaped,
    write_result as write_response,
};
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::sync::Arc;

/// The reply of a call.
pub(super) enum CallReply<T> {
    Complete(T),
    InputRequired(InputRequiredResult),
    /// The call has become a task.
    Task(CreateTaskResult),
    /// The reply to an earlier delivery of the same request.
    Again(StoredReply),
}

/// A reply before it is written. If its leg was claimed, it is committed before it leaves.
pub(super) struct UnsentReply<T> {
    pub(super) reply: Result<CallReply<T>, Refusal>,
    pub(super) claim: Option<Arc<ClaimedLeg>>,
}

impl<T> From<CallReply<T>> for UnsentReply<T> {
    fn from(reply: CallReply<T>) -> Self {
        Self { reply: Ok(reply), claim: None }
    }
}

/// Writes the reply of a call. The reply of a claimed leg is committed before it leaves.
pub(super) fn finish<'a, T: HasMeta + Serialize + SessionResult + Send + 'a>(
    server: &'a Arc<Runtime>,
    request: &'a Request<'_>,
    unsent: UnsentReply<T>,
) -> Finished<'a> {
    let UnsentReply { reply, claim } = unsent;
    match claim {
        None => Finished::Written(reply.and_then(|reply| write_reply(server, request, reply))),
        Some(claim) => Finished::Commits(Box::pin(async move {
            match reply {
                Ok(reply) => committed(server, request, &claim, reply).await,
                Err(refusal) => {
                    let refusal = refusal.of_the_only_run(claim.has_effects_of_its_own());
                    refused_after_claim(&claim, &refusal).await?;
                    Err(refusal)
                }
            }
        })),
    }
}

/// The written reply of a leg. An enum and no async function: the future of a request that is not claimed stays small.
pub(super) enum Finished<'a> {
    Written(Result<Vec<u8>, Refusal>),
    Commits(BoxFuture<'a, Result<Vec<u8>, Refusal>>),
}

/// Writes and commits the reply of a claimed leg.
async fn committed<T: HasMeta + Serialize + SessionResult>(
    server: &Runtime,
    request: &Request<'_>,
    claim: &ClaimedLeg,
    reply: CallReply<T>,
) -> Result<Vec<u8>, Refusal> {
    let asks = matches!(reply, CallReply::InputRequired(_));
    let body = write_reply(server, request, reply)?;
    let result = result_of(&body)?;
    let reply = if asks { StoredReply::Questions(result) } else { StoredReply::Result(result) };
    claim.commit(&reply).await?;
    Ok(body)
}

/// Gives a claimed leg back that failed, or commits its error if steps have run whose record is lost.
async fn refused_after_claim(claim: &ClaimedLeg, refusal: &Refusal) -> Result<(), Refusal> {
    match refusal {
        Refusal::AfterSteps { kept: StepsKept::Nowhere, .. } => {
            let error = to_raw_value(&refusal.to_error()).map_err(|_| Refusal::Internal)?;
            claim.commit(&StoredReply::Error(error)).await
        }
        _ => {
            claim.release().await;
            Ok(())
        }
    }
}

/// Returns the result in the body of a response.
pub(crate) fn result_of(body: &[u8]) -> Result<Box<RawValue>, Refusal> {
    #[derive(serde::Deserialize)]
    struct Response {
        result: Box<RawValue>,
    }
    serde_json::from_slice::<Response>(body).map(|response| response.result).map_err(|_| Refusal::Internal)
}

fn write_reply<T: HasMeta + Serialize + SessionResult>(
    server: &Runtime,
    request: &Request<'_>,
    reply: CallReply<T>,
) -> Result<Vec<u8>, Refusal> {
    let server_info = &*server.server_info.raw;
    match reply {
        CallReply::Complete(result) => write_result(server, request, result),
        CallReply::InputRequired(result) => encode(request, &WithServerInfo { result: &result, server_info }),
        CallReply::Task(created) => write_created(server, request, created),
        CallReply::Again(StoredReply::Result(text) | StoredReply::Questions(text)) => encode(request, &text),
        CallReply::Again(StoredReply::Task(task)) => encode(request, &task.reply),
        CallReply::Again(StoredReply::Error(text)) => {
            let error = serde_json::from_str(text.get()).map_err(|_| Refusal::Internal)?;
            Err(Refusal::Again(Box::new(error)))
        }
    }
}

/// Writes the result of a call that is over. In a session, `_meta` has only what the handler has set.
pub(crate) fn write_result<T: HasMeta + Serialize + SessionResult>(
    server: &Runtime,
    request: &Request<'_>,
    mut result: T,
) -> Result<Vec<u8>, Refusal> {
    if let Some(session) = &request.session {
        return encode(request, &InSession { version: session.version(), result: &result });
    }
    match result.meta_mut() {
        None => encode(request, &WithServerInfo { result: &result, server_info: &server.server_info.raw }),
        Some(members) => {
            server.server_info.join(members);
            encode(request, &result)
        }
    }
}

/// Writes the response with this result.
pub(crate) fn encode(request: &Request<'_>, result: &impl Serialize) -> Result<Vec<u8>, Refusal> {
    write_response(&request.id, result).map_err(|fault| {
        tracing::error!(method = %escaped(&request.method), fault = %escaped(&fault), "a result cannot be written as JSON");
        Refusal::Internal
    })
}

/// Writes a result in the form of the request's version.
pub(super) fn write(
    request: &Request<'_>,
    result: &(impl Serialize + SessionResult),
) -> Result<Vec<u8>, Refusal> {
    match &request.session {
        None => encode(request, result),
        Some(session) => encode(request, &InSession { version: session.version(), result }),
    }
}

/// Writes the result of a call that has become a task.
pub(super) fn write_created(
    server: &Runtime,
    request: &Request<'_>,
    created: CreateTaskResult,
) -> Result<Vec<u8>, Refusal> {
    match TaskForm::of(server, request) {
        // > Receivers that accept a task-augmented request **MUST** return a `CreateTaskResult` as the response.
        Some(TaskForm::Session | TaskForm::Draft) => {
            write_of_task(server, request, &LegacyCreateTaskResult::new(created.task))
        }
        Some(TaskForm::Extension) | None => {
            encode(request, &WithServerInfo { result: &created, server_info: &server.server_info.raw })
        }
    }
}

/// A result of the draft: as that of an earlier revision, with the members that every result of 2026-07-28 has.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DraftResult<'a, T> {
    result_type: Complete,
    #[serde(flatten)]
    result: &'a T,
}

/// Writes a result about a task in the form of the request: a session has no members of 2026-07-28.
pub(super) fn write_of_task(
    server: &Runtime,
    request: &Request<'_>,
    result: &impl Serialize,
) -> Result<Vec<u8>, Refusal> {
    match &request.session {
        Some(_) => encode(request, result),
        None => {
            let result = &DraftResult { result_type: Complete, result };
            encode(request, &WithServerInfo { result, server_info: &server.server_info.raw })
        }
    }
}
