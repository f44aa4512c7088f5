//! Subscriptions: the registry of notifications that clients requested.

pub(crate) mod registry;
