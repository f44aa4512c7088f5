//! The lists of a server, and the data that calls use from them.

pub(crate) mod pages;
pub(crate) mod tools;
