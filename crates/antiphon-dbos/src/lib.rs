#![doc = include_str!("lib.md")]

mod engine;
mod options;

mod launch;
mod upkeep;
mod workflow;

mod runs;
mod shared;
mod tables;

pub use engine::DbosTasks;
pub use options::DbosOptions;
