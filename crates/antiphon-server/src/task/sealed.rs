//! What an engine stores of a task: its id, sealed values, and the part of a snapshot that requests about the task open.
//!
//! That part is as short for a task with a large record, large questions or a large result as for any other.

use crate::{
    errors::refusal::Refusal,
    identity::Caller,
    quota::{RequestBudget, RequestBytes, UNCOUNTED},
    runtime::Runtime,
};
use antiphon_seal::{Binding, CallId, EntropyError, Principal};
use antiphon_store::TaskKey;
use antiphon_wire::{TaskStatus, escaped};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{future::pending, panic::resume_unwind, sync::Arc, time::Duration};
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
};

/// Returns a new random key.
///
/// > Servers **MUST** generate them with sufficient entropy that a third party cannot enumerate or guess them.
pub(super) fn random() -> Result<TaskKey, EntropyError> {
    // An id of a call is as many random bytes.
    CallId::random().map(|id| TaskKey::from_bytes(*id.as_bytes()))
}

/// Returns the id of a task: 32 hexadecimal digits.
pub(super) fn text(key: TaskKey) -> String {
    key.to_string()
}

/// Returns the key of an id; `None` if no task can have this id.
pub(super) fn parse(text: &str) -> Option<TaskKey> {
    let bytes = text.as_bytes();
    if bytes.len() != 32 || !bytes.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    let mut key = [0; 16];
    for (at, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(TaskKey::from_bytes(key))
}

/// The longest time for which something that is sealed in a store can be opened.
pub(super) const LONGEST: Duration = Duration::from_secs(390 * 24 * 3600);

/// The parts of a snapshot in its row, each of them sealed. A request about the task opens the first one, and the second one if
/// it needs it.
///
/// ```text
///  | length of shown | length of content | shown | content | record |
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Parts<'a> {
    /// The operational data of the task.
    pub(super) shown: &'a [u8],
    /// The questions, the result or the error, as JSON. Empty without any.
    pub(super) content: &'a [u8],
    /// The data of the next leg. Empty for a task that is over.
    pub(super) record: &'a [u8],
}

impl<'a> Parts<'a> {
    /// Returns the parts of a row's snapshot.
    pub(super) fn of(snapshot: &'a [u8]) -> Option<Self> {
        let (shown, rest) = snapshot.split_first_chunk::<4>()?;
        let (content, rest) = rest.split_first_chunk::<4>()?;
        let (shown, rest) = rest.split_at_checked(length(*shown)?)?;
        let (content, record) = rest.split_at_checked(length(*content)?)?;
        Some(Self { shown, content, record })
    }

    /// Returns the number of bytes of a snapshot up to the end of `shown`, and up to the end of `content`. A snapshot that was read
    /// from its beginning may be shorter.
    pub(super) fn ends(snapshot: &[u8]) -> Option<(usize, usize)> {
        let (shown, rest) = snapshot.split_first_chunk::<4>()?;
        let (content, _) = rest.split_first_chunk::<4>()?;
        let shown = length(*shown)?.checked_add(LENGTHS)?;
        Some((shown, shown.checked_add(length(*content)?)?))
    }

    /// Returns the length of the second part of a snapshot, which may be missing.
    pub(super) fn content_length(snapshot: &[u8]) -> usize {
        Self::ends(snapshot).map_or(0, |(shown, content)| content - shown)
    }

    /// Returns the first part of a snapshot, of which the rest may be missing.
    pub(super) fn shown(snapshot: &'a [u8]) -> Option<&'a [u8]> {
        snapshot.get(LENGTHS..Self::ends(snapshot)?.0)
    }

    /// Returns the snapshot for a row; nothing if a part is too long.
    pub(super) fn join(self) -> Option<Vec<u8>> {
        let Self { shown, content, record } = self;
        let lengths = [u32::try_from(shown.len()).ok()?, u32::try_from(content.len()).ok()?];
        let [of_shown, of_content] = lengths.map(u32::to_be_bytes);
        Some([&of_shown[..], &of_content, shown, content, record].concat())
    }
}

/// The bytes of the two lengths.
const LENGTHS: usize = 8;

fn length(bytes: [u8; 4]) -> Option<usize> {
    usize::try_from(u32::from_be_bytes(bytes)).ok()
}

/// Returns a random name for the parts of one snapshot: those of different moments do not open together.
pub(super) fn parts_name() -> Option<String> {
    let name = CallId::random().inspect_err(|fault| {
        tracing::error!(cause = %escaped(&fault), "the state of a task cannot be sealed");
    });
    name.ok().map(|name| name.to_string())
}

fn binding(id: &str) -> Binding<'_> {
    Binding { method: "tasks", target: id, arguments: None, principal: None, tool_version: 0 }
}

/// Seals a value as JSON.
pub(super) fn seal(server: &Runtime, key: TaskKey, purpose: &str, value: &impl Serialize) -> Option<Vec<u8>> {
    let text = serde_json::to_vec(value).inspect_err(|fault| {
        tracing::error!(cause = %escaped(&fault), "the state of a task cannot be written");
    });
    seal_bytes(server, key, purpose, &text.ok()?)
}

/// Seals bytes.
pub(super) fn seal_bytes(server: &Runtime, key: TaskKey, purpose: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    let id = text(key);
    let sealer = server.sealing.sealer();
    let sealed = sealer.seal_stored(purpose, &binding(&id), bytes, LONGEST, server.clock.now());
    let sealed = sealed.inspect_err(|fault| {
        tracing::error!(cause = %escaped(&fault), "the state of a task cannot be sealed");
    });
    sealed.ok().map(String::into_bytes)
}

/// Opens a value that was sealed as JSON.
pub(super) fn open<T: DeserializeOwned>(
    server: &Runtime,
    key: TaskKey,
    purpose: &str,
    sealed: &[u8],
) -> Option<T> {
    let bytes = open_bytes(server, key, purpose, sealed)?;
    let read = serde_json::from_slice(&bytes).map_err(|fault| crate::call::ctx::without_value(&fault));
    read.map_err(|cause| unreadable(key, &cause)).ok()
}

/// Opens bytes.
fn open_bytes(server: &Runtime, key: TaskKey, purpose: &str, sealed: &[u8]) -> Option<Vec<u8>> {
    let id = text(key);
    let text = std::str::from_utf8(sealed).ok()?;
    let opened = server.sealing.sealer().open_stored(text, purpose, &binding(&id), server.clock.now());
    opened.map_err(|fault| unreadable(key, &fault)).ok()
}

fn unreadable(key: TaskKey, cause: &(impl std::fmt::Display + ?Sized)) {
    tracing::error!(task = %escaped(&key), cause = %escaped(cause), "the state of a task cannot be opened: its key may be missing");
}

/// The length of a content, in bytes, from which other requests would wait too long for the worker that opens it.
pub(super) const LONG: usize = 64 * 1024;

/// The right to open the content of a task, and to write it into a reply.
#[derive(Debug, Default)]
pub(crate) struct Opening {
    _bytes: RequestBytes,
    _place: Option<OwnedSemaphorePermit>,
}

impl Opening {
    /// Waits for the right to open so many bytes, which count in the budget of the caller's requests meanwhile. A short content waits
    /// for nothing. `largest` is the most that counts: a caller without other requests may open any content.
    pub(super) async fn of(
        places: &Arc<Semaphore>,
        budget: &RequestBudget,
        caller: &Caller<'_>,
        bytes: usize,
        largest: usize,
    ) -> Result<Self, Refusal> {
        if bytes <= UNCOUNTED {
            return Ok(Self::default());
        }
        let (mut reserved, bytes) = (RequestBytes::default(), bytes.min(largest));
        budget.reserve(&mut reserved, bytes, bytes, caller).map_err(|_exhausted| Refusal::Busy)?;
        // The semaphore is never closed.
        let place = Arc::clone(places).acquire_owned().await.ok();
        Ok(Self { _bytes: reserved, _place: place })
    }
}

/// Runs work on so many bytes of content: on a long one beside the workers of the runtime.
pub(super) async fn beside<T: Send + 'static>(bytes: usize, work: impl FnOnce() -> T + Send + 'static) -> T {
    if bytes < LONG || Handle::try_current().is_err() {
        return work();
    }
    match spawn_blocking(work).await {
        Ok(done) => done,
        Err(fault) => match fault.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime ends.
            Err(_) => pending().await,
        },
    }
}

/// The operational data of a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Shown {
    /// The name of the other parts of the snapshot.
    pub(super) parts: String,
    /// The tool.
    pub(super) tool: String,
    pub(super) principal: Option<StoredPrincipal>,
    /// The digest of the answers of the leg that has become the task, if that leg was claimed.
    pub(super) created_by: Option<String>,
    /// The moments of creation and of the last change, in Unix milliseconds.
    pub(super) created: u64,
    pub(super) updated: u64,
    /// The times from the creation, in milliseconds: that of the creating reply, and that for which a task that is over is kept.
    pub(super) ttl: Option<u64>,
    pub(super) kept: Option<u64>,
    pub(super) progress: Option<Progress>,
    /// The questions in the content.
    pub(super) questions: Vec<ShownQuestion>,
    pub(super) cancellation: Cancellation,
    /// True while a task that keeps its cancellation ends.
    pub(super) is_ending: bool,
    pub(super) end: Option<ShownEnd>,
}

/// A question without an answer that is valid.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ShownQuestion {
    pub(super) key: String,
    /// The id that the author gave to a URL question. Sessions see it.
    pub(super) elicitation_id: Option<String>,
    /// True if it has an answer that is not valid. It is asked again soon.
    pub(super) is_refused: bool,
}

/// The end of a task, without its result or its error.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum ShownEnd {
    Completed {
        /// The text of a tool's error.
        failure: Option<String>,
    },
    Failed {
        message: String,
    },
    Cancelled,
}

/// The text of the last progress, which belongs to one status.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Progress {
    pub(super) text: String,
    pub(super) of: TaskStatus,
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

    pub(super) fn to_principal(&self) -> Principal {
        // An empty part counts as none.
        let part = |part: &Option<String>| part.clone().unwrap_or_default();
        Principal::user(part(&self.subject))
            .with_client_id(part(&self.client))
            .with_issuer(part(&self.issuer))
    }
}

impl Shown {
    /// Opens this part of a row's snapshot.
    pub(super) fn open(server: &Runtime, key: TaskKey, snapshot: &[u8]) -> Option<Self> {
        open(server, key, "shown", Parts::shown(snapshot)?)
    }

    /// Opens the content of the same snapshot.
    pub(super) fn open_content(&self, server: &Runtime, key: TaskKey, snapshot: &[u8]) -> Option<Vec<u8>> {
        open_bytes(server, key, &content_purpose(&self.parts), Parts::of(snapshot)?.content)
    }

    /// Returns true if this caller created the task.
    pub(super) fn is_of(&self, principal: Option<&Principal>) -> bool {
        self.principal == principal.map(StoredPrincipal::of)
    }

    /// Takes an answer to a question: one that is valid removes the question.
    pub(super) fn answer(&mut self, key: &str, is_valid: bool) {
        let Some(at) = self.questions.iter().position(|question| question.key == key) else { return };
        if !is_valid {
            self.questions[at].is_refused = true;
        } else if !self.questions[at].is_refused {
            self.questions.remove(at);
        }
    }

    /// Returns true if no question of the stored data has an answer.
    pub(super) fn is_unanswered(&self, stored: &Self) -> bool {
        self.questions.len() == stored.questions.len() && self.questions.iter().all(|open| !open.is_refused)
    }

    /// Returns true if the question waits for an answer.
    pub(super) fn is_awaited(&self, key: &str) -> bool {
        self.questions.iter().any(|question| question.key == key && !question.is_refused)
    }

    /// Returns the id that the author gave to the question with this key.
    pub(super) fn elicitation_id(&self, key: &str) -> Option<&str> {
        self.questions.iter().find(|question| question.key == key)?.elicitation_id.as_deref()
    }

    /// Notes that the client wants the task to be cancelled.
    pub(super) fn request_cancellation(&mut self) {
        if self.cancellation == Cancellation::None {
            self.cancellation = Cancellation::Requested;
        }
    }

    /// Returns the status.
    pub(super) fn status(&self) -> TaskStatus {
        match &self.end {
            Some(ShownEnd::Completed { .. }) => TaskStatus::Completed,
            Some(ShownEnd::Failed { .. }) => TaskStatus::Failed,
            Some(ShownEnd::Cancelled) => TaskStatus::Cancelled,
            None if self.questions.is_empty() => TaskStatus::Working,
            None => TaskStatus::InputRequired,
        }
    }

    /// Returns the text that belongs to the status.
    pub(super) fn message(&self) -> Option<&str> {
        match (&self.end, &self.progress) {
            (Some(ShownEnd::Failed { message }), _) => Some(message),
            (_, Some(progress)) if progress.of == self.status() => Some(&progress.text),
            _ => None,
        }
    }
}

/// Returns the purpose under which the content of a snapshot is sealed.
pub(super) fn content_purpose(parts: &str) -> String {
    format!("content {parts}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        identity::{Identity, account::Accounts},
        options::limits::Limits,
    };
    use futures_util::FutureExt as _;
    use std::pin::pin;

    #[test]
    fn only_ids_as_written_are_read() {
        let key = TaskKey::from_bytes([0xa5; 16]);
        assert_eq!(parse(&text(key)), Some(key));
        for other in [
            "",
            "a5",
            &"A5".repeat(16),
            &"a5".repeat(17),
            &"g5".repeat(16),
            "é5555555555555555555555555555555",
        ] {
            assert_eq!(parse(other), None, "{other}");
        }
    }

    #[test]
    fn parts_are_read_as_they_were_joined() {
        for (shown, content, record) in
            [("s", "content", "record"), ("s", "", "record"), ("s", "content", ""), ("", "", "")]
        {
            let parts =
                Parts { shown: shown.as_bytes(), content: content.as_bytes(), record: record.as_bytes() };
            let joined = parts.join().unwrap();
            assert_eq!(Parts::of(&joined), Some(parts));
            let (of_shown, of_content) = Parts::ends(&joined[..8]).unwrap();
            assert_eq!(Parts::shown(&joined[..of_shown]), Some(parts.shown));
            assert_eq!(Parts::of(&joined[..of_content]), Some(Parts { record: b"", ..parts }));
            // Without its end, it has another record, or none of it can be read.
            for length in 0..joined.len() {
                assert_ne!(Parts::of(&joined[..length]), Some(parts));
            }
        }
        assert_eq!((Parts::of(&[0xff; 20]), Parts::shown(&[0xff; 20])), (None, None));
    }

    /// The only worker goes on with other requests while a long content is opened.
    #[tokio::test]
    async fn a_long_content_is_opened_beside_the_workers() {
        for (bytes, is_beside) in [(0, false), (LONG - 1, false), (LONG, true), (8 << 20, true)] {
            let worker = std::thread::current().id();
            let opened_by = beside(bytes, || std::thread::current().id()).await;
            assert_eq!(opened_by != worker, is_beside, "{bytes}");
        }
    }

    #[test]
    fn large_contents_are_opened_a_few_at_a_time() {
        let limits = Limits::default().request_bytes(100_000);
        let budget = RequestBudget::new(&limits, Identity::default(), Accounts::default());
        let (places, caller) = (Arc::new(Semaphore::new(1)), Caller::default());
        let open = |bytes| Opening::of(&places, &budget, &caller, bytes, limits.largest_opening());
        let first = open(40_000).now_or_never().expect("a place is free").expect("there is space");
        let mut second = pin!(open(40_000));
        assert!(second.as_mut().now_or_never().is_none(), "one at a time");
        assert!(
            matches!(open(40_000).now_or_never(), Some(Err(Refusal::Busy))),
            "the bytes of those that wait count"
        );
        assert!(matches!(open(UNCOUNTED).now_or_never(), Some(Ok(_))), "a short one waits for nothing");
        drop(first);
        assert!(matches!(second.as_mut().now_or_never(), Some(Ok(_))));
        assert_eq!(budget.in_use(), 0);
        assert!(matches!(open(10_000_000).now_or_never(), Some(Ok(_))), "any content, if there is no other");
    }
}
