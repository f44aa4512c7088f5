//! The store in PostgreSQL, for all instances.

mod changes;
mod pool;
mod statements;
mod store;
mod transaction;

#[cfg(feature = "testing")]
mod test_clock;

pub use statements::PostgresOptions;
pub use store::PostgresStore;
pub use transaction::PostgresTransaction;
