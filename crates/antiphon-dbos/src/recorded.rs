//! The values that dbos records: decisions, with their sealed snapshots.

use std::time::Duration;

use antiphon_store::{TaskAction, TaskDecision};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A decision, as the result of a step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Recorded {
    pub(crate) snapshot: Sealed,
    pub(crate) taken: u64,
    /// The number of the last message that the decision was made with.
    pub(crate) seen: u64,
    pub(crate) action: Action,
}

/// [`TaskAction`], as it is recorded.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Action {
    Continue,
    Wait(Option<Duration>),
    Pause(Duration),
    Finish(Duration),
    /// An action that is never recorded: the step does not end.
    Leave,
}

impl From<TaskDecision> for Recorded {
    fn from(decision: TaskDecision) -> Self {
        Self {
            snapshot: Sealed(decision.snapshot),
            taken: decision.taken,
            seen: 0,
            action: match decision.action {
                TaskAction::Continue => Action::Continue,
                TaskAction::Wait(time) => Action::Wait(time),
                TaskAction::Pause(time) => Action::Pause(time),
                TaskAction::Finish(keep) => Action::Finish(keep),
                TaskAction::Leave => Action::Leave,
            },
        }
    }
}

/// Sealed bytes, which are text in almost every case. Their JSON is a string: `t` and the text, or `x` and hexadecimal digits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sealed(pub(crate) Vec<u8>);

impl Serialize for Sealed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            // The database's text has no zero.
            Ok(text) if !text.contains('\0') => serializer.serialize_str(&format!("t{text}")),
            _ => serializer.serialize_str(&format!("x{}", hex(&self.0))),
        }
    }
}

impl<'de> Deserialize<'de> for Sealed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = match text.split_at_checked(1) {
            Some(("t", text)) => Some(text.as_bytes().to_vec()),
            Some(("x", digits)) => from_hex(digits),
            _ => None,
        };
        bytes.map(Self).ok_or_else(|| D::Error::custom("no sealed bytes"))
    }
}

/// Returns bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the bytes of hexadecimal digits.
pub(crate) fn from_hex(digits: &str) -> Option<Vec<u8>> {
    if !digits.len().is_multiple_of(2) || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_bytes_return_as_they_were() {
        for bytes in [&b"r1.text"[..], b"", b"\xff\x00", b"a\0b", "x\u{e9}".as_bytes()] {
            let json = serde_json::to_string(&Sealed(bytes.to_vec())).unwrap();
            assert_eq!(serde_json::from_str::<Sealed>(&json).unwrap().0, bytes, "{json}");
        }
        assert_eq!(serde_json::to_string(&Sealed(b"r1.text".to_vec())).unwrap(), r#""tr1.text""#);
        for wrong in [r#""""#, r#""y00""#, r#""x0""#, r#""xzz""#, "[1]"] {
            assert!(serde_json::from_str::<Sealed>(wrong).is_err(), "{wrong}");
        }
    }
}
