//! Each store against the contract, and what only that store has. PostgreSQL and Redis are started by the tests, in folders and
//! on sockets of their own.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod folder;
#[cfg(unix)]
mod programs;

mod embedded_engine;
mod memory;
#[cfg(unix)]
mod postgres;
#[cfg(unix)]
mod postgres_server;
#[cfg(unix)]
mod postgres_transactions;
#[cfg(unix)]
mod redis;
mod sqlite;
mod sqlite_transactions;
mod tasks_memory;
mod tasks_sqlite;
