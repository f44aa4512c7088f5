//! Orderings and protocols that lose a wake. The tests want each of them found.

pub mod protocol;
pub mod relaxed_drop;
pub mod relaxed_flag;
pub mod step_protocol;
