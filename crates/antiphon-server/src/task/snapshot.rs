//! The snapshot of a task: all that a process needs to run its next leg, and all that its client sees.

use super::questions::Questions;
use crate::{
    Request, TraceContext,
    clock::{millis, seconds},
    runtime::Runtime,
};
use antiphon_seal::{Binding, Principal};
use antiphon_store::TaskKey;
use antiphon_wire::{AskSupport, ErrorObject, TaskStatus, escaped};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use std::time::Duration;

/// The longest time for which something that is sealed in a store can be opened.
const LONGEST: Duration = Duration::from_secs(390 * 24 * 3600);

/// The snapshot of a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Snapshot {
    pub(super) request: TaskRequest,
    pub(super) principal: Option<StoredPrincipal>,
    /// The digest of the answers of the leg that has become the task, if that leg was claimed: the same request, sent again, gets
    /// this task.
    #[serde(default)]
    pub(super) created_by: Option<String>,
    /// The moments of creation and of the last change, in Unix milliseconds.
    pub(super) created: u64,
    pub(super) updated: u64,
    /// The time from the creation, in milliseconds.
    pub(super) ttl: Option<u64>,
    pub(super) status: Option<String>,
    pub(super) questions: Questions,
    /// The state of the next leg.
    pub(super) state: Option<String>,
    /// The leg that runs, or ran in a process that died. It runs again with the same input.
    pub(super) leg: Option<LegInput>,
    /// True if the next leg needs no answer.
    pub(super) runs: bool,
    /// The second at which the first open question expires, in Unix seconds.
    pub(super) deadline: Option<u64>,
    pub(super) cancellation: Cancellation,
    /// True if a cancellation that was accepted before the end is in the snapshot of the end: the task began in an earlier form,
    /// in which it stays cancelled.
    #[serde(default)]
    pub(super) keeps_cancellation: bool,
    /// The end of the last leg, until the messages that came before it are taken.
    #[serde(default)]
    pub(super) ending: Option<Ending>,
    /// The number of legs in a row that failed for now.
    pub(super) failures: u32,
    pub(super) end: Option<End>,
}

/// The request that has become the task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct TaskRequest {
    pub(super) name: String,
    pub(super) arguments: Option<Box<RawValue>>,
    pub(super) client_info: Option<Box<RawValue>>,
    /// The capabilities of the client, as an object.
    pub(super) capabilities: serde_json::Map<String, serde_json::Value>,
    /// The trace of all legs.
    #[serde(default)]
    pub(super) trace: Option<TraceContext>,
}

/// The input of a leg, which stays the same if the leg runs again.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct LegInput {
    /// The answers, by the paths of their questions.
    pub(super) answers: Vec<(String, Box<RawValue>)>,
    /// True if the first new step is refused.
    pub(super) refuses_step: bool,
}

/// The cancellation of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Cancellation {
    None,
    /// The client has asked for it, and the handler does not know yet.
    Requested,
    /// The handler knows. It may compensate.
    Met {
        /// The number of questions that were cancelled since.
        asked: u32,
    },
}

/// The end of a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum End {
    Completed(Box<RawValue>),
    Failed(ErrorObject),
    Cancelled,
}

/// The end of the last leg of a task that keeps its cancellation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Ending {
    pub(super) end: End,
    /// True once requests see that the task ends: a message that was accepted before is in the queue then.
    pub(super) is_stored: bool,
}

/// A principal in a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredPrincipal {
    issuer: Option<String>,
    client: Option<String>,
    subject: Option<String>,
}

impl StoredPrincipal {
    pub(super) fn of(principal: &Principal) -> Self {
        let part = |part: Option<&str>| part.map(ToOwned::to_owned);
        Self {
            issuer: part(principal.issuer()),
            client: part(principal.client_id()),
            subject: part(principal.subject()),
        }
    }

    fn to_principal(&self) -> Principal {
        // An empty part counts as none.
        let part = |part: &Option<String>| part.clone().unwrap_or_default();
        Principal::user(part(&self.subject))
            .with_client_id(part(&self.client))
            .with_issuer(part(&self.issuer))
    }
}

/// A message to a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Message {
    /// Answers, by the keys of their questions on the wire.
    Answers(Vec<(String, Box<RawValue>)>),
    Cancel,
}

impl Snapshot {
    /// Creates the snapshot of a task that begins with this request.
    pub(super) fn new(
        server: &Runtime,
        request: &Request<'_>,
        name: &str,
        principal: Option<&Principal>,
        ttl: Option<Duration>,
    ) -> Self {
        let now = millis(server.clock.now());
        let asks = request.meta.asks.unwrap_or_default();
        let capabilities = antiphon_wire::ClientCapabilities::for_asks(asks);
        Self {
            request: TaskRequest {
                name: name.to_owned(),
                arguments: request.params.arguments.map(ToOwned::to_owned),
                client_info: request.meta.client_info.map(ToOwned::to_owned),
                capabilities: capabilities.with_extension(antiphon_wire::TASKS_EXTENSION).0,
                trace: TraceContext::of(request.params.meta),
            },
            principal: principal.map(StoredPrincipal::of),
            created_by: None,
            created: now,
            updated: now,
            ttl: ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)),
            status: None,
            questions: Questions::default(),
            state: None,
            leg: None,
            runs: true,
            deadline: None,
            cancellation: Cancellation::None,
            keeps_cancellation: false,
            ending: None,
            failures: 0,
            end: None,
        }
    }

    pub(super) fn principal(&self) -> Option<Principal> {
        self.principal.as_ref().map(StoredPrincipal::to_principal)
    }

    /// Returns true if this caller created the task.
    pub(super) fn is_of(&self, principal: Option<&Principal>) -> bool {
        self.principal == principal.map(StoredPrincipal::of)
    }

    /// Notes that the client wants the task to be cancelled.
    pub(super) fn request_cancellation(&mut self) {
        if self.cancellation == Cancellation::None {
            self.cancellation = Cancellation::Requested;
        }
    }

    pub(super) fn asks(&self) -> AskSupport {
        antiphon_wire::ClientCapabilities(self.request.capabilities.clone()).asks()
    }

    /// Returns the status, without the messages that wait in the queue.
    pub(super) fn task_status(&self) -> TaskStatus {
        match &self.end {
            Some(End::Completed(_)) => TaskStatus::Completed,
            Some(End::Failed(_)) => TaskStatus::Failed,
            Some(End::Cancelled) => TaskStatus::Cancelled,
            None if self.questions.is_empty() => TaskStatus::Working,
            None => TaskStatus::InputRequired,
        }
    }

    /// Returns the time for which something of this task can be opened.
    pub(super) fn state_ttl(&self, server: &Runtime) -> Duration {
        let rest = self.ttl.map(|ttl| {
            let end = self.created.saturating_add(ttl) / 1000;
            Duration::from_secs(end.saturating_sub(seconds(server.clock.now())).saturating_add(3600))
        });
        rest.unwrap_or(LONGEST).min(LONGEST)
    }

    /// Seals the snapshot for its row.
    pub(super) fn seal(&self, server: &Runtime, key: TaskKey) -> Option<Vec<u8>> {
        seal(server, key, "snapshot", self, LONGEST)
    }

    /// Opens the snapshot of a row.
    pub(super) fn open(server: &Runtime, key: TaskKey, sealed: &[u8]) -> Option<Self> {
        open(server, key, "snapshot", sealed)
    }
}

impl Message {
    pub(super) fn seal(&self, server: &Runtime, key: TaskKey) -> Option<Vec<u8>> {
        seal(server, key, "message", self, LONGEST)
    }

    pub(super) fn open(server: &Runtime, key: TaskKey, sealed: &[u8]) -> Option<Self> {
        open(server, key, "message", sealed)
    }
}

fn binding(id: &str) -> Binding<'_> {
    Binding { method: "tasks", target: id, arguments: None, principal: None, tool_version: 0 }
}

fn seal(
    server: &Runtime,
    key: TaskKey,
    purpose: &str,
    value: &impl Serialize,
    ttl: Duration,
) -> Option<Vec<u8>> {
    let text = serde_json::to_vec(value).map_err(|fault| fault.to_string());
    let id = super::id::text(key);
    let sealed = text.and_then(|text| {
        let sealer = server.sealing.sealer();
        sealer
            .seal_stored(purpose, &binding(&id), &text, ttl, server.clock.now())
            .map_err(|fault| fault.to_string())
    });
    sealed
        .map_err(|cause| tracing::error!(cause = %escaped(&cause), "the state of a task cannot be sealed"))
        .ok()
        .map(String::into_bytes)
}

fn open<T: DeserializeOwned>(server: &Runtime, key: TaskKey, purpose: &str, sealed: &[u8]) -> Option<T> {
    let id = super::id::text(key);
    let text = std::str::from_utf8(sealed).ok()?;
    let sealer = server.sealing.sealer();
    let opened = sealer.open_stored(text, purpose, &binding(&id), server.clock.now());
    let read = opened.map_err(|fault| fault.to_string()).and_then(|payload| {
        serde_json::from_slice(&payload).map_err(|fault| crate::call::ctx::without_value(&fault))
    });
    read.map_err(|cause| tracing::error!(task = id, cause = %escaped(&cause), "the state of a task cannot be opened: its key may be missing"))
        .ok()
}
