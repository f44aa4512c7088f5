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
//! A store of your own implements [`CallStore`]. With SQLite and PostgreSQL, a step can run
//! [in the transaction](crate::server::Ctx::in_transaction) of its record.

pub use antiphon_store::*;
