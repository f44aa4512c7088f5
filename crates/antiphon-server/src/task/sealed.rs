//! The sealed values that an engine stores of a task.

use super::id;
use crate::runtime::Runtime;
use antiphon_seal::{Binding, CallId};
use antiphon_store::TaskKey;
use antiphon_wire::escaped;
use serde::{Serialize, de::DeserializeOwned};
use std::time::Duration;

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
    let id = id::text(key);
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
pub(super) fn open_bytes(server: &Runtime, key: TaskKey, purpose: &str, sealed: &[u8]) -> Option<Vec<u8>> {
    let id = id::text(key);
    let text = std::str::from_utf8(sealed).ok()?;
    let opened = server.sealing.sealer().open_stored(text, purpose, &binding(&id), server.clock.now());
    opened.map_err(|fault| unreadable(key, &fault)).ok()
}

fn unreadable(key: TaskKey, cause: &(impl std::fmt::Display + ?Sized)) {
    tracing::error!(task = %escaped(&key), cause = %escaped(cause), "the state of a task cannot be opened: its key may be missing");
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
