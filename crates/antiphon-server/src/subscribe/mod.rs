//! Subscriptions: who wants to be notified of which changes.

pub(crate) mod registry;
