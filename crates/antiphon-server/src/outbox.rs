//! The messages that a request sends before its reply: progress, log messages, and the changes of a subscription.

use antiphon_wire::lock::Lock;
use futures_util::task::AtomicWaker;
#[cfg(feature = "http")]
use std::sync::atomic::AtomicBool;
use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{
        Arc, MutexGuard,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
};

/// The maximum number of messages that wait for a peer that reads slowly.
const MAX_MESSAGES: usize = 1024;
/// The maximum number of their bytes.
const MAX_BYTES: usize = 1024 * 1024;
/// The maximum number of bytes that wait in all outboxes of one endpoint.
pub(crate) const MAX_ALL_BYTES: usize = 32 * 1024 * 1024;

/// The messages that a request sends before its reply: the request pushes them, its transport pops them. Clones are the same
/// outbox. Requests that share a channel have an outbox each, and the transport pops from all of them at once.
///
/// A message wakes the task that waits in [`poll_pop`](Self::poll_pop).
#[derive(Clone, Debug, Default)]
pub struct Outbox {
    shared: Arc<Shared>,
    tag: u64,
}

/// The number of bytes that wait in all outboxes of one endpoint.
type AllBytes = Arc<AtomicUsize>;

#[derive(Debug, Default)]
struct Shared {
    queue: Lock<Queue>,
    /// `None` for an outbox that is limited alone.
    all: Option<AllBytes>,
    /// Wakes the task of the transport.
    waker: AtomicWaker,
    /// True if the response may begin as a stream without a message.
    #[cfg(feature = "http")]
    silent: AtomicBool,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Message>,
    /// The tags and numbers of the waiting changes.
    changes: HashSet<(u64, u32)>,
    /// The tasks that wait until a change of theirs was popped, by tag.
    senders: HashMap<u64, Waker>,
    bytes: usize,
    tags: u64,
    /// True if the stream is to be closed before the reply.
    closing: bool,
}

#[derive(Debug)]
struct Message {
    tag: u64,
    kind: MessageKind,
    bytes: Vec<u8>,
}

/// The kind of a message before a reply. It decides what happens to the message when the peer reads slowly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MessageKind {
    /// Progress. The newest message of a request replaces the one before.
    Progress,
    /// A log message, or a notification of an extension. Dropped.
    Log,
    /// A request to the client, or its cancellation. Never dropped: the number is limited by what may be asked at once.
    Ask,
    /// A change with this number. Never dropped; one of each number waits at most, and the newest message replaces it.
    Change(u32),
}

impl Outbox {
    /// Returns an outbox that is limited together with its [siblings](Self::sibling).
    #[cfg(feature = "http")]
    pub(crate) fn first() -> Self {
        Self::within(Some(AllBytes::default()))
    }

    /// Returns an outbox of another channel, limited together with this one.
    #[cfg(feature = "http")]
    pub(crate) fn sibling(&self) -> Self {
        Self::within(self.shared.all.clone())
    }

    #[cfg(feature = "http")]
    fn within(all: Option<AllBytes>) -> Self {
        let (waker, silent) = (AtomicWaker::new(), AtomicBool::new(false));
        Self { shared: Arc::new(Shared { queue: Lock::default(), all, waker, silent }), tag: 0 }
    }

    /// Returns an outbox for one more request of the same channel.
    pub(crate) fn for_another(&self) -> Self {
        let mut queue = self.queue();
        queue.tags += 1;
        Self { shared: Arc::clone(&self.shared), tag: queue.tags }
    }

    /// Returns whether this is an outbox of the same request.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared) && self.tag == other.tag
    }

    /// Pushes one JSON-RPC message, without a newline.
    pub fn push(&self, kind: MessageKind, bytes: Vec<u8>) {
        let mut queue = self.queue();
        let tag = self.tag;
        let full = queue.waiting.len() >= MAX_MESSAGES
            || queue.bytes + bytes.len() > MAX_BYTES
            || self.shared.all_bytes() + bytes.len() > MAX_ALL_BYTES;
        match kind {
            MessageKind::Change(number) if !queue.changes.insert((tag, number)) => {
                let before = queue.bytes;
                queue.replace_change(tag, number, bytes);
                self.shared.counted(before, queue.bytes);
            }
            MessageKind::Progress if full => {
                let before = queue.bytes;
                queue.replace(tag, bytes);
                self.shared.counted(before, queue.bytes);
            }
            MessageKind::Log if full => dropped(),
            _ => {
                self.shared.counted(queue.bytes, queue.bytes + bytes.len());
                queue.bytes += bytes.len();
                queue.waiting.push_back(Message { tag, kind, bytes });
            }
        }
        drop(queue);
        self.shared.waker.wake();
    }

    /// Pops the next message to send.
    pub fn pop(&self) -> Option<Vec<u8>> {
        self.pop_with_kind().map(|(_, bytes)| bytes)
    }

    /// Pops the next message to send. While there is none, the next message wakes the task of this context; only the last
    /// task that waits is woken.
    pub fn poll_pop(&self, cx: &Context<'_>) -> Poll<Vec<u8>> {
        if let Some(message) = self.pop() {
            return Poll::Ready(message);
        }
        self.wake(cx);
        // A message may have been pushed before the waker was registered.
        self.pop().map_or(Poll::Pending, Poll::Ready)
    }

    /// Resolves while a message waits. While there is none, the next message wakes the task of this context.
    #[cfg(feature = "http")]
    pub(crate) fn poll_ready(&self, cx: &Context<'_>) -> Poll<()> {
        if self.is_empty() {
            self.wake(cx);
        }
        // A message may have been pushed before the waker was registered.
        if self.is_empty() { Poll::Pending } else { Poll::Ready(()) }
    }

    /// Allows the transport to begin the stream although no message waits: the handler of the request runs now.
    #[cfg(feature = "http")]
    pub(crate) fn may_be_silent(&self) {
        self.shared.silent.store(true, Ordering::Relaxed);
    }

    /// Returns whether the stream may begin although no message waits.
    #[cfg(feature = "http")]
    pub(crate) fn is_silent_stream(&self) -> bool {
        self.shared.silent.load(Ordering::Relaxed)
    }

    /// Has the next message wake the task of this context.
    pub(crate) fn wake(&self, cx: &Context<'_>) {
        self.shared.waker.register(cx.waker());
    }

    /// Has no message wake a task until the next [`wake`](Self::wake): for a task that polls the sender itself.
    #[cfg(feature = "http")]
    pub(crate) fn stop_waking(&self) {
        drop(self.shared.waker.take());
    }

    /// Pops the next message to send, with its kind.
    pub(crate) fn pop_with_kind(&self) -> Option<(MessageKind, Vec<u8>)> {
        let mut queue = self.queue();
        let message = queue.waiting.pop_front()?;
        self.shared.counted(queue.bytes, queue.bytes - message.bytes.len());
        queue.bytes -= message.bytes.len();
        let mut sender = None;
        if let MessageKind::Change(number) = message.kind {
            queue.changes.remove(&(message.tag, number));
            sender = queue.senders.remove(&message.tag);
        }
        drop(queue);
        if let Some(sender) = sender {
            sender.wake();
        }
        Some((message.kind, message.bytes))
    }

    /// Resolves once the change with this number does not wait any more. While it waits, the pop of a change of this request
    /// wakes the task of this context.
    pub(crate) fn poll_taken(&self, number: u32, cx: &Context<'_>) -> Poll<()> {
        let mut queue = self.queue();
        if !queue.changes.contains(&(self.tag, number)) {
            return Poll::Ready(());
        }
        queue.senders.insert(self.tag, cx.waker().clone());
        Poll::Pending
    }

    /// Requests that the stream is closed behind the waiting messages: the client reconnects for the rest.
    ///
    /// No request can close a channel that it shares.
    pub(crate) fn close_stream(&self) {
        if self.tag == 0 {
            self.queue().closing = true;
            self.shared.waker.wake();
        }
    }

    /// Returns whether the stream is to be closed now, once.
    #[cfg(feature = "http")]
    pub(crate) fn take_closing(&self) -> bool {
        std::mem::take(&mut self.queue().closing)
    }

    #[cfg(feature = "http")]
    pub(crate) fn is_empty(&self) -> bool {
        self.queue().waiting.is_empty()
    }

    /// Drops the waiting messages of this request.
    ///
    /// > Servers [...] **MUST NOT** send any further messages for it.
    pub(crate) fn forget(&self) {
        let mut queue = self.queue();
        let tag = self.tag;
        queue.waiting.retain(|message| message.tag != tag);
        queue.changes.retain(|(of, _)| *of != tag);
        queue.senders.remove(&tag);
        let bytes = queue.waiting.iter().map(|message| message.bytes.len()).sum();
        self.shared.counted(queue.bytes, bytes);
        queue.bytes = bytes;
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Each change of it is made at once: a panic elsewhere leaves it whole.
        self.shared.queue.lock()
    }
}

impl Shared {
    /// Returns the number of bytes that wait in all outboxes of the endpoint.
    fn all_bytes(&self) -> usize {
        self.all.as_ref().map_or(0, |all| all.load(Ordering::Relaxed))
    }

    /// Counts a change of the bytes that wait here.
    fn counted(&self, before: usize, after: usize) {
        if let Some(all) = &self.all {
            // Wraps around where there are fewer, which subtracts.
            all.fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let waiting = self.queue.get_mut().bytes;
        self.counted(waiting, 0);
    }
}

impl Queue {
    /// Replaces the waiting message of this change: the earlier one may have an earlier state.
    fn replace_change(&mut self, tag: u64, number: u32, bytes: Vec<u8>) {
        let kind = MessageKind::Change(number);
        if let Some(older) =
            self.waiting.iter_mut().find(|message| message.tag == tag && message.kind == kind)
        {
            self.bytes = self.bytes - older.bytes.len() + bytes.len();
            older.bytes = bytes;
        }
    }

    /// Replaces the last waiting progress message, if there is one and the new one fits.
    fn replace(&mut self, tag: u64, bytes: Vec<u8>) {
        let mut newest = self.waiting.iter_mut().rev().take(MAX_MESSAGES);
        let older = newest.find(|message| message.tag == tag && message.kind == MessageKind::Progress);
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
            outbox.push(MessageKind::Change(1), "one".into());
            outbox.push(MessageKind::Change(2), "two".into());
        }
        assert_eq!(all(&outbox), ["one", "two"]);
        // The change of a task has the task's state: the newest counts, in the place of the one that waits.
        for text in ["working", "two", "asks", "completed"] {
            let number = if text == "two" { 2 } else { 1 };
            outbox.push(MessageKind::Change(number), text.into());
        }
        outbox.for_another().push(MessageKind::Change(1), "of another request".into());
        assert_eq!(outbox.queue().bytes, "completedtwoof another request".len());
        assert_eq!(all(&outbox), ["completed", "two", "of another request"]);
        assert_eq!(outbox.queue().bytes, 0);
        outbox.push(MessageKind::Log, vec![b'x'; MAX_BYTES]);
        outbox.push(MessageKind::Log, "lost".into());
        outbox.push(MessageKind::Change(1), "kept".into());
        assert_eq!(all(&outbox)[1..], ["kept"]);
    }

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl std::task::Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_sender_is_woken_when_its_change_was_popped() {
        let channel = Outbox::default();
        let (one, other) = (channel.for_another(), channel.for_another());
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let (cx, woken) = (Context::from_waker(&waker), || woken.0.load(Ordering::SeqCst));
        assert!(one.poll_taken(1, &cx).is_ready(), "nothing waits");
        for outbox in [&other, &one] {
            outbox.push(MessageKind::Change(1), "change".into());
        }
        assert!(one.poll_taken(1, &cx).is_pending() && one.poll_taken(2, &cx).is_ready());
        // The change of the other request does not count.
        channel.pop().unwrap();
        assert!(woken() == 0 && one.poll_taken(1, &cx).is_pending());
        channel.pop().unwrap();
        assert!(woken() == 1 && one.poll_taken(1, &cx).is_ready());
        one.push(MessageKind::Change(1), "change".into());
        assert!(one.poll_taken(1, &cx).is_pending());
        one.forget();
        assert!(one.poll_taken(1, &cx).is_ready() && channel.queue().senders.is_empty());
    }

    #[test]
    fn what_waits_is_bounded_and_the_newest_progress_counts() {
        let outbox = Outbox::default();
        for number in 0..5 * MAX_MESSAGES {
            outbox.push(MessageKind::Progress, format!("progress {number}").into());
            outbox.push(MessageKind::Log, format!("log {number}").into());
        }
        let waiting = all(&outbox);
        assert_eq!(waiting.len(), MAX_MESSAGES);
        let last = format!("progress {}", 5 * MAX_MESSAGES - 1);
        assert_eq!(waiting.iter().rfind(|text| text.starts_with("progress")), Some(&last));
        // What takes the place of another is counted as well.
        for (kind, bytes) in [
            (MessageKind::Progress, 2),
            (MessageKind::Log, 2),
            (MessageKind::Progress, 1),
            (MessageKind::Progress, 4),
        ] {
            outbox.push(kind, vec![b'x'; MAX_BYTES / bytes]);
        }
        let waiting: Vec<usize> = all(&outbox).iter().map(String::len).collect();
        assert_eq!(waiting, [MAX_BYTES / 4, MAX_BYTES / 2]);
        // Counted back to nothing: as many fit again.
        outbox.push(MessageKind::Log, vec![b'x'; MAX_BYTES]);
        assert_eq!(all(&outbox).len(), 1);
    }

    #[cfg(feature = "http")]
    #[test]
    fn outboxes_of_one_endpoint_are_bounded_together() {
        let first = Outbox::first();
        let outboxes: Vec<Outbox> = (0..64).map(|_| first.sibling()).collect();
        for outbox in &outboxes {
            for kind in [MessageKind::Log, MessageKind::Progress] {
                outbox.push(kind, vec![b'x'; MAX_BYTES / 2]);
            }
        }
        // Those that came first have all of it; a question is never dropped.
        let waiting: usize = outboxes.iter().map(|outbox| outbox.queue().bytes).sum();
        assert_eq!((waiting, first.shared.all_bytes()), (MAX_ALL_BYTES, MAX_ALL_BYTES));
        outboxes[63].push(MessageKind::Ask, b"ask".to_vec());
        outboxes[63].push(MessageKind::Log, b"log".to_vec());
        assert_eq!(all(&outboxes[63]), ["ask"]);
        // A message that is sent, forgotten or dropped with its outbox makes room.
        drop(outboxes[0].pop());
        outboxes[1].forget();
        assert_eq!(first.shared.all_bytes(), MAX_ALL_BYTES - MAX_BYTES * 3 / 2);
        drop(outboxes);
        assert_eq!(first.shared.all_bytes(), 0);
    }

    #[test]
    fn requests_of_one_channel_are_told_apart() {
        let channel = Outbox::default();
        let (one, other) = (channel.for_another(), channel.for_another());
        one.push(MessageKind::Change(0), "one".into());
        other.push(MessageKind::Change(0), "other".into());
        one.push(MessageKind::Log, "one".into());
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
