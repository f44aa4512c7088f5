//! The driver's loop around the tracker: a handler that waits for answers, and beside that for what other threads send.

use crate::{Fault, Quiet, Tracking, Wakes, model, parent::Parent};
use loom::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};
use std::task::Poll;

/// The action of a thread on the place at which a handler waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// Sends a value and wakes the waiting task.
    Sends,
    /// Drops the waker and sends nothing, so the task waits for ever.
    Forgets,
}

/// The reason for which a leg was suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// No waker of the handler was left.
    Rule,
    /// The grace time was over.
    Grace,
}

/// The counts over all executions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The number of interleavings.
    pub executions: u64,
    /// The number suspended because no waker was left.
    pub by_rule: u64,
    /// The number suspended at the end of the grace time.
    pub by_grace: u64,
    /// The total number of polls after the first.
    pub polls: u64,
    fault: Fault,
}

/// A place for one message, as a oneshot channel is.
struct Slot<W>(Mutex<(bool, Option<W>)>);

impl<W: Wakes> Slot<W> {
    fn poll(&self, waker: &W) -> Poll<()> {
        let mut slot = self.0.lock().expect("nobody panics with it");
        if slot.0 {
            return Poll::Ready(());
        }
        let before = slot.1.replace(waker.clone());
        drop(slot);
        drop(before);
        Poll::Pending
    }

    fn meet(&self, sender: Sender) {
        let mut slot = self.0.lock().expect("nobody panics with it");
        slot.0 = sender == Sender::Sends;
        let waker = slot.1.take();
        drop(slot);
        match (sender, waker) {
            (Sender::Sends, Some(waker)) => waker.wake(),
            (_, waker) => drop(waker),
        }
    }
}

/// A handler with an ask pending from its first poll on; beside it a branch that yields, takes from one sender after
/// the other, and then asks as well.
struct Handler<W> {
    yields: usize,
    slots: std::vec::IntoIter<Arc<Slot<W>>>,
    at: Option<Arc<Slot<W>>>,
    asks: usize,
}

impl<W: Wakes> Handler<W> {
    fn poll(&mut self, waker: &W) {
        self.asks = 1;
        if self.yields > 0 {
            self.yields -= 1;
            waker.wake_by_ref();
            return;
        }
        while let Some(slot) = &self.at {
            match slot.poll(waker) {
                Poll::Pending => return,
                Poll::Ready(()) => self.at = self.slots.next(),
            }
        }
        self.asks = 2;
    }
}

/// Tries every order in which the senders' threads, and the timer's if one forgets, run beside the driver.
///
/// # Panics
/// If a wake is lost (the driver waits for ever), or the rule suspends while a sender has not sent.
#[must_use]
pub fn explore<T: Tracking>(yields: usize, senders: &'static [Sender]) -> Seen {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Seen::default()));
    let all = std::sync::Arc::clone(&seen);
    let threads = senders.len() + usize::from(senders.contains(&Sender::Forgets));
    model(threads).check(move || {
        let (by, polls, fault) = execution::<T>(yields, senders);
        let mut all = all.lock().expect("counting does not panic");
        all.executions += 1;
        all.polls += polls;
        all.fault = Fault(all.fault.0.or(fault.0));
        match by {
            By::Rule => all.by_rule += 1,
            By::Grace => all.by_grace += 1,
        }
    });
    let seen = *seen.lock().expect("counting does not panic");
    assert_eq!(seen.fault, Fault::default(), "{yields} yields, {senders:?}: {seen:?}");
    seen
}

fn execution<T: Tracking>(yields: usize, senders: &[Sender]) -> (By, u64, Fault) {
    let parent = Parent::new();
    let slots: Vec<_> =
        senders.iter().map(|_| Arc::new(Slot::<T::Waker>(Mutex::new((false, None))))).collect();
    let mut threads: Vec<_> = senders
        .iter()
        .zip(&slots)
        .map(|(&sender, slot)| {
            let slot = slot.clone();
            thread::spawn(move || slot.meet(sender))
        })
        .collect();
    // Without one that forgets there is no timer: the loop has to end by the rule alone.
    let grace = Arc::new(AtomicBool::new(false));
    let forgets = senders.contains(&Sender::Forgets);
    if forgets {
        let (grace, parent) = (grace.clone(), parent.clone());
        threads.push(thread::spawn(move || {
            grace.store(true, Ordering::Release);
            parent.wake();
        }));
    }

    let mut slots = slots.into_iter().collect::<Vec<_>>().into_iter();
    let mut handler = Handler { yields, at: slots.next(), slots, asks: 0 };
    // Until an ask is pending the parent's own waker will do.
    handler.poll(&T::parent(&parent));
    let (by, polls) = suspend::<T>(&parent, &grace, &mut handler);

    let mut fault = Fault::default();
    let all_asked = handler.asks == 2;
    fault.unless(
        by == By::Grace || forgets || all_asked,
        "suspended by the rule with a sender that had yet to send",
    );
    drop(handler);
    for thread in threads {
        thread.join().expect("it only wakes");
    }
    (by, polls, fault)
}

/// The driver: polls until only an answer can help, or the grace is over.
fn suspend<T: Tracking>(parent: &Parent, grace: &AtomicBool, handler: &mut Handler<T::Waker>) -> (By, u64) {
    let mut polls = 0;
    loop {
        let mut tracker = T::new(parent);
        let waker = tracker.waker();
        polls += 1;
        handler.poll(&waker);
        drop(waker);
        match tracker.judge() {
            Quiet::Nobody => return (By::Rule, polls),
            _ if grace.load(Ordering::Acquire) => return (By::Grace, polls),
            Quiet::Woken => {}
            Quiet::Kept => {
                parent.wait();
            }
        }
    }
}
