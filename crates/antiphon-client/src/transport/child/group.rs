//! The process group of a child, on Unix: the child, and the processes that it started.

use nix::{
    errno::Errno,
    sys::signal::{Signal, killpg},
    unistd::Pid,
};
use std::io;
use tokio::process::{Child, Command};

/// The process group of a child. Dropping it kills what is left of the group.
pub(crate) struct Group {
    /// The id of the group; `None` once no process is in it. The operating system gives the id to no other process as long as the
    /// child was not waited for, or another process is in the group.
    id: Option<Pid>,
}

impl Group {
    /// Gives each child of this command its own group. A child that a terminal starts is in that of its program otherwise.
    pub(crate) fn prepare(command: &mut Command) {
        command.process_group(0);
    }

    /// Returns the group of a child whose command was prepared.
    pub(crate) fn of(child: &Child) -> Self {
        Self { id: child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw) }
    }

    /// Sends SIGTERM to the group. A process that has stopped, for example because it read the terminal, receives it too.
    pub(crate) fn terminate(&self, _: &mut Child) -> io::Result<()> {
        self.send(Signal::SIGTERM)?;
        self.send(Signal::SIGCONT)
    }

    /// Kills the group.
    pub(crate) fn kill(&self, _: &mut Child) -> io::Result<()> {
        self.send(Signal::SIGKILL)
    }

    /// Looks if a process is left in the group. The child was waited for.
    pub(crate) fn look(&mut self) {
        self.id = self.id.filter(|id| killpg(*id, None).is_ok());
    }

    /// Returns `true` if no process is left.
    pub(crate) fn is_gone(&self) -> bool {
        self.id.is_none()
    }

    fn send(&self, signal: Signal) -> io::Result<()> {
        match self.id.map(|id| killpg(id, signal)) {
            None | Some(Ok(()) | Err(Errno::ESRCH)) => Ok(()),
            Some(Err(fault)) => Err(fault.into()),
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = self.send(Signal::SIGKILL);
    }
}
