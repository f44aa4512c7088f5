//! The stored outcome of a leg: its result or error as JSON, sealed for the same caller and the same request.

use crate::options::seconds;
use antiphon_seal::{Binding, Call, OpenError, Principal, SealError, Sealer};
use antiphon_store::{CallKey, Fingerprint};
use antiphon_wire::escaped;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::time::{Duration, SystemTime};

/// The first byte of an outcome.
const RESULT: u8 = b'r';
const QUESTIONS: u8 = b'q';
const ERROR: u8 = b'e';
const TASK: u8 = b't';

/// The purpose of a stored call.
const CALL: &str = "call";

/// The reply to an earlier delivery of the same request.
#[derive(Debug)]
pub(crate) enum StoredReply {
    /// The result of a call that is over.
    Result(Box<RawValue>),
    /// The questions of a round, as a result.
    Questions(Box<RawValue>),
    /// An error, after steps whose record is lost.
    Error(Box<RawValue>),
    /// The call has become a task. The reply is committed before the task is created: a process that dies in between leaves a reply
    /// of which the task is created when the request is sent again.
    Task(StoredTask),
}

/// The reply of a call that has become a task.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StoredTask {
    /// The round that would leave in the place of the task, with the state of the next leg.
    pub(crate) round: Box<RawValue>,
    /// The result that creates the task.
    pub(crate) reply: Box<RawValue>,
}

impl StoredReply {
    /// Returns true if the reply is a task.
    pub(crate) fn is_task(&self) -> bool {
        // An earlier release stored a task as a result.
        let is_result = |text: &RawValue| text.get().starts_with(r#"{"resultType":"task""#);
        matches!(self, Self::Task(_)) || matches!(self, Self::Result(text) if is_result(text))
    }

    fn encode(&self) -> Vec<u8> {
        let with_kind = |kind: u8, text: &str| [&[kind], text.as_bytes()].concat();
        match self {
            Self::Result(text) => with_kind(RESULT, text.get()),
            Self::Questions(text) => with_kind(QUESTIONS, text.get()),
            Self::Error(text) => with_kind(ERROR, text.get()),
            // Two JSON texts can always be written as one.
            Self::Task(task) => with_kind(TASK, &serde_json::to_string(task).unwrap_or_default()),
        }
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, text) = bytes.split_first()?;
        if *kind == TASK {
            return serde_json::from_slice(text).ok().map(Self::Task);
        }
        let text: Box<RawValue> = serde_json::from_slice(text).ok()?;
        match *kind {
            RESULT => Some(Self::Result(text)),
            QUESTIONS => Some(Self::Questions(text)),
            ERROR => Some(Self::Error(text)),
            _ => None,
        }
    }
}

/// The row of a leg, and the caller and request that its data are sealed for.
#[derive(Clone, Debug)]
pub(crate) struct RowSeal {
    pub(crate) key: CallKey,
    pub(crate) leg: u32,
    pub(crate) fingerprint: Fingerprint,
    method: String,
    target: String,
    arguments: Option<String>,
    principal: Option<Principal>,
    version: u32,
    keep: Duration,
}

impl RowSeal {
    /// Returns the row of a leg, for the request of this binding.
    pub(crate) fn new(
        request: &Binding<'_>,
        (key, leg, fingerprint): (CallKey, u32, Fingerprint),
        keep: Duration,
    ) -> Self {
        Self {
            key,
            leg,
            fingerprint,
            method: request.method.to_owned(),
            target: request.target.to_owned(),
            arguments: request.arguments.map(ToOwned::to_owned),
            principal: request.principal.cloned(),
            version: request.tool_version,
            keep,
        }
    }

    pub(crate) fn keep(&self) -> Duration {
        self.keep
    }

    fn binding(&self) -> Binding<'_> {
        Binding {
            method: &self.method,
            target: &self.target,
            arguments: self.arguments.as_deref(),
            principal: self.principal.as_ref(),
            tool_version: self.version,
        }
    }

    /// A value of another row, leg or set of answers does not open here, even if the store returns it.
    fn purpose(&self, kind: &str) -> String {
        format!("{kind}/{}/{}/{}", self.key, self.leg, self.fingerprint)
    }

    /// Seals a value of this row. Stored values may be read somewhat later than the store keeps them.
    pub(crate) fn seal(
        &self,
        sealer: &Sealer,
        kind: &str,
        value: &[u8],
        now: SystemTime,
    ) -> Result<Vec<u8>, SealError> {
        let ttl = self.keep.saturating_add(Duration::from_secs(3600));
        sealer.seal_stored(&self.purpose(kind), &self.binding(), value, ttl, now).map(String::into_bytes)
    }

    /// Seals the call of this row, for runs that have no state of it.
    pub(crate) fn seal_call(
        &self,
        sealer: &Sealer,
        call: &Call,
        now: SystemTime,
    ) -> Result<Vec<u8>, SealError> {
        let ttl = self.keep.saturating_add(Duration::from_secs(3600));
        sealer.seal_call(&self.purpose(CALL), &self.binding(), call, ttl, now).map(String::into_bytes)
    }

    /// Opens the call of this row. The cause of a failure is in the log.
    pub(crate) fn open_call(&self, sealer: &Sealer, stored: &[u8], now: SystemTime) -> Option<Call> {
        let text = std::str::from_utf8(stored).ok()?;
        let opened = sealer.open_call(text, &self.purpose(CALL), &self.binding(), now);
        opened.inspect_err(|error| self.log_unreadable(CALL, error)).ok()
    }

    /// Opens a value of this row. The cause of a failure is in the log.
    pub(crate) fn open(
        &self,
        sealer: &Sealer,
        kind: &str,
        stored: &[u8],
        now: SystemTime,
    ) -> Option<Vec<u8>> {
        let text = std::str::from_utf8(stored).ok()?;
        let opened = sealer.open_stored(text, &self.purpose(kind), &self.binding(), now);
        opened.inspect_err(|error| self.log_unreadable(kind, error)).ok()
    }

    fn log_unreadable(&self, kind: &str, error: &OpenError) {
        tracing::error!(call = %escaped(&self.key), kind, cause = %escaped(error), "a stored value does not open");
    }

    pub(crate) fn seal_reply(
        &self,
        sealer: &Sealer,
        reply: &StoredReply,
        now: SystemTime,
    ) -> Result<Vec<u8>, SealError> {
        self.seal(sealer, "outcome", &reply.encode(), now)
    }

    pub(crate) fn open_reply(&self, sealer: &Sealer, stored: &[u8], now: SystemTime) -> Option<StoredReply> {
        StoredReply::decode(&self.open(sealer, "outcome", stored, now)?)
    }
}

/// Returns the time from `now` until a moment in Unix seconds, at least one second.
pub(crate) fn until(moment: u64, now: SystemTime) -> Duration {
    Duration::from_secs(moment.saturating_sub(seconds(now)).max(1))
}
