//! The tools, by what they show.

pub(crate) mod charge_once;
pub(crate) mod effects;
pub(crate) mod long_work;
pub(crate) mod questions;
