//! The command that starts a child.

use std::{
    ffi::{OsStr, OsString},
    fmt,
    path::PathBuf,
    time::Duration,
};
use tokio::process::Command;

/// The command that starts a server: a program, not a shell line.
#[must_use]
pub struct ChildCommand {
    command: Command,
    environment: Environment,
    variables: Vec<(OsString, OsString)>,
    pub(crate) name: String,
    pub(crate) stderr: ChildStderr,
    pub(crate) grace: Duration,
    pub(crate) restarts: usize,
}

/// The variables of this process's environment that a child gets.
#[derive(Clone, Copy)]
enum Environment {
    Listed,
    All,
    Nothing,
}

/// The variables of this process that a child gets by default. The SDKs of TypeScript and Python pass on the same.
const LISTED: &[&str] = if cfg!(windows) {
    &[
        "APPDATA",
        "HOMEDRIVE",
        "HOMEPATH",
        "LOCALAPPDATA",
        "PATH",
        "PROCESSOR_ARCHITECTURE",
        "SYSTEMDRIVE",
        "SYSTEMROOT",
        "TEMP",
        "USERNAME",
        "USERPROFILE",
    ]
} else {
    &["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"]
};

/// The destination of a child's standard error.
///
/// At most 200 lines and 64 KiB a second are forwarded to the log or to a callback. One line then says how much was dropped.
#[derive(Default)]
#[non_exhaustive]
pub enum ChildStderr {
    /// The log of `tracing`, line by line, at level info with the target `antiphon::child`.
    #[default]
    Log,
    /// This process's own standard error, unchanged and without a limit.
    Inherit,
    /// No destination: the lines are dropped.
    Discard,
    /// A callback, line by line.
    Lines(Box<dyn FnMut(&str) + Send>),
}

impl ChildCommand {
    /// Starts this program, which is looked up in `PATH`.
    ///
    /// Of this process's environment, the child gets only `HOME`, `LOGNAME`, `PATH`, `SHELL`, `TERM` and `USER` (on Windows the
    /// variables that programs need there): other variables may hold tokens and keys of this process. [`env`](Self::env) adds
    /// variables, [`inherit_env`](Self::inherit_env) passes on all of them.
    pub fn new(program: impl Into<OsString>) -> Self {
        let program = program.into();
        let name = program.to_string_lossy().into_owned();
        let command = Command::new(program);
        let (environment, variables) = (Environment::Listed, Vec::new());
        Self {
            command,
            environment,
            variables,
            name,
            stderr: ChildStderr::Log,
            grace: Duration::from_secs(2),
            restarts: 5,
        }
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
        self.variables.push((name.into(), value.into()));
        self
    }

    /// `true`: the child gets the whole environment of this process, with all its secrets. `false` unless set.
    pub fn inherit_env(mut self, inherit: bool) -> Self {
        self.environment = if inherit { Environment::All } else { Environment::Listed };
        self
    }

    /// Clears the environment. The child gets only the variables that [`env`](Self::env) sets after this call.
    pub fn clear_env(mut self) -> Self {
        self.environment = Environment::Nothing;
        self.variables.clear();
        self
    }

    /// Returns the command with its environment, and the other settings.
    pub(crate) fn into_command(mut self) -> (Command, Self) {
        let mut command = std::mem::replace(&mut self.command, Command::new(""));
        if !matches!(self.environment, Environment::All) {
            command.env_clear();
        }
        if matches!(self.environment, Environment::Listed) {
            let ours = |name: &&'static str| Some((*name, std::env::var_os(name)?));
            command.envs(LISTED.iter().filter_map(ours).filter(|(_, value)| !is_function(value)));
        }
        command.envs(std::mem::take(&mut self.variables));
        (command, self)
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

    /// The time that each step of closing waits for the child, and on Unix for all processes of its group, to exit: 2 seconds unless
    /// set.
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

/// Returns `true` for the functions that old shells export as variables, and that a child's shell would run.
fn is_function(value: &OsStr) -> bool {
    value.as_encoded_bytes().starts_with(b"()")
}

/// Leaves out arguments and environment, which may hold secrets.
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
