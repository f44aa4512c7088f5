//! The embedded engine of tasks: it runs them over a store of rows, for one process or for the processes of one machine.
//!
//! A process that runs a task holds the lease of its row, and renews the lease. Each process looks for rows that are due: new
//! ones, those with a message, those of processes that died, and those that waited for a moment.

mod active;
mod engine;
mod run;
mod shared;
mod wake;

pub use self::engine::EmbeddedEngine;
