//! Who wants to hear of changes.

/// Which list changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ListKind {
    Tools,
    Prompts,
    Resources,
}

/// Tells every open subscription what changed.
#[derive(Debug, Default)]
pub(super) struct Hub {}

impl Hub {
    pub(super) fn list_changed(&self, _kind: ListKind) {}

    pub(super) fn resource_updated(&self, _uri: &str) {}
}
