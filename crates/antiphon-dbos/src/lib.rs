#![doc = include_str!("lib.md")]

mod engine;
mod options;

mod drain;
mod launch;
mod listen;
mod upkeep;
mod wake;
mod workflow;

mod error;
mod legs;
mod recorded;
mod runs;
mod shared;
mod tables;

pub use engine::DbosTasks;
pub use options::DbosOptions;
