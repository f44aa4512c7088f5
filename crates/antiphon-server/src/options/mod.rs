//! Settings of a server and of its offers, and its clock.

pub(crate) mod clock;
pub(crate) mod limits;
pub(crate) mod settings;
