//! The protection of the tools.

/// The protection of a tool, by the tool's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Level {
    /// `single_use`.
    Once,
    /// `write_ahead`, with steps that read the ledger after a crash.
    Reconciled,
    /// `write_ahead`, with steps that run again after a crash.
    Rerun,
}

impl Level {
    pub(crate) const ALL: [Self; 3] = [Self::Once, Self::Reconciled, Self::Rerun];

    /// Returns the name of the tool.
    pub(crate) fn tool(self) -> &'static str {
        match self {
            Self::Once => "single_use",
            Self::Reconciled => "reconciled",
            Self::Rerun => "rerun",
        }
    }
}
