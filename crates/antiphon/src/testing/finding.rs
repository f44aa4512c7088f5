//! Violations that the bench found.

use super::Fault;
use std::fmt;

/// A violation: the fault that was injected, and the difference.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The injected fault; `None` for the run without a fault.
    pub fault: Option<Fault>,
    /// The kind of violation.
    pub kind: FindingKind,
    /// A description of the difference.
    pub text: String,
}

/// The kind of a [`Finding`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FindingKind {
    /// The result or the questions differ.
    Result,
    /// A request that must be rejected was accepted.
    Refusal,
    /// The number of effects or of their keys differs.
    Effects,
    /// The handler differs between a run and its replay.
    Replay,
}

impl Finding {
    pub(super) fn new(fault: Option<&Fault>, kind: FindingKind, text: String) -> Self {
        Self { fault: fault.cloned(), kind, text }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.fault {
            Some(fault) => write!(f, "{fault}: {}", self.text),
            None => write!(f, "without any fault: {}", self.text),
        }
    }
}

/// A list of findings, one per line.
pub(super) struct Findings<'a>(pub(super) &'a [Finding]);

/// The maximum number of findings in one message.
const SHOWN: usize = 20;

impl fmt::Display for Findings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in self.0.iter().take(SHOWN) {
            write!(f, "\n  {finding}")?;
        }
        match self.0.len().checked_sub(SHOWN) {
            Some(more @ 1..) => write!(f, "\n  and {more} more"),
            _ => Ok(()),
        }
    }
}
