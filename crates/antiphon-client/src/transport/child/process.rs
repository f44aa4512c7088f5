//! The command that starts a child, one run of the child, and its restarts.

use crate::transport::{
    Transport as _, TransportError,
    TransportErrorKind::{Closed, Unreachable},
    child::{
        stderr::{Callback, Forward, forward_lines},
        supervisor::ChildSupervisor,
        supervisor::Group,
    },
    stdio::{StreamTransport, Task},
};
use antiphon_wire::{escaped, lock::Lock};
use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    fmt,
    path::PathBuf,
    process::Stdio,
    sync::{Arc, MutexGuard},
    time::Duration,
};
use tokio::{process::Command, time::Instant};

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

/// The time after a child's end in which its last lines are still read.
const LAST_LINES: Duration = Duration::from_millis(200);
/// The time in which restarts are counted.
const WINDOW: Duration = Duration::from_secs(60);

/// Starts the same program as often as needed.
pub(crate) struct Launcher {
    command: Lock<Command>,
    name: String,
    /// Takes the lines of standard error, of one run after another.
    forward: Lock<Option<Forward>>,
}

/// The maximum number of characters of a line of the child in the log.
const CHILD_LINE: usize = 2000;

/// One run.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) stream: StreamTransport,
    pub(crate) supervisor: ChildSupervisor,
    /// The task that forwards its standard error. The one below is that of the run before, as long as it has lines to
    /// forward.
    stderr: Lock<Option<Task>>,
    _last_words: Option<Task>,
}

impl Launcher {
    pub(crate) fn new(mut command: Command, name: String, stderr: ChildStderr) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).stderr(match stderr {
            ChildStderr::Inherit => Stdio::inherit(),
            ChildStderr::Discard => Stdio::null(),
            ChildStderr::Log | ChildStderr::Lines(_) => Stdio::piped(),
        });
        Group::prepare(&mut command);
        let forward: Option<Callback> = match stderr {
            ChildStderr::Lines(callback) => Some(callback),
            ChildStderr::Log => {
                let name = name.clone();
                Some(Box::new(move |line| {
                    // Escaped, so that the child cannot control the terminal that shows the log.
                    let line = escaped(line).limit(CHILD_LINE);
                    tracing::info!(target: "antiphon::child", server = %escaped(&name), "{line}");
                }))
            }
            ChildStderr::Inherit | ChildStderr::Discard => None,
        };
        let forward = Lock::new(forward.map(|one| Arc::new(Lock::new(one))));
        Self { command: Lock::new(command), name, forward }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn start(&self, last_words: Option<Task>) -> Result<Process, TransportError> {
        let name = &self.name;
        let child = self.command.lock().spawn();
        let mut child = child.map_err(|fault| {
            TransportError::new(Unreachable, format!("`{name}` cannot be started")).with_source(fault)
        })?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(TransportError::new(Unreachable, format!("`{name}` has no pipes")));
        };
        let stderr = child.stderr.take().zip(self.forward().clone());
        Ok(Process {
            stream: StreamTransport::new(stdout, stdin, name),
            supervisor: ChildSupervisor::new(child),
            stderr: Lock::new(stderr.map(|(pipe, forward)| Task::spawn(forward_lines(pipe, forward)))),
            _last_words: last_words,
        })
    }

    /// Nothing will be started any more: the callback for standard error is dropped.
    pub(crate) fn retire(&self) {
        self.forward().take();
    }

    fn forward(&self) -> MutexGuard<'_, Option<Forward>> {
        self.forward.lock()
    }
}

impl Process {
    /// Returns `true` if no request can be answered any more.
    pub(crate) fn has_ended(&self) -> bool {
        self.stream.has_ended() || self.supervisor.id().is_none()
    }

    /// The task that forwards its standard error. It belongs to the caller from now on.
    pub(crate) fn stderr(&self) -> Option<Task> {
        self.stderr.lock().take()
    }

    /// Closes the input of the child, then ends the child.
    pub(crate) async fn stop(&self, grace: Duration) {
        // The child can write until its end: a write must not fail and kill it.
        let reader = self.stream.close_writing().await;
        self.supervisor.stop(grace).await;
        // A grandchild may hold the pipes open.
        if let Some(stderr) = self.stderr() {
            stderr.end_within(LAST_LINES).await;
        }
        if let Some(reader) = reader {
            reader.end_within(Duration::ZERO).await;
        }
        self.stream.close().await;
    }
}

/// The restarts of the last minute.
#[derive(Debug)]
pub(crate) struct Restarts {
    limit: usize,
    recent: VecDeque<Instant>,
}

impl Restarts {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, recent: VecDeque::new() }
    }

    pub(crate) fn are_allowed(&self) -> bool {
        self.limit > 0
    }

    /// Counts one more.
    pub(crate) fn take(&mut self, name: &str) -> Result<(), TransportError> {
        let now = Instant::now();
        self.recent.retain(|at| now.saturating_duration_since(*at) < WINDOW);
        if self.recent.len() >= self.limit {
            let text = format!(
                "the server process `{name}` ended {} times within a minute: it is not started again for now",
                self.recent.len() + 1
            );
            return Err(TransportError::new(Unreachable, text));
        }
        self.recent.push_back(now);
        Ok(())
    }
}

/// Leaves out arguments and environment, which may hold secrets.
impl fmt::Debug for Launcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launcher").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The time that a broken connection waits for the child's exit status, which has more information.
const LAST_STATUS: Duration = Duration::from_secs(1);

/// The process of a transport, and the restarts that it has left.
#[derive(Debug)]
pub(crate) struct Current {
    pub(crate) process: Arc<Process>,
    pub(crate) restarts: Restarts,
    /// `true` if this client closed the transport: no child is started again.
    pub(crate) closed: bool,
}

pub(crate) fn lock(current: &Lock<Current>) -> MutexGuard<'_, Current> {
    current.lock()
}

/// Adds the child's exit status to the error, and marks the error as final if no other child will be started.
pub(crate) async fn explain(
    process: &Process,
    name: &str,
    current: &Lock<Current>,
    error: TransportError,
) -> TransportError {
    let error = match process.supervisor.exited_within(LAST_STATUS).await {
        Some(end) => TransportError::new(Closed, format!("the server process `{name}` ended: {end}")),
        None => error,
    };
    let current = lock(current);
    if current.closed || !current.restarts.are_allowed() { error.for_good() } else { error.not_for_good() }
}
