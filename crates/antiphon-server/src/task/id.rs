//! The ids of tasks on the wire.

use antiphon_seal::{CallId, EntropyError};
use antiphon_store::TaskKey;

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
