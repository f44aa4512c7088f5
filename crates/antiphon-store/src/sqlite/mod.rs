//! The store in one SQLite file, for the processes of one host.

mod clock_hold;
mod error;
mod options;
mod rows;
mod schema;
mod statements;
mod store;
mod task_rows;
mod task_statements;
mod tasks;
mod transaction;
mod worker;

pub use options::SqliteOptions;
pub use store::SqliteStore;
