//! The lists of a server, and the knowledge that calls take from them.

pub(crate) mod pages;
pub(crate) mod tools;
