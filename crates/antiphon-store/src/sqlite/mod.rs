//! The store in one SQLite file, for the processes of one host.

mod changes;
mod rows;
mod schema;
mod store;
mod task_rows;
mod tasks;
mod transaction;
mod worker;

pub use schema::SqliteOptions;
pub use store::SqliteStore;
