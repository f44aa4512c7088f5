//! The events of a subscription.

use antiphon_wire::SubscriptionFilter;

/// An event of a subscription. The events of a kind are idempotent: several that were not taken yet are one.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SubscriptionEvent {
    /// The server listens from now on, and this is what it agreed to tell; what it does not support is missing.
    ///
    /// The first event of a subscription, and the first one after a connection broke and was opened again: what
    /// happened in between is unknown, so whatever depends on it should be asked for anew.
    Acknowledged(SubscriptionFilter),
    /// The list of tools changed.
    ToolsListChanged,
    /// The list of prompts changed.
    PromptsListChanged,
    /// The list of resources changed.
    ResourcesListChanged,
    /// A resource changed, and may need to be read again.
    ResourceUpdated {
        /// The URI that was asked for, or that of a part of it.
        uri: String,
    },
}
