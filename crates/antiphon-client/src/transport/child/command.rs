//! The command that starts a child.

use std::{ffi::OsString, fmt, path::PathBuf, time::Duration};
use tokio::process::Command;

/// The command that starts a server: a program, not a shell line.
#[must_use]
pub struct ChildCommand {
    pub(crate) command: Command,
    pub(crate) name: String,
    pub(crate) stderr: ChildStderr,
    pub(crate) grace: Duration,
    pub(crate) restarts: usize,
}

/// The destination of a child's standard error.
#[derive(Default)]
#[non_exhaustive]
pub enum ChildStderr {
    /// To `tracing`, line by line, at level info with the target `antiphon::child`.
    #[default]
    Log,
    /// To this process's own standard error.
    Inherit,
    /// Nowhere.
    Discard,
    /// To a callback, line by line.
    Lines(Box<dyn FnMut(&str) + Send>),
}

impl ChildCommand {
    /// Starts this program, which is looked up in `PATH`. The environment is inherited.
    pub fn new(program: impl Into<OsString>) -> Self {
        let program = program.into();
        let name = program.to_string_lossy().into_owned();
        let command = Command::new(program);
        Self { command, name, stderr: ChildStderr::Log, grace: Duration::from_secs(2), restarts: 5 }
    }

    /// Adds an argument.
    pub fn arg(self, argument: impl Into<OsString>) -> Self {
        self.args([argument])
    }

    /// Adds arguments.
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.command.args(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets a variable of the environment.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.command.env(name.into(), value.into());
        self
    }

    /// Clears the environment. The child gets only the variables that [`env`](Self::env) sets after this call.
    pub fn clear_env(mut self) -> Self {
        self.command.env_clear();
        self
    }

    /// Sets the directory to start in.
    pub fn current_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.command.current_dir(directory.into());
        self
    }

    /// Sets the name of the server in errors and logs: the program unless set. Arguments are not shown, they may hold secrets.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the destination of the standard error: [`ChildStderr::Log`] unless set.
    pub fn stderr(mut self, stderr: ChildStderr) -> Self {
        self.stderr = stderr;
        self
    }

    /// The time that each step of closing waits for the child to exit: 2 seconds unless set.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// The number of times within a minute that a child that ended by itself is started again, each time for the next request:
    /// 5 unless set. Beyond that, requests fail until the minute has passed. 0: never.
    pub fn restarts(mut self, times: usize) -> Self {
        self.restarts = times;
        self
    }
}

/// Without arguments and environment: they may hold secrets.
impl fmt::Debug for ChildCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildCommand").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for ChildStderr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Log => "Log",
            Self::Inherit => "Inherit",
            Self::Discard => "Discard",
            Self::Lines(_) => "Lines(..)",
        })
    }
}
