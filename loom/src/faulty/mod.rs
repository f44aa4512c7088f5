//! Orderings and protocols that lose a wake. The tests require the models to find each.

pub mod relaxed_drop;
pub mod relaxed_flag;
pub mod step_protocol;
pub mod tracker_protocol;
