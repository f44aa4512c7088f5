//! The outbox of a request: the messages before its reply, such as progress, log messages and change notifications.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The maximum number of messages that wait for a slow peer.
const MAX_MESSAGES: usize = 1024;
/// The maximum number of bytes that wait for a slow peer.
const MAX_BYTES: usize = 1024 * 1024;

/// The queue of messages that a request sends before its reply, and that its transport takes. Clones are the same
/// outbox. On a channel that requests share, each request has a tag of its own.
///
/// Pushing a message wakes no task: messages are pushed while the request is polled, by the same task that then takes
/// them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outbox {
    queue: Arc<Mutex<Queue>>,
    tag: u64,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Message>,
    /// The waiting changes, by tag and number, because there may be many.
    changes: HashSet<(u64, u32)>,
    bytes: usize,
    tags: u64,
    /// True if the stream is to be closed, although more messages may follow.
    closing: bool,
}

#[derive(Debug)]
struct Message {
    tag: u64,
    kind: Kind,
    bytes: Vec<u8>,
}

/// The kind of a message: it decides what happens to the message if the peer is slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Only the newest one is kept.
    Progress,
    /// It is dropped.
    Log,
    /// A request of the server, or its cancellation. It is never dropped; the limit of concurrent questions bounds the
    /// number.
    Ask,
    /// A change. At most one of each number waits, so that a repeated change is sent once. It is never dropped.
    Change(u32),
}

impl Outbox {
    /// Returns an outbox for another request on the same channel.
    pub(crate) fn for_another(&self) -> Self {
        let mut queue = self.queue();
        queue.tags += 1;
        Self { queue: Arc::clone(&self.queue), tag: queue.tags }
    }

    /// Returns whether this is an outbox of the same request.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.queue, &other.queue) && self.tag == other.tag
    }

    /// Adds a written message.
    pub(crate) fn push(&self, kind: Kind, bytes: Vec<u8>) {
        let mut queue = self.queue();
        let tag = self.tag;
        let full = queue.waiting.len() >= MAX_MESSAGES || queue.bytes + bytes.len() > MAX_BYTES;
        match kind {
            Kind::Change(number) if !queue.changes.insert((tag, number)) => {}
            Kind::Progress if full => queue.replace(tag, bytes),
            Kind::Log if full => dropped(),
            _ => {
                queue.bytes += bytes.len();
                queue.waiting.push_back(Message { tag, kind, bytes });
            }
        }
    }

    /// Removes the next message.
    pub(crate) fn pop(&self) -> Option<Vec<u8>> {
        self.pop_with_kind().map(|(_, bytes)| bytes)
    }

    /// Removes the next message, and returns it with its kind.
    pub(crate) fn pop_with_kind(&self) -> Option<(Kind, Vec<u8>)> {
        let mut queue = self.queue();
        let message = queue.waiting.pop_front()?;
        queue.bytes -= message.bytes.len();
        if let Kind::Change(number) = message.kind {
            queue.changes.remove(&(message.tag, number));
        }
        Some((message.kind, message.bytes))
    }

    /// Requests that the stream be closed after the waiting messages: the client reconnects for the rest.
    ///
    /// A request cannot close a channel that it shares.
    pub(crate) fn close_stream(&self) {
        if self.tag == 0 {
            self.queue().closing = true;
        }
    }

    /// Returns whether the stream is to be closed now, and resets the request.
    #[cfg(feature = "http")]
    pub(crate) fn take_closing(&self) -> bool {
        std::mem::take(&mut self.queue().closing)
    }

    #[cfg(feature = "http")]
    pub(crate) fn is_empty(&self) -> bool {
        self.queue().waiting.is_empty()
    }

    /// Removes the messages of this request.
    ///
    /// > Servers [...] **MUST NOT** send any further messages for it.
    pub(crate) fn forget(&self) {
        let mut queue = self.queue();
        let tag = self.tag;
        queue.waiting.retain(|message| message.tag != tag);
        queue.changes.retain(|(of, _)| *of != tag);
        queue.bytes = queue.waiting.iter().map(|message| message.bytes.len()).sum();
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Each change is complete before the lock is released, so a panic elsewhere leaves the queue valid.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// Replaces the last waiting progress message, if there is one and the new one fits.
    fn replace(&mut self, tag: u64, bytes: Vec<u8>) {
        let mut newest = self.waiting.iter_mut().rev().take(MAX_MESSAGES);
        let older = newest.find(|message| message.tag == tag && message.kind == Kind::Progress);
        match older {
            Some(older) if self.bytes - older.bytes.len() + bytes.len() <= MAX_BYTES => {
                self.bytes = self.bytes - older.bytes.len() + bytes.len();
                older.bytes = bytes;
            }
            _ => dropped(),
        }
    }
}

fn dropped() {
    tracing::debug!("the peer reads too slowly: a notification is dropped");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(outbox: &Outbox) -> Vec<String> {
        std::iter::from_fn(|| outbox.pop()).map(|bytes| String::from_utf8(bytes).unwrap()).collect()
    }

    #[test]
    fn a_change_waits_once_and_is_never_lost() {
        let outbox = Outbox::default();
        for _ in 0..3 {
            outbox.push(Kind::Change(1), "one".into());
            outbox.push(Kind::Change(2), "two".into());
        }
        assert_eq!(all(&outbox), ["one", "two"]);
        outbox.push(Kind::Log, vec![b'x'; MAX_BYTES]);
        outbox.push(Kind::Log, "lost".into());
        outbox.push(Kind::Change(1), "kept".into());
        assert_eq!(all(&outbox)[1..], ["kept"]);
    }

    #[test]
    fn what_waits_is_bounded_and_the_newest_progress_counts() {
        let outbox = Outbox::default();
        for number in 0..5 * MAX_MESSAGES {
            outbox.push(Kind::Progress, format!("progress {number}").into());
            outbox.push(Kind::Log, format!("log {number}").into());
        }
        let waiting = all(&outbox);
        assert_eq!(waiting.len(), MAX_MESSAGES);
        let last = format!("progress {}", 5 * MAX_MESSAGES - 1);
        assert_eq!(waiting.iter().rfind(|text| text.starts_with("progress")), Some(&last));
        // A message that replaces another one is counted too.
        for (kind, bytes) in [(Kind::Progress, 2), (Kind::Log, 2), (Kind::Progress, 1), (Kind::Progress, 4)] {
            outbox.push(kind, vec![b'x'; MAX_BYTES / bytes]);
        }
        let waiting: Vec<usize> = all(&outbox).iter().map(String::len).collect();
        assert_eq!(waiting, [MAX_BYTES / 4, MAX_BYTES / 2]);
        // Counted back to zero: the same number fits again.
        outbox.push(Kind::Log, vec![b'x'; MAX_BYTES]);
        assert_eq!(all(&outbox).len(), 1);
    }

    #[test]
    fn requests_of_one_channel_are_told_apart() {
        let channel = Outbox::default();
        let (one, other) = (channel.for_another(), channel.for_another());
        one.push(Kind::Change(0), "one".into());
        other.push(Kind::Change(0), "other".into());
        one.push(Kind::Log, "one".into());
        one.forget();
        assert_eq!(all(&channel), ["other"]);
        assert!(channel.pop().is_none());
    }

    #[cfg(feature = "http")]
    #[test]
    fn a_stream_is_closed_once_by_the_only_request_on_it() {
        let (alone, channel) = (Outbox::default(), Outbox::default());
        let shared = channel.for_another();
        for (outbox, closes) in [(&alone, true), (&shared, false)] {
            outbox.close_stream();
            assert_eq!(outbox.take_closing(), closes);
            assert!(!outbox.take_closing() && !channel.take_closing());
        }
    }
}
