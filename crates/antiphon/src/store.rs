//! Stores of calls, for servers with [`single_use`](crate::server::ServerBuilder::single_use) or
//! [`write_ahead`](crate::server::ServerBuilder::write_ahead).
//!
//! | store | feature | who shares its calls |
//! |---|---|---|
//! | [`MemoryStore`] | `server` | one process |
//! | `SqliteStore` | `sqlite` | the processes of one host |
//! | `PostgresStore` | `postgres` | all instances |
//! | `RedisStore` | `redis` | all instances; a failover may lose calls |
//!
//! A store of your own implements [`CallStore`] and [`TaskStore`], an engine of tasks [`TaskEngine`]; the suites that check them are
//! in `antiphon::testing::store_contract`. With SQLite and PostgreSQL, a step can run
//! [in the transaction](crate::server::Ctx::in_transaction) of its record.

/// # Examples
///
/// ```
/// use antiphon::{Result, server::{Ctx, State}, store::PostgresStore, tool};
///
/// /// Orders an item.
/// #[tool(write_ahead)]
/// async fn order(ctx: &Ctx, store: State<PostgresStore>, item: String) -> Result<String> {
///     let id: i64 = ctx
///         .in_transaction("order", &*store, async |tx| {
///             let row = tx.query_one("INSERT INTO orders (item) VALUES ($1) RETURNING id", &[&item]).await?;
///             Ok(row.get(0))
///         })
///         .await?;
///     Ok(format!("Order {id}."))
/// }
/// ```
#[cfg(feature = "postgres")]
pub use antiphon_store::PostgresTransaction;
pub use antiphon_store::{
    CallStore, ManualStoreClock, MemoryLimits, MemoryStore, MemoryTasks, StoreClock, StoreError,
    StoreErrorKind, StoreFuture, StoreIdentity, TaskEngine, TaskLimits, TaskStore, Transact,
    TransactionStore,
};
#[cfg(feature = "postgres")]
pub use antiphon_store::{PostgresOptions, PostgresStore, tokio_postgres};
#[cfg(feature = "redis")]
pub use antiphon_store::{RedisOptions, RedisStore};
#[cfg(feature = "sqlite")]
pub use antiphon_store::{SqliteOptions, SqliteStore, rusqlite};

/// Rows of calls: for stores of your own.
pub mod calls {
    pub use antiphon_store::{
        Appended, BlobDigest, CallKey, Claim, ClaimRequest, Conclusion, Conflict, Fence, Fingerprint,
        MAX_STEP_NAME, MAX_VALUE, Micros, Owner, Predecessor, RunnerId, StepAttempt, StepEvent, StepRecord,
        StoreReach, Swept, Transacted, Unknown, Written,
    };
}

/// Feeds of changes, by which instances notify each other's subscribers: for feeds of your own.
pub mod changes {
    pub use antiphon_store::{ChangeChannel, ChangeFeed, ChangeWatch, MAX_CHANGE};
}

/// Rows and programs of tasks: for stores and engines of your own.
pub mod tasks {
    pub use antiphon_store::{
        LegControl, LegStop, NewTask, TaskAction, TaskClaim, TaskCreated, TaskDecision, TaskFence,
        TaskFuture, TaskKey, TaskListener, TaskMessage, TaskNext, TaskProgram, TaskRow, TaskSent, TaskState,
        TaskSummary, TaskUpdate,
    };
}
