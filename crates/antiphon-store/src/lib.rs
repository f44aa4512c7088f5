#![doc = include_str!("lib.md")]

mod store;
mod task;
mod transaction;

mod arc;

mod claim;
mod identity;
mod key;
mod step;

mod blob;
mod check;
mod clock;
mod error;
mod future;
mod reach;
mod row;

mod memory;

#[cfg(feature = "engine")]
mod embedded;

#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "sqlite")]
mod sqlite;

#[cfg(feature = "testing")]
pub mod contract;

pub use blob::BlobDigest;
pub use check::{MAX_STEP_NAME, MAX_VALUE};
pub use claim::{Claim, ClaimRequest, Conflict, Fence, Predecessor, Unknown};
pub use clock::{ManualStoreClock, Micros, StoreClock};
#[cfg(feature = "engine")]
pub use embedded::EmbeddedEngine;
pub use error::{StoreError, StoreErrorKind, Written};
pub use future::TaskFuture;
pub use identity::StoreIdentity;
pub use key::{CallKey, Fingerprint, Owner, RunnerId};
pub use memory::{MemoryLimits, MemoryStore, MemoryTasks};
#[cfg(feature = "postgres")]
pub use postgres::{PostgresOptions, PostgresStore, PostgresTransaction};
#[cfg(feature = "redis")]
pub use redis::{RedisOptions, RedisStore};
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteOptions, SqliteStore};
pub use step::{Appended, StepAttempt, StepEvent, StepRecord};
pub use store::{CallStore, StoreFuture, StoreReach, Swept};
pub use task::engine::{TaskEngine, TaskListener};
pub use task::program::{LegControl, TaskAction, TaskDecision, TaskProgram};
pub use task::{
    NewTask, TaskClaim, TaskCreated, TaskFence, TaskKey, TaskLimits, TaskMessage, TaskNext, TaskRow,
    TaskSent, TaskState, TaskStore, TaskSummary, TaskUpdate,
};
pub use transaction::{Conclusion, Transact, Transacted, TransactionStore};

/// The crate whose types a body in a transaction of [`SqliteStore`] receives.
#[cfg(feature = "sqlite")]
pub use rusqlite;
/// The crate whose client a [`PostgresTransaction`] dereferences to.
#[cfg(feature = "postgres")]
pub use tokio_postgres;
