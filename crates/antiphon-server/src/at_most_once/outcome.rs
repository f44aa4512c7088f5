//! The stored outcome of a leg: its result or error as JSON, sealed for the same caller and the same request.

use crate::{clock::seconds, request::admit::LegRequest};
use antiphon_seal::{Principal, SealError, Sealer};
use antiphon_store::{CallKey, Fingerprint};
use antiphon_wire::escaped;
use serde_json::value::RawValue;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The first byte of an outcome.
const RESULT: u8 = b'r';
const QUESTIONS: u8 = b'q';
const ERROR: u8 = b'e';

/// The reply to an earlier delivery of the same request.
#[derive(Debug)]
pub(crate) enum StoredReply {
    /// The result of a call that is over.
    Result(Box<RawValue>),
    /// The questions of a round, as a result.
    Questions(Box<RawValue>),
    /// An error, after steps whose record is lost.
    Error(Box<RawValue>),
}

impl StoredReply {
    fn parts(&self) -> (u8, &RawValue) {
        match self {
            Self::Result(text) => (RESULT, text),
            Self::Questions(text) => (QUESTIONS, text),
            Self::Error(text) => (ERROR, text),
        }
    }

    fn encode(&self) -> Vec<u8> {
        let (kind, text) = self.parts();
        let mut bytes = Vec::with_capacity(1 + text.get().len());
        bytes.push(kind);
        bytes.extend_from_slice(text.get().as_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, text) = bytes.split_first()?;
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
    pub(super) key: CallKey,
    pub(super) leg: u32,
    pub(super) fingerprint: Fingerprint,
    method: String,
    target: String,
    arguments: Option<String>,
    principal: Option<Principal>,
    version: u32,
    keep: Duration,
}

impl RowSeal {
    pub(super) fn new(
        request: &LegRequest<'_>,
        principal: Option<&Principal>,
        (key, leg, fingerprint): (CallKey, u32, Fingerprint),
        keep: Duration,
    ) -> Self {
        Self {
            key,
            leg,
            fingerprint,
            method: request.request.method.to_string(),
            target: request.target.to_owned(),
            arguments: request.arguments.map(|arguments| arguments.get().to_owned()),
            principal: principal.cloned(),
            version: request.settings.version,
            keep,
        }
    }

    pub(super) fn keep(&self) -> Duration {
        self.keep
    }

    fn binding(&self) -> antiphon_seal::Binding<'_> {
        antiphon_seal::Binding {
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
    pub(super) fn seal(
        &self,
        sealer: &Sealer,
        kind: &str,
        value: &[u8],
        now: SystemTime,
    ) -> Result<Vec<u8>, SealError> {
        let ttl = self.keep.saturating_add(Duration::from_secs(3600));
        sealer.seal_stored(&self.purpose(kind), &self.binding(), value, ttl, now).map(String::into_bytes)
    }

    /// Opens a value of this row. The cause of a failure is in the log.
    pub(super) fn open(
        &self,
        sealer: &Sealer,
        kind: &str,
        stored: &[u8],
        now: SystemTime,
    ) -> Option<Vec<u8>> {
        let text = std::str::from_utf8(stored).ok()?;
        match sealer.open_stored(text, &self.purpose(kind), &self.binding(), now) {
            Ok(value) => Some(value),
            Err(error) => {
                tracing::error!(call = %self.key, kind, cause = %escaped(&error), "a stored value does not open");
                None
            }
        }
    }

    pub(super) fn seal_reply(
        &self,
        sealer: &Sealer,
        reply: &StoredReply,
        now: SystemTime,
    ) -> Result<Vec<u8>, SealError> {
        self.seal(sealer, "outcome", &reply.encode(), now)
    }

    pub(super) fn open_reply(&self, sealer: &Sealer, stored: &[u8], now: SystemTime) -> Option<StoredReply> {
        StoredReply::decode(&self.open(sealer, "outcome", stored, now)?)
    }
}

/// Returns the time from `now` until a moment in Unix seconds, at least one second.
pub(super) fn until(moment: u64, now: SystemTime) -> Duration {
    debug_assert!(now >= UNIX_EPOCH);
    Duration::from_secs(moment.saturating_sub(seconds(now)).max(1))
}
