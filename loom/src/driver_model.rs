//! The driver's loop around the tracker. The handler waits for answers and for messages of other threads.

use crate::{Fault, TrackerModel, WakerModel, WakerState, model, parent::Parent};
use loom::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};
use std::task::Poll;

/// The behaviour of a thread that has the waker of a waiting handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The thread sends a message, and wakes the handler.
    SendsMessage,
    /// The thread drops the waker and sends nothing, so the handler waits forever.
    DropsWaker,
}

/// The reason why a leg was suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuspendReason {
    /// No other code held a waker of the handler.
    Rule,
    /// The grace period was over.
    Grace,
}

/// The outcomes of all executions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcomes {
    /// The number of orders that were tried.
    pub executions: u64,
    /// The number of suspensions by the rule.
    pub by_rule: u64,
    /// The number of suspensions by the grace period.
    pub by_grace: u64,
    /// The number of polls after the first one, in all executions.
    pub polls: u64,
    fault: Fault,
}

/// A slot for one message, like a oneshot channel.
struct Slot<W>(Mutex<(bool, Option<W>)>);

impl<W: WakerModel> Slot<W> {
    fn poll(&self, waker: &W) -> Poll<()> {
        let mut slot = self.0.lock().expect("the lock is not poisoned");
        if slot.0 {
            return Poll::Ready(());
        }
        let before = slot.1.replace(waker.clone());
        drop(slot);
        drop(before);
        Poll::Pending
    }

    fn meet(&self, sender: Sender) {
        let mut slot = self.0.lock().expect("the lock is not poisoned");
        slot.0 = sender == Sender::SendsMessage;
        let waker = slot.1.take();
        drop(slot);
        match (sender, waker) {
            (Sender::SendsMessage, Some(waker)) => waker.wake(),
            (_, waker) => drop(waker),
        }
    }
}

/// A handler with a pending question from its first poll on. A branch beside it yields, receives from one sender after
/// the other, and then asks too.
struct Handler<W> {
    yields: usize,
    slots: std::vec::IntoIter<Arc<Slot<W>>>,
    at: Option<Arc<Slot<W>>>,
    asks: usize,
}

impl<W: WakerModel> Handler<W> {
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

/// Tries every order of the threads of the senders, and of the timer if a sender drops its waker, beside the driver.
///
/// # Panics
/// If a wake is lost (the driver waits forever), or the rule suspends while a sender has not sent.
#[must_use]
pub fn explore<T: TrackerModel>(yields: usize, senders: &'static [Sender]) -> Outcomes {
    let outcomes = std::sync::Arc::new(std::sync::Mutex::new(Outcomes::default()));
    let all = std::sync::Arc::clone(&outcomes);
    let threads = senders.len() + usize::from(senders.contains(&Sender::DropsWaker));
    model(threads).check(move || {
        let (reason, polls, fault) = execution::<T>(yields, senders);
        let mut all = all.lock().expect("counting does not panic");
        all.executions += 1;
        all.polls += polls;
        all.fault = Fault(all.fault.0.or(fault.0));
        match reason {
            SuspendReason::Rule => all.by_rule += 1,
            SuspendReason::Grace => all.by_grace += 1,
        }
    });
    let outcomes = *outcomes.lock().expect("counting does not panic");
    assert_eq!(outcomes.fault, Fault::default(), "{yields} yields, {senders:?}: {outcomes:?}");
    outcomes
}

fn execution<T: TrackerModel>(yields: usize, senders: &[Sender]) -> (SuspendReason, u64, Fault) {
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
    // Only a dropped waker needs the timer. Without it the loop must end by the rule alone.
    let grace = Arc::new(AtomicBool::new(false));
    let forgets = senders.contains(&Sender::DropsWaker);
    if forgets {
        let (grace, parent) = (grace.clone(), parent.clone());
        threads.push(thread::spawn(move || {
            grace.store(true, Ordering::Release);
            parent.wake();
        }));
    }

    let mut slots = slots.into_iter().collect::<Vec<_>>().into_iter();
    let mut handler = Handler { yields, at: slots.next(), slots, asks: 0 };
    // No tracker is needed before a question is pending.
    handler.poll(&T::parent(&parent));
    let (reason, polls) = suspend::<T>(&parent, &grace, &mut handler);

    let mut fault = Fault::default();
    let all_asked = handler.asks == 2;
    fault.unless(
        reason == SuspendReason::Grace || forgets || all_asked,
        "suspended by the rule before a sender has sent",
    );
    drop(handler);
    for thread in threads {
        thread.join().expect("the thread only wakes");
    }
    (reason, polls, fault)
}

/// The driver's loop: polls until only an answer can wake the handler, or the grace period is over.
fn suspend<T: TrackerModel>(
    parent: &Parent,
    grace: &AtomicBool,
    handler: &mut Handler<T::Waker>,
) -> (SuspendReason, u64) {
    let mut polls = 0;
    loop {
        let mut tracker = T::new(parent);
        let waker = tracker.waker();
        polls += 1;
        handler.poll(&waker);
        drop(waker);
        match tracker.waker_state() {
            WakerState::Released => return (SuspendReason::Rule, polls),
            _ if grace.load(Ordering::Acquire) => return (SuspendReason::Grace, polls),
            WakerState::Woken => {}
            WakerState::Held => {
                parent.wait();
            }
        }
    }
}
