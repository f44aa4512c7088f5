//! A leg that this process has claimed: its lease is renewed while it runs, and its reply is committed before it leaves.

use crate::{
    at_most_once::outcome::{RowSeal, StoredReply},
    errors::refusal::{Refusal, refused, repeated},
    options::Level,
    runtime::Runtime,
};
use antiphon_engine::{Record, StoredLeg};
use antiphon_seal::{Call, CallSecret, canonical::canonical};
use antiphon_store::{CallStore, Fence, Fingerprint};
use antiphon_wire::{InputResponses, escaped, lock::Lock};
use serde_json::{Map, Value, value::RawValue};
use std::{
    fmt,
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};
use tokio::{runtime::Handle, time::Instant};

/// The values of a new [`ClaimedLeg`].
pub(crate) struct NewClaim {
    pub(crate) server: Arc<Runtime>,
    pub(crate) store: Arc<dyn CallStore>,
    pub(crate) fence: Fence,
    pub(crate) lease: Duration,
    /// The moment before the claim was sent: the lease is valid from then on at the latest.
    pub(crate) claimed: Instant,
    pub(crate) row: RowSeal,
    pub(crate) level: Level,
    /// True if steps run again whose process died.
    pub(crate) reruns: bool,
    /// True if the same request can continue the leg. In a session it cannot: the answers are in the memory of this run.
    pub(crate) continues: bool,
}

/// A claimed leg. Dropping its last reference gives the leg back, if no step of it has begun whose outcome is lost.
pub(crate) struct ClaimedLeg {
    pub(crate) claim: NewClaim,
    /// The records of earlier runs of this leg, until this run continues from them.
    stored: Lock<StoredLeg>,
    /// The call of a first request, until the handler begins it.
    first_call: Lock<Option<Call>>,
    /// True once the row needs nothing more of this run.
    settled: AtomicBool,
    /// The moment until which no other run can have taken the leg over, unless the store's clock has stepped.
    valid_until: Lock<Instant>,
    /// The number of steps of this run that have begun and whose failure is not known.
    steps: AtomicU32,
    /// True if a step of this run was dropped before it ended: nobody knows whether it had its effect.
    is_interrupted: AtomicBool,
}

impl ClaimedLeg {
    /// `first_call` is the call of a first request, which all of its runs have.
    pub(crate) fn new(claim: NewClaim, stored: StoredLeg, first_call: Option<Call>) -> Arc<Self> {
        Arc::new(Self {
            valid_until: Lock::new(claim.claimed + claim.lease),
            claim,
            stored: Lock::new(stored),
            first_call: Lock::new(first_call),
            settled: AtomicBool::new(false),
            steps: AtomicU32::new(0),
            is_interrupted: AtomicBool::new(false),
        })
    }

    /// Takes the records of earlier runs of this leg.
    pub(crate) fn take_stored(&self) -> StoredLeg {
        std::mem::take(&mut *self.stored.lock())
    }

    /// Takes the call that the handler of a first request begins.
    pub(crate) fn take_first_call(&self) -> Option<Call> {
        self.first_call.lock().take()
    }

    /// Returns true if the starts and ends of steps are stored.
    pub(crate) fn writes_ahead(&self) -> bool {
        self.claim.level == Level::WriteAhead
    }

    /// Returns true if steps run again whose process died.
    pub(crate) fn reruns(&self) -> bool {
        self.claim.reruns
    }

    /// Runs the leg and renews its lease. Returns nothing if another run took the leg over, or if the lease could not be
    /// renewed for its whole length: this run then neither replies nor commits.
    pub(crate) async fn run<F: Future>(&self, leg: F) -> Option<F::Output> {
        let mut leg = pin!(leg);
        let mut lost = pin!(self.renew_until_lost());
        tokio::select! {
            biased;
            output = &mut leg => Some(output),
            () = &mut lost => {
                self.settled.store(true, Ordering::Relaxed);
                None
            }
        }
    }

    async fn renew_until_lost(&self) {
        let NewClaim { store, fence, lease, .. } = &self.claim;
        // A session has several legs under one claim: the time since the last renewal counts.
        let mut due = self.valid_until() - *lease / 3 * 2;
        loop {
            tokio::time::sleep_until(due).await;
            due = Instant::now() + *lease / 3;
            let begin = Instant::now();
            match store.renew(fence, *lease).await {
                Ok(()) => {
                    *self.valid_until.lock() = begin + *lease;
                }
                Err(error) if error.is_fence_lost() => {
                    tracing::error!(call = %escaped(&fence.call()), "another run took a leg over: this one ends without a reply");
                    return;
                }
                Err(error) => {
                    tracing::warn!(call = %escaped(&fence.call()), error = %escaped(&error), "a lease was not renewed");
                    if !self.has_lease() {
                        tracing::error!(call = %escaped(&fence.call()), "a lease ended: the leg ends without a reply");
                        return;
                    }
                }
            }
        }
    }

    fn valid_until(&self) -> Instant {
        *self.valid_until.lock()
    }

    /// Returns true if the lease has not ended: no other run has taken the leg over.
    pub(super) fn has_lease(&self) -> bool {
        Instant::now() < self.valid_until()
    }

    /// Returns the refusal of a run that lost its lease.
    pub(crate) fn lost(&self) -> Refusal {
        match self.claim.continues {
            true => Refusal::InFlight { retry_after: Duration::from_secs(1) },
            false => Refusal::OutcomeUnknown { step: None },
        }
    }

    /// Returns true if a step may have had an effect, and no later run finds it.
    pub(crate) fn has_effects_of_its_own(&self) -> bool {
        !self.claim.continues && self.has_effects()
    }

    fn has_effects(&self) -> bool {
        self.steps.load(Ordering::Relaxed) > 0 || self.is_interrupted.load(Ordering::Relaxed)
    }

    /// Commits the reply. Only then may it leave. In a session it leaves in any case: no other run can have another one, and the client
    /// would not get it by sending the request again.
    pub(crate) async fn commit(&self, reply: &StoredReply) -> Result<(), Refusal> {
        match self.committed(reply).await {
            // The cause is in the log.
            Err(_) if !self.claim.continues => Ok(()),
            committed => committed,
        }
    }

    async fn committed(&self, reply: &StoredReply) -> Result<(), Refusal> {
        self.settled.store(true, Ordering::Relaxed);
        let server = &self.claim.server;
        let sealed = self.claim.row.seal_reply(&server.sealing.sealer(), reply, server.clock.now()).map_err(
            |fault| {
                tracing::error!(cause = %escaped(&fault), "a reply could not be sealed for the store");
                Refusal::Internal
            },
        )?;
        let committed = repeated(|| self.claim.store.commit(&self.claim.fence, &sealed)).await;
        committed.map_err(|error| match error.is_fence_lost() {
            true => {
                tracing::error!(call = %escaped(&self.claim.fence.call()), "another run took a leg over: this one is not committed");
                Refusal::InFlight { retry_after: Duration::from_secs(1) }
            }
            false => refused(&error),
        })
    }

    /// Gives the leg back after a failure, so that the same request can run again, unless a step may have had an effect
    /// that no record holds.
    pub(crate) async fn release(&self) {
        if !self.may_run_again() || self.settled.swap(true, Ordering::Relaxed) {
            return;
        }
        if let Err(error) = repeated(|| self.claim.store.release(&self.claim.fence)).await {
            tracing::warn!(call = %escaped(&self.claim.fence.call()), error = %escaped(&error), "a leg was not given back: it waits for its lease");
        }
    }

    /// Notes that a step has begun.
    pub(crate) fn step_began(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that a step has no outcome, and may run again.
    pub(crate) fn step_failed(&self) {
        self.steps.fetch_sub(1, Ordering::Relaxed);
    }

    /// Notes that a step was dropped with its leg: nobody knows whether it had its effect.
    pub(crate) fn step_interrupted(&self) {
        self.is_interrupted.store(true, Ordering::Relaxed);
    }

    fn may_run_again(&self) -> bool {
        match self.writes_ahead() && self.claim.continues {
            true => !self.is_interrupted.load(Ordering::Relaxed),
            false => !self.has_effects(),
        }
    }
}

impl Drop for ClaimedLeg {
    /// The request was cancelled, or its leg failed on the way.
    fn drop(&mut self) {
        if self.settled.load(Ordering::Relaxed) || !self.may_run_again() {
            return;
        }
        let Ok(runtime) = Handle::try_current() else { return };
        let (store, fence) = (Arc::clone(&self.claim.store), self.claim.fence.clone());
        runtime.spawn(async move {
            if let Err(error) = repeated(|| store.release(&fence)).await {
                tracing::warn!(call = %escaped(&fence.call()), error = %escaped(&error), "a cancelled leg was not given back: it waits for its lease");
            }
        });
    }
}

impl fmt::Debug for ClaimedLeg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClaimedLeg").field("fence", &self.claim.fence).finish_non_exhaustive()
    }
}

/// Returns the digest of the answers to the questions of the last round. Other members of `inputResponses`, and the
/// `_meta` of an answer, do not count. Late answers are dropped, so they do not count either.
pub(crate) fn fingerprint(
    secret: &CallSecret,
    record: &Record,
    responses: Option<&InputResponses>,
) -> Fingerprint {
    let mut bytes = Vec::new();
    // Those that the client was asked: this version may not ask all of them any more.
    for path in record.asked_paths() {
        write(&mut bytes, path.as_bytes());
        match responses.and_then(|responses| responses.get(path)) {
            Some(answer) => {
                bytes.push(1);
                write(&mut bytes, &without_meta(answer));
            }
            None => bytes.push(0),
        }
    }
    Fingerprint::from_bytes(secret.fingerprint(&bytes).to_bytes())
}

fn write(bytes: &mut Vec<u8>, field: &[u8]) {
    bytes.extend_from_slice(&(field.len() as u64).to_be_bytes());
    bytes.extend_from_slice(field);
}

/// Returns the canonical form of an answer, without its `_meta`. An answer without a canonical form counts as written.
fn without_meta(answer: &RawValue) -> Vec<u8> {
    let text = answer.get();
    let canonical = |text: &str| canonical(text).unwrap_or_else(|_| text.as_bytes().to_vec());
    if !text.contains("_meta") {
        return canonical(text);
    }
    match serde_json::from_str::<Map<String, Value>>(text) {
        Ok(mut members) => {
            members.remove("_meta");
            canonical(&Value::Object(members).to_string())
        }
        Err(_) => canonical(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(answer: &str) -> Vec<u8> {
        without_meta(&RawValue::from_string(answer.to_owned()).unwrap())
    }

    #[test]
    fn an_answer_is_the_same_in_another_order_and_with_another_meta() {
        let plain = of(r#"{"action":"accept","content":{"a":1,"b":2}}"#);
        assert_eq!(plain, of(r#"{"content":{"b":2,"a":1.0},"action":"accept"}"#));
        assert_eq!(plain, of(r#"{"action":"accept","_meta":{"n":1},"content":{"a":1,"b":2}}"#));
        assert_ne!(plain, of(r#"{"action":"accept","content":{"a":1,"b":3}}"#));
        assert_ne!(plain, of(r#"{"action":"decline"}"#));
    }
}
