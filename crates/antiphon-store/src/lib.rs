#![doc = include_str!("lib.md")]

mod store;
mod task;

mod changes;
mod wrappers;

mod claim;
mod properties;
mod step;

mod check;
mod clock;
mod error;
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

pub use changes::{ChangeChannel, ChangeFeed, ChangeWatch, MAX_CHANGE};
pub use check::{MAX_STEP_NAME, MAX_VALUE};
pub use claim::{
    BlobDigest, CallKey, Claim, ClaimRequest, Conflict, Fence, Fingerprint, Owner, Predecessor, RunnerId,
    Unknown,
};
pub use clock::{ManualStoreClock, Micros, StoreClock};
pub use error::{StoreError, StoreErrorKind, TaskFuture, Written};
pub use memory::{MemoryLimits, MemoryStore, MemoryTasks};
pub use properties::StoreIdentity;
pub use step::{Appended, StepAttempt, StepEvent, StepRecord};
pub use store::{
    CallStore, Conclusion, StoreFuture, StoreReach, Swept, Transact, Transacted, TransactionStore,
};
pub use task::{
    NewTask, TaskClaim, TaskCreated, TaskFence, TaskKey, TaskLimits, TaskMessage, TaskNext, TaskRow,
    TaskSent, TaskState, TaskStore, TaskSummary, TaskUpdate,
    program::{LegControl, LegStop, TaskAction, TaskDecision, TaskEngine, TaskListener, TaskProgram},
};
pub use wrappers::{StoreOperation, TimedStore};

#[cfg(feature = "engine")]
pub use embedded::EmbeddedEngine;
#[cfg(feature = "postgres")]
pub use postgres::{PostgresOptions, PostgresStore, PostgresTransaction};
#[cfg(feature = "redis")]
pub use redis::{RedisOptions, RedisStore};
/// The crate whose types a body in a transaction of [`SqliteStore`] receives.
#[cfg(feature = "sqlite")]
pub use rusqlite;
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteOptions, SqliteStore};
/// The crate whose client a [`PostgresTransaction`] dereferences to.
#[cfg(feature = "postgres")]
pub use tokio_postgres;
