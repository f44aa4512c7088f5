//! A task, as plain data.

use crate::{asks::questions::ServerIdentity, call::must_be_known};
use antiphon_wire::{InputResponses, Task};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{
    collections::BTreeSet,
    fmt,
    time::{Duration, SystemTime},
};

/// The version of the format in which handles are written.
const FORMAT: u32 = 2;

/// A task of a server: all data that is needed to continue it, in this process or another.
///
/// A handle is plain data: write it as JSON text, store it, read it back days later, and pass it to
/// [`Client::task`](crate::Client::task) of a client of the same server.
///
/// > Clients **SHOULD** persist task IDs to durable storage so that polling can resume after a crash or restart.
///
/// # Security
///
/// A handle contains the id of the task, and answers of the person that were not sent yet. On a server without
/// authentication, anyone who has the id can read the task and answer its questions. Store a handle like a password.
/// `Debug` shows neither the id nor the answers.
///
/// # Versions
///
/// A handle from an older version of this crate can be read. A handle from a newer version is refused, with an error that
/// names the reason.
#[derive(Clone, PartialEq)]
pub struct TaskHandle {
    server: ServerIdentity,
    task_id: String,
    form: TaskForm,
    tool: Option<String>,
    round: u32,
    answered: BTreeSet<String>,
    unsent: Unsent,
    /// The state that the answers carry, in the draft.
    state: Option<String>,
    created_at: Option<String>,
    ttl_ms: Option<u64>,
    poll_interval_ms: Option<u64>,
    /// The moment in which this client learned of the task, by its own clock, in milliseconds since 1970.
    received_at_ms: Option<u64>,
}

/// The answers that were not sent yet.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
struct Unsent(InputResponses);

impl PartialEq for Unsent {
    fn eq(&self, other: &Self) -> bool {
        let texts = |of: &Self| -> Vec<(String, String)> {
            of.0.iter().map(|(key, answer)| (key.to_owned(), answer.get().to_owned())).collect()
        };
        texts(self) == texts(other)
    }
}

impl TaskHandle {
    /// The handle of a task that a tool call became.
    pub(crate) fn of_created(
        server: ServerIdentity,
        tool: &str,
        round: u32,
        (task, form): (&Task, TaskForm),
    ) -> Self {
        let mut handle = Self::of_id(server, task.task_id.clone(), form);
        (handle.tool, handle.round) = (Some(tool.to_owned()), round);
        handle.update(task);
        handle
    }

    /// A handle made from an id alone.
    pub(crate) fn of_id(server: ServerIdentity, task_id: String, form: TaskForm) -> Self {
        Self {
            server,
            task_id,
            form,
            tool: None,
            round: 0,
            answered: BTreeSet::new(),
            unsent: Unsent::default(),
            state: None,
            created_at: None,
            ttl_ms: None,
            poll_interval_ms: None,
            received_at_ms: None,
        }
    }

    /// The server that has the task.
    pub fn server(&self) -> &ServerIdentity {
        &self.server
    }

    /// The id of the task.
    pub fn task_id(&self) -> &str {
        &self.task_id
    }

    /// The form in which the server spoke about the task: when it was made, and from the latest
    /// [`ClientTask::get`](crate::ClientTask::get) on. If the server speaks another form now, requests are sent in that form.
    pub fn form(&self) -> TaskForm {
        self.form
    }

    /// The tool that was called; `None` if the handle was made from an id alone.
    pub fn tool(&self) -> Option<&str> {
        self.tool.as_deref()
    }

    /// The number of rounds of questions so far, those before the task included.
    pub fn round(&self) -> u32 {
        self.round
    }

    /// The keys of the questions whose answers the server has acknowledged. They are not asked again.
    pub fn answered(&self) -> impl Iterator<Item = &str> {
        self.answered.iter().map(String::as_str)
    }

    /// The answers that were not sent yet, or that the server has not acknowledged.
    pub fn unsent(&self) -> &InputResponses {
        &self.unsent.0
    }

    /// The moment of creation, in ISO 8601, as the server wrote it; `None` until the server has sent the task.
    pub fn created_at(&self) -> Option<&str> {
        self.created_at.as_deref()
    }

    /// The time from the creation after which the server may discard the task; `None` for no limit, and until the server has
    /// sent the task.
    pub fn ttl(&self) -> Option<Duration> {
        self.ttl_ms.map(Duration::from_millis)
    }

    /// The time between two polls that the server suggests, unchanged.
    pub fn poll_interval(&self) -> Option<Duration> {
        self.poll_interval_ms.map(Duration::from_millis)
    }

    /// Changes the target: the same server is now reached elsewhere. The id of the task and the answers will be sent there.
    pub fn retarget(&mut self, target: impl Into<String>) {
        self.server.target = target.into();
    }

    /// Stores the operational data of a reply.
    pub(crate) fn update(&mut self, task: &Task) {
        if !task.created_at.is_empty() {
            self.created_at = Some(task.created_at.clone());
        }
        // > This value MAY change over the lifetime of a task.
        (self.ttl_ms, self.poll_interval_ms) = (task.ttl_ms, task.poll_interval_ms);
        self.received_at_ms.get_or_insert_with(now_ms);
    }

    /// The time since this client learned of the task. Its own clock is read on both ends, so that it need not agree with
    /// the server's.
    pub(crate) fn age(&self) -> Duration {
        let age = self.received_at_ms.map(|received| now_ms().saturating_sub(received));
        Duration::from_millis(age.unwrap_or_default())
    }

    /// Stores the form in which the server speaks about the task.
    pub(crate) fn set_form(&mut self, form: TaskForm) {
        self.form = form;
    }

    /// The state that the answers carry.
    pub(crate) fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// Stores the state of the latest questions.
    ///
    /// > Clients SHOULD construct the results of those requests and call tasks/input_response with the inputResponses &
    /// > requestState (if present).
    pub(crate) fn set_state(&mut self, state: Option<String>) {
        self.state = state;
    }

    pub(crate) fn is_answered(&self, key: &str) -> bool {
        self.answered.contains(key) || self.unsent.0.get(key).is_some()
    }

    /// Begins the next round of questions, and returns its number.
    pub(crate) fn next_round(&mut self) -> u32 {
        self.round = self.round.saturating_add(1);
        self.round
    }

    /// Stores an answer, which is to be sent.
    pub(crate) fn store_answer(&mut self, key: &str, answer: &impl Serialize) {
        // The answer was checked, so it is JSON.
        let _ = self.unsent.0.insert(key, answer);
    }

    /// Marks answers as acknowledged.
    pub(crate) fn acknowledged(&mut self, sent: &InputResponses) {
        self.answered.extend(sent.iter().map(|(key, _)| key.to_owned()));
        self.keep_unsent(|key| sent.get(key).is_none());
    }

    /// Keeps the unsent answers whose keys fit, and drops the others.
    pub(crate) fn keep_unsent(&mut self, keep: impl Fn(&str) -> bool) {
        let mut kept = InputResponses::new();
        for (key, answer) in self.unsent.0.iter().filter(|(key, _)| keep(key)) {
            // A raw value is JSON already.
            let _ = kept.insert(key, &answer);
        }
        self.unsent.0 = kept;
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The serialized form. The version comes first, so that a newer format is refused before its fields are read.
#[derive(Serialize)]
struct TaskHandleOut<'a> {
    version: u32,
    server: &'a ServerIdentity,
    task_id: &'a str,
    form: TaskForm,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<&'a str>,
    round: u32,
    answered: &'a BTreeSet<String>,
    unsent: &'a Unsent,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    poll_interval_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    received_at_ms: Option<u64>,
}

#[derive(Deserialize)]
struct TaskHandleIn {
    #[serde(default, rename = "version")]
    _version: KnownFormat,
    server: ServerIdentity,
    task_id: String,
    /// The first builds that wrote format 2 named it `shape`.
    #[serde(default, alias = "shape")]
    form: TaskForm,
    #[serde(default)]
    tool: Option<String>,
    #[serde(default)]
    round: u32,
    #[serde(default)]
    answered: BTreeSet<String>,
    #[serde(default)]
    unsent: Unsent,
    #[serde(default)]
    state: Option<String>,
    #[serde(default)]
    created_at: Option<String>,
    #[serde(default)]
    ttl_ms: Option<u64>,
    #[serde(default)]
    poll_interval_ms: Option<u64>,
    #[serde(default)]
    received_at_ms: Option<u64>,
}

/// A version of the format that can be read here.
#[derive(Default)]
struct KnownFormat;

impl<'de> Deserialize<'de> for KnownFormat {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        must_be_known(u32::deserialize(deserializer)?, FORMAT, "task handle").map(|()| Self)
    }
}

impl Serialize for TaskHandle {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        TaskHandleOut {
            version: FORMAT,
            server: &self.server,
            task_id: &self.task_id,
            form: self.form,
            tool: self.tool(),
            round: self.round,
            answered: &self.answered,
            unsent: &self.unsent,
            state: self.state(),
            created_at: self.created_at(),
            ttl_ms: self.ttl_ms,
            poll_interval_ms: self.poll_interval_ms,
            received_at_ms: self.received_at_ms,
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for TaskHandle {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = TaskHandleIn::deserialize(deserializer)?;
        Ok(Self {
            server: read.server,
            task_id: read.task_id,
            form: read.form,
            tool: read.tool,
            round: read.round,
            answered: read.answered,
            unsent: read.unsent,
            state: read.state,
            created_at: read.created_at,
            ttl_ms: read.ttl_ms,
            poll_interval_ms: read.poll_interval_ms,
            received_at_ms: read.received_at_ms,
        })
    }
}

impl fmt::Debug for TaskHandle {
    /// Writes neither the id nor the answers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskHandle")
            .field("server", &self.server)
            .field("form", &self.form)
            .field("tool", &self.tool)
            .field("round", &self.round)
            .field("answered", &self.answered)
            .field("unsent", &self.unsent.0)
            .finish_non_exhaustive()
    }
}

/// The form in which a server speaks about a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TaskForm {
    /// The extension `io.modelcontextprotocol/tasks` of 2026-07-28: `tasks/get` returns questions and result.
    #[default]
    Extension,
    /// The experimental tasks of a session of 2025-11-25: `tasks/result` waits for the result, and the server sends its
    /// questions meanwhile.
    Session,
    /// The draft before the extension: `tasks/result` returns the questions, and `tasks/input_response` answers them. Calls ask
    /// for it with [`draft_tasks`](crate::ClientBuilder::draft_tasks).
    Draft,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn written() -> Value {
        json!({
            "server": {"target": "test"},
            "task_id": "s3cret-id",
            "form": "draft",
            "tool": "slow",
            "round": 2,
            "answered": ["a", "b"],
            "unsent": {"c": {"action": "accept", "content": {"pin": "s3cret"}}},
            "state": "s3cret-state",
            "created_at": "2026-01-01T00:00:00Z",
            "ttl_ms": 60000,
            "poll_interval_ms": 500,
            "received_at_ms": 1
        })
    }

    fn check(version: Option<u32>, expected: Result<(), &str>) {
        let mut text = serde_json::to_string(&written()).unwrap();
        if let Some(version) = version {
            text.insert_str(1, &format!(r#""version":{version},"#));
        }
        match (serde_json::from_str::<TaskHandle>(&text).map_err(|error| error.to_string()), expected) {
            (Ok(handle), Ok(())) => {
                let mut again = serde_json::to_value(&handle).unwrap();
                assert_eq!(again["version"], FORMAT);
                again.as_object_mut().unwrap().remove("version");
                assert_eq!(again, written());
                assert!(!format!("{handle:?}").contains("s3cret"), "{handle:?}");
                assert!(handle.age() > Duration::from_secs(60));
            }
            (Err(error), Err(text)) => assert!(error.contains(text), "{error}"),
            (read, expected) => panic!("{version:?}: {read:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn older_formats_are_read_and_newer_ones_refused() {
        check(None, Ok(()));
        check(Some(1), Ok(()));
        check(Some(FORMAT), Ok(()));
        check(Some(FORMAT + 1), Err("the task handle was written by a newer version of antiphon (format 3)"));
        // The first builds that wrote format 2 named the form `shape`.
        let mut shape = written();
        let form = shape.as_object_mut().unwrap().remove("form").unwrap();
        shape["shape"] = form;
        let read: TaskHandle = serde_json::from_value(shape).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap()["form"], "draft");
        // The version of a newer format is refused before any other member is read.
        let newer = serde_json::from_str::<TaskHandle>(r#"{"version":9,"server":[]}"#);
        assert!(newer.unwrap_err().to_string().contains("format 9"));
    }

    #[test]
    fn a_handle_of_an_id_needs_no_more() {
        let handle: TaskHandle =
            serde_json::from_value(json!({"server": {"target": "t"}, "task_id": "x"})).unwrap();
        let server = ServerIdentity::new("t", None);
        assert_eq!(handle, TaskHandle::of_id(server, "x".into(), TaskForm::Extension));
        assert_eq!((handle.age(), handle.ttl()), (Duration::ZERO, None));
    }
}
