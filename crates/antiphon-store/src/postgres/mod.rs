//! The store in PostgreSQL, for all instances.

mod claim_reply;
mod error;
mod migrate;
mod names;
mod options;
mod pool;
mod statements;
mod store;
mod tls;
mod transaction;

#[cfg(feature = "testing")]
mod test_clock;

pub use options::PostgresOptions;
pub use store::PostgresStore;
pub use transaction::PostgresTransaction;
