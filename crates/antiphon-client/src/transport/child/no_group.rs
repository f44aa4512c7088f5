//! The place of a child's process group on systems without one: only the child itself is ended.

use std::io;
use tokio::process::{Child, Command};

/// A child alone. What the child started is not known here.
pub(crate) struct Group;

impl Group {
    /// Changes nothing.
    pub(crate) fn prepare(_: &mut Command) {}

    /// Returns the child alone.
    pub(crate) fn of(_: &Child) -> Self {
        Self
    }

    /// Kills the child: there is no gentler way.
    pub(crate) fn terminate(&self, child: &mut Child) -> io::Result<()> {
        child.start_kill()
    }

    /// Kills the child.
    pub(crate) fn kill(&self, child: &mut Child) -> io::Result<()> {
        child.start_kill()
    }

    /// Does nothing.
    pub(crate) fn look(&mut self) {}

    /// Returns `true`: the child was waited for.
    pub(crate) fn is_gone(&self) -> bool {
        true
    }
}
