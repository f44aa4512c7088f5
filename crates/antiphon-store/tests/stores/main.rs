//! Each store against the contract, and what only that store has. The tests of PostgreSQL and Redis need the features `postgres`
//! and `redis`, and start the servers, in folders and on sockets of their own.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod folder;
#[cfg(all(unix, any(feature = "postgres", feature = "redis")))]
mod programs;

mod embedded_engine;
mod memory;
#[cfg(all(unix, feature = "postgres"))]
mod postgres;
#[cfg(all(unix, feature = "postgres"))]
mod postgres_server;
#[cfg(all(unix, feature = "postgres"))]
mod postgres_transactions;
#[cfg(all(unix, feature = "redis"))]
mod redis;
mod sqlite;
mod sqlite_transactions;
mod tasks_memory;
mod tasks_sqlite;
