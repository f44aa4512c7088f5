//! What the bench saw that must not be.

use super::Fault;
use std::fmt;

/// Something that must not be: what was done to the call, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// What went wrong in the call; `None` in a call in which nothing went wrong.
    pub fault: Option<Fault>,
    /// What it is about.
    pub about: About,
    /// What differs.
    pub text: String,
}

/// What a [`Finding`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum About {
    /// Another result, or other questions.
    Result,
    /// What must be refused was not.
    Refusal,
    /// More effects, or fewer, or under other keys.
    Effects,
    /// The handler does not run the same way twice.
    Replay,
}

impl Finding {
    pub(super) fn new(fault: Option<&Fault>, about: About, text: String) -> Self {
        Self { fault: fault.cloned(), about, text }
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

/// Findings below each other.
pub(super) struct Findings<'a>(pub(super) &'a [Finding]);

/// More are not read.
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
