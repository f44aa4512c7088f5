//! Claims: the keys of a row, the request of a runner to run one leg, and its possible results.

use crate::{
    error::{StoreError, StoreErrorKind},
    step::StepAttempt,
};
use sha2::{Digest as _, Sha256};
use std::{fmt, time::Duration};

/// The request of a runner to run one leg of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRequest {
    pub(crate) call: CallKey,
    pub(crate) leg: u32,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) runner: RunnerId,
    pub(crate) after: Option<Predecessor>,
    pub(crate) owner: Owner,
    pub(crate) lease: Duration,
    pub(crate) keep: Duration,
    pub(crate) take_over: bool,
}

/// The leg whose outcome made the state of a later leg.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Predecessor {
    /// The number of the leg.
    pub leg: u32,
    /// The answers that came with the leg.
    pub fingerprint: Fingerprint,
}

impl Predecessor {
    /// Returns the leg with this number and these answers.
    #[must_use]
    pub const fn new(leg: u32, fingerprint: Fingerprint) -> Self {
        Self { leg, fingerprint }
    }
}

impl ClaimRequest {
    /// Returns the request to run this leg, with a lease of 30 seconds and a row that is kept for 10 minutes.
    #[must_use]
    pub fn new(call: CallKey, leg: u32, fingerprint: Fingerprint, runner: RunnerId, owner: Owner) -> Self {
        Self {
            call,
            leg,
            fingerprint,
            runner,
            after: None,
            owner,
            lease: Duration::from_secs(30),
            keep: Duration::from_secs(600),
            take_over: false,
        }
    }

    /// Sets the time, from now on the store's clock, until the runner counts as dead, unless it [renews] the lease.
    /// 1 ms to 24 hours.
    ///
    /// [renews]: crate::CallStore::renew
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets the time, from now on the store's clock, for which the row is kept: as long as the state of this leg could still
    /// be accepted, clock skew included. A later claim never shortens that time. 1 ms to 400 days.
    #[must_use]
    pub fn keep(mut self, keep: Duration) -> Self {
        self.keep = keep;
        self
    }

    /// Sets the leg whose outcome made the state of this leg. A later leg then replaces the row only if the row is that leg,
    /// so two branches of one call cannot both go on. Without a predecessor, any earlier leg with an outcome is accepted.
    #[must_use]
    pub fn after(mut self, predecessor: Option<Predecessor>) -> Self {
        self.after = predecessor;
        self
    }

    /// Sets whether a leg whose runner died is run again. Then the claim is [`Fresh`](Claim::Fresh) in the place of
    /// [`Unknown`](Claim::Unknown), and the dead runner's fence is lost. The steps of that leg run at least once.
    #[must_use]
    pub fn take_over(mut self, take_over: bool) -> Self {
        self.take_over = take_over;
        self
    }

    /// Returns the call.
    #[must_use]
    pub fn call(&self) -> CallKey {
        self.call
    }

    /// Returns the number of the leg.
    #[must_use]
    pub fn leg(&self) -> u32 {
        self.leg
    }

    /// Returns the answers that came with the leg.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Returns the runner that claims.
    #[must_use]
    pub fn runner(&self) -> RunnerId {
        self.runner
    }

    /// Returns the caller who is charged.
    #[must_use]
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// Returns the leg that [`after`](Self::after) sets.
    #[must_use]
    pub fn predecessor(&self) -> Option<Predecessor> {
        self.after
    }

    /// Returns the time that [`lease`](Self::lease) sets.
    #[must_use]
    pub fn lease_time(&self) -> Duration {
        self.lease
    }

    /// Returns the time that [`keep`](Self::keep) sets.
    #[must_use]
    pub fn keep_time(&self) -> Duration {
        self.keep
    }

    /// Returns true if a leg whose runner died [is run again](Self::take_over).
    #[must_use]
    pub fn takes_over(&self) -> bool {
        self.take_over
    }

    /// Returns the leg and its answers, as the [predecessor](ClaimRequest::after) of the next leg.
    #[must_use]
    pub fn as_predecessor(&self) -> Predecessor {
        Predecessor { leg: self.leg, fingerprint: self.fingerprint }
    }
}

/// The result of [`CallStore::claim`](crate::CallStore::claim).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Claim {
    /// The caller runs the leg, under this fence.
    Fresh(Fence),
    /// Another runner runs the call under a valid lease.
    InFlight {
        /// The rest of the lease.
        retry_after: Duration,
    },
    /// The leg with these answers has this outcome. The handler does not run again.
    Done(Vec<u8>),
    /// The leg does not run.
    Conflict(Conflict),
    /// The runner of the leg died: its lease ended without an outcome. Nobody knows whether its last step had its effect.
    Unknown(Unknown),
}

/// The reason why a leg does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Conflict {
    /// The call is already at a later leg.
    EarlierLeg,
    /// The same leg ran, or runs, with other answers.
    OtherAnswers,
    /// The leg's state was not made by the leg of the row.
    OtherPredecessor,
}

/// The store's information about a leg whose runner died.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unknown {
    /// The leg that has no outcome.
    pub leg: u32,
    /// The step that started last and has no end, if steps are recorded.
    pub step: Option<StepAttempt>,
}

impl Unknown {
    /// Returns the information about a leg, with the step that has no end, if there is one.
    #[must_use]
    pub const fn new(leg: u32, step: Option<StepAttempt>) -> Self {
        Self { leg, step }
    }
}

/// The proof that its owner runs a call: the number of a claim, higher for every later claim of the same call.
///
/// Each write under a fence fails with [`FenceLost`](crate::StoreErrorKind::FenceLost) if the row has another number.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Fence {
    call: CallKey,
    number: i64,
}

impl Fence {
    /// Returns the fence with this number: for authors of stores.
    #[must_use]
    pub const fn new(call: CallKey, number: i64) -> Self {
        Self { call, number }
    }

    /// Returns the call.
    #[must_use]
    pub const fn call(&self) -> CallKey {
        self.call
    }

    /// Returns the key of the row.
    #[cfg_attr(not(feature = "postgres"), allow(dead_code, reason = "a parameter of statements"))]
    pub(crate) fn call_bytes(&self) -> &[u8] {
        self.call.as_bytes()
    }

    /// Returns the number of the claim.
    #[must_use]
    pub const fn number(&self) -> i64 {
        self.number
    }
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fence({} of {})", self.number, self.call)
    }
}

// Names of rows: the call, its runner, the digest of what came with a leg, and the caller who is charged.

/// The id of a call, and the key of its row: 16 random bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallKey([u8; 16]);

/// The id of one run of one leg: 16 random bytes, new for every run.
///
/// A claim that is repeated with the same id, because its reply was lost, returns the same fence.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RunnerId([u8; 16]);

/// The digest of the answers that came with a leg. It distinguishes a second delivery of a request from another request.
///
/// The digest is keyed with a secret of the call, so the time of a comparison is no help to a caller.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 16]);

/// The digest of the caller to whom a store charges rows and bytes. [`MemoryStore`](crate::MemoryStore) has a limit for each
/// owner. Stores on disk and on a network do not store the owner.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner([u8; 16]);

macro_rules! sixteen_bytes {
    ($name:ident) => {
        impl $name {
            /// Returns the value with these bytes.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(bytes)
            }

            /// Returns the bytes.
            #[must_use]
            pub const fn as_bytes(&self) -> &[u8; 16] {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_hex(f, &self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }
    };
}

sixteen_bytes!(CallKey);
sixteen_bytes!(RunnerId);
sixteen_bytes!(Fingerprint);
sixteen_bytes!(Owner);

/// Writes bytes as lowercase hexadecimal digits.
pub(crate) fn write_hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

/// The SHA-256 digest of a blob, and the key of its row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobDigest([u8; 32]);

impl BlobDigest {
    /// Returns the digest of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Returns the digest with these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes of the digest.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the blob if it has this digest. Every store calls this function before it returns a blob.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Corrupt`] if the store returned other bytes.
    pub fn verify(&self, blob: Vec<u8>) -> Result<Vec<u8>, StoreError> {
        if Self::of(&blob) == *self {
            return Ok(blob);
        }
        Err(StoreError::read(StoreErrorKind::Corrupt, "get", format!("the blob {self} has another digest")))
    }
}

impl fmt::Display for BlobDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

impl fmt::Debug for BlobDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlobDigest({self})")
    }
}
