//! The feed of changes in the memory of one process.

use crate::{
    changes::{self, ChangeChannel, ChangeFeed, ChangeWatch},
    error::{StoreError, StoreFuture},
};
use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll, Waker},
};

/// The number of messages that a watch may be behind.
const BEHIND: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct MemoryChanges(Mutex<Vec<(ChangeChannel, Weak<Inbox>)>>);

/// The messages that a watch has not returned.
#[derive(Debug, Default)]
struct Inbox(Mutex<Messages>);

#[derive(Debug, Default)]
struct Messages {
    waiting: VecDeque<String>,
    has_lost: bool,
    waker: Option<Waker>,
}

impl ChangeFeed for MemoryChanges {
    fn publish<'a>(&'a self, channel: ChangeChannel, message: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            changes::check(message)?;
            let mut watches = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            watches.retain(|(of, inbox)| {
                let Some(inbox) = inbox.upgrade() else { return false };
                if *of == channel {
                    inbox.push(message);
                }
                true
            });
            Ok(())
        })
    }

    fn watch(&self, channel: ChangeChannel) -> StoreFuture<'_, Box<dyn ChangeWatch>> {
        Box::pin(async move {
            let inbox = Arc::<Inbox>::default();
            let mut watches = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            watches.push((channel, Arc::downgrade(&inbox)));
            Ok(Box::new(MemoryWatch(inbox)) as Box<dyn ChangeWatch>)
        })
    }
}

impl Inbox {
    fn messages(&self) -> MutexGuard<'_, Messages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, message: &str) {
        let mut messages = self.messages();
        if messages.waiting.len() == BEHIND {
            messages.has_lost = true;
        } else {
            messages.waiting.push_back(message.to_owned());
        }
        let waker = messages.waker.take();
        drop(messages);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn poll(&self, context: &Context<'_>) -> Poll<Result<String, StoreError>> {
        let mut messages = self.messages();
        if messages.has_lost {
            return Poll::Ready(Err(changes::lost(format!("the watch was behind by {BEHIND} messages"))));
        }
        if let Some(message) = messages.waiting.pop_front() {
            return Poll::Ready(Ok(message));
        }
        messages.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

struct MemoryWatch(Arc<Inbox>);

impl ChangeWatch for MemoryWatch {
    fn next(&mut self) -> StoreFuture<'_, String> {
        Box::pin(poll_fn(|context| self.0.poll(context)))
    }
}
