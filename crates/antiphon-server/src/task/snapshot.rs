//! The snapshot of a task: all that a process needs to run its next leg, and all that its client sees.

use super::{
    questions::Questions,
    sealed::{
        Cancellation, LONGEST, Parts, Progress, Shown, ShownEnd, StoredPrincipal, content_purpose, open,
        parts_name, seal, seal_bytes,
    },
};
use crate::{
    options::{limits::CLIENT_INFO, millis, seconds},
    request::{extensions_in, receive::Request},
    runtime::Runtime,
    trace::{TraceContext, otel},
};
use antiphon_seal::Principal;
use antiphon_store::TaskKey;
use antiphon_wire::{
    AskSupport, CallToolResult, ClientCapabilities, ErrorObject, TASKS_EXTENSION, TaskStatus,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::time::Duration;

/// The snapshot of a task. Its row has it in [`Parts`].
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
    /// The times from the creation, in milliseconds: that of the creating reply, and that for which a task that is over is kept.
    pub(super) ttl: Option<u64>,
    pub(super) kept: Option<u64>,
    /// The text of the last progress.
    pub(super) progress: Option<Progress>,
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
    /// The values of layers that its legs see, by name.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub(super) kept: serde_json::Map<String, serde_json::Value>,
}

/// The input of a leg, which stays the same if the leg runs again.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct LegInput {
    /// The answers, by the paths of their questions.
    pub(super) answers: Vec<(String, Box<RawValue>)>,
    /// True if the first new step is refused.
    pub(super) refuses_step: bool,
}

impl LegInput {
    /// Adds the cancellations of questions, in the place of answers that are not valid.
    pub(super) fn cancel(&mut self, cancelled: Vec<(String, Box<RawValue>)>) {
        self.answers.retain(|(path, _)| cancelled.iter().all(|(of, _)| of != path));
        self.answers.extend(cancelled);
    }
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

/// Adds the extensions that the request declares. Ones that are too long to keep are left out.
fn with_extensions(mut capabilities: ClientCapabilities, request: &Request<'_>) -> ClientCapabilities {
    let declared = match &request.session {
        Some(session) => session.extensions().map(|text| &**text),
        None => extensions_in(request.params.meta),
    };
    let declared = declared.filter(|text| text.get().len() <= CLIENT_INFO);
    if let Some(declared) = declared.and_then(|text| serde_json::from_str(text.get()).ok()) {
        capabilities.0.insert("extensions".to_owned(), serde_json::Value::Object(declared));
    }
    capabilities
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
        let capabilities = ClientCapabilities::for_asks(asks);
        let capabilities = with_extensions(capabilities, request);
        Self {
            request: TaskRequest {
                name: name.to_owned(),
                arguments: request.params.arguments.map(ToOwned::to_owned),
                client_info: request.meta.client_info.map(ToOwned::to_owned),
                capabilities: capabilities.with_extension(TASKS_EXTENSION).0,
                trace: TraceContext::of(request.params.meta).or_else(otel::current),
                kept: serde_json::Map::new(),
            },
            principal: principal.map(StoredPrincipal::of),
            created_by: None,
            created: now,
            updated: now,
            ttl: ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)),
            kept: None,
            progress: None,
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

    /// Notes that the client wants the task to be cancelled.
    pub(super) fn request_cancellation(&mut self) {
        if self.cancellation == Cancellation::None {
            self.cancellation = Cancellation::Requested;
        }
    }

    pub(super) fn asks(&self) -> AskSupport {
        ClientCapabilities(self.request.capabilities.clone()).asks()
    }

    /// Takes the text of progress.
    pub(super) fn report(&mut self, text: String) {
        self.progress = Some(Progress { text, of: self.status() });
    }

    /// Returns the status, without the messages that wait in the queue.
    fn status(&self) -> TaskStatus {
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

    /// Returns the part for requests. `parts` is the name of the other parts.
    pub(super) fn to_shown(&self, parts: String) -> Shown {
        Shown {
            parts,
            tool: self.request.name.clone(),
            principal: self.principal.clone(),
            created_by: self.created_by.clone(),
            created: self.created,
            updated: self.updated,
            ttl: self.ttl,
            kept: self.kept,
            progress: self.progress.clone(),
            questions: self.questions.to_shown(),
            cancellation: self.cancellation,
            is_ending: self.ending.is_some(),
            end: self.end.as_ref().map(|end| match end {
                End::Completed(result) => ShownEnd::Completed { failure: failure_in(result) },
                End::Failed(error) => ShownEnd::Failed { message: error.message.clone() },
                End::Cancelled => ShownEnd::Cancelled,
            }),
        }
    }

    /// Seals the snapshot for its row. A text that belongs to an earlier status is dropped.
    pub(super) fn seal(&mut self, server: &Runtime, key: TaskKey) -> Option<Vec<u8>> {
        let status = self.status();
        self.progress = self.progress.take().filter(|progress| progress.of == status);
        let name = parts_name()?;
        let content = match &self.end {
            Some(End::Completed(result)) => result.get().as_bytes().to_vec(),
            Some(End::Failed(error)) => serde_json::to_vec(error).ok()?,
            None if !self.questions.is_empty() => self.questions.to_json().into_bytes(),
            Some(End::Cancelled) | None => Vec::new(),
        };
        let content = match content.is_empty() {
            true => Vec::new(),
            false => seal_bytes(server, key, &content_purpose(&name), &content)?,
        };
        let record = match self.end {
            Some(_) => Vec::new(),
            None => seal(server, key, &record_purpose(&name), self)?,
        };
        let shown = seal(server, key, "shown", &self.to_shown(name))?;
        Parts { shown: &shown, content: &content, record: &record }.join()
    }

    /// Opens the whole snapshot of a row, whose task is not over.
    pub(super) fn open(server: &Runtime, key: TaskKey, sealed: &[u8]) -> Option<Self> {
        let shown = Shown::open(server, key, sealed)?;
        let record = Parts::of(sealed)?.record;
        let mut snapshot: Self = open(server, key, &record_purpose(&shown.parts), record)?;
        if !snapshot.questions.is_empty() {
            snapshot.questions.read_json(&shown.open_content(server, key, sealed)?)?;
        }
        Some(snapshot)
    }
}

fn record_purpose(parts: &str) -> String {
    format!("record {parts}")
}

/// Returns the text of a tool's error.
fn failure_in(result: &RawValue) -> Option<String> {
    let result: CallToolResult = serde_json::from_str(result.get()).ok()?;
    result.failed().then(|| result.first_text().unwrap_or("The tool failed").to_owned())
}
