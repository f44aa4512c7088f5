//! A server as a child process.

mod process;
mod session;
mod warden;

use crate::transport::{
    IncomingNotification, OutgoingRequest, ServerReply, SessionLink, Sessions, Transport, TransportError,
    TransportErrorKind::Closed, stdio::Task,
};
use futures_util::future::BoxFuture;
use process::{Launcher, Process, Restarts};
use std::{
    ffi::OsString,
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::process::Command;

/// How long a broken connection waits for the child's exit status, which says more.
const LAST_STATUS: Duration = Duration::from_secs(1);

/// How to start a server: a program, not a shell line.
#[must_use]
pub struct ChildCommand {
    command: Command,
    name: String,
    stderr: ChildStderr,
    grace: Duration,
    restarts: usize,
}

/// Where a child's standard error goes.
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

/// The client's way to a server that it started.
///
/// If the child ends by itself, or closes its output, the requests under way fail as
/// [`Closed`](crate::transport::TransportErrorKind::Closed), and the next request starts it again: see
/// [`ChildCommand::restarts`].
///
/// [`close`](Transport::close) closes the child's standard input and waits; then terminates it and waits; then kills
/// it. Dropping the transport kills it at once.
#[derive(Debug)]
pub struct ChildTransport {
    launcher: Launcher,
    grace: Duration,
    current: Arc<Mutex<Current>>,
}

#[derive(Debug)]
struct Current {
    process: Arc<Process>,
    restarts: Restarts,
    /// Closed by this client: what ends now is not started again.
    closed: bool,
}

impl ChildCommand {
    /// The program, looked up in `PATH`. The environment is inherited.
    pub fn new(program: impl Into<OsString>) -> Self {
        let program = program.into();
        let name = program.to_string_lossy().into_owned();
        let command = Command::new(program);
        Self { command, name, stderr: ChildStderr::Log, grace: Duration::from_secs(2), restarts: 5 }
    }

    /// One more argument.
    pub fn arg(self, argument: impl Into<OsString>) -> Self {
        self.args([argument])
    }

    /// More arguments.
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.command.args(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets a variable of the environment.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.command.env(name.into(), value.into());
        self
    }

    /// Passes on nothing of the environment but what [`env`](Self::env) sets after this.
    pub fn clear_env(mut self) -> Self {
        self.command.env_clear();
        self
    }

    /// The directory to start in.
    pub fn current_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.command.current_dir(directory.into());
        self
    }

    /// What errors and logs call the server: the program unless set. Arguments are not shown, they may hold secrets.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Where the standard error goes.
    pub fn stderr(mut self, stderr: ChildStderr) -> Self {
        self.stderr = stderr;
        self
    }

    /// How long each step of closing waits for the child to exit: 2 seconds unless set.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// How often within a minute a child that ended by itself is started again, each time for the next request: 5 times
    /// unless set. Beyond that, requests fail until the minute has passed. 0: never.
    pub fn restarts(mut self, times: usize) -> Self {
        self.restarts = times;
        self
    }
}

impl ChildTransport {
    /// Starts the child.
    ///
    /// # Errors
    /// [`Unreachable`](crate::transport::TransportErrorKind::Unreachable) if it cannot be started.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn spawn(command: ChildCommand) -> Result<Self, TransportError> {
        let ChildCommand { command, name, stderr, grace, restarts } = command;
        let launcher = Launcher::new(command, name, stderr);
        let process = Arc::new(launcher.start(None)?);
        let current = Current { process, restarts: Restarts::new(restarts), closed: false };
        Ok(Self { launcher, grace, current: Arc::new(Mutex::new(current)) })
    }

    /// The operating system's id of the child; `None` once it has exited, until it is started again.
    pub fn id(&self) -> Option<u32> {
        self.current().process.warden.id()
    }

    /// The process to send the next request to.
    ///
    /// > If the server process exits unexpectedly, the client **SHOULD** restart it.
    fn process(&self) -> Result<Arc<Process>, TransportError> {
        let mut current = self.current();
        if !current.closed && current.process.has_ended() && current.restarts.are_allowed() {
            current.restarts.take(self.target())?;
            tracing::warn!(server = self.target(), "the server process ended by itself: it is started again");
            // The last words of the old one are still being forwarded.
            let last_words = current.process.stderr();
            current.process = Arc::new(self.launcher.start(last_words)?);
        }
        Ok(Arc::clone(&current.process))
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        // A process and a few times, each written at once: a panic elsewhere leaves them whole.
        lock(&self.current)
    }
}

fn lock(current: &Mutex<Current>) -> MutexGuard<'_, Current> {
    current.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says how the child ended, and whether there will be another one.
async fn explain(
    process: &Process,
    name: &str,
    current: &Mutex<Current>,
    error: TransportError,
) -> TransportError {
    let error = match process.warden.exited_within(LAST_STATUS).await {
        Some(end) => TransportError::new(Closed, format!("the server process `{name}` ended: {end}")),
        None => error,
    };
    let current = lock(current);
    if current.closed || !current.restarts.are_allowed() { error.for_good() } else { error.not_for_good() }
}

impl Transport for ChildTransport {
    fn exchange<'a>(
        &'a self,
        request: OutgoingRequest,
        on_notification: &'a mut (dyn FnMut(IncomingNotification) + Send),
    ) -> BoxFuture<'a, Result<ServerReply, TransportError>> {
        Box::pin(async move {
            let process = self.process()?;
            // > any in-flight requests are simply lost and the client can retry them against the fresh process
            // Whether a request may be sent twice is its caller's to decide.
            match process.stream.exchange(request, on_notification).await {
                Err(error) if error.kind() == Closed => {
                    Err(explain(&process, self.target(), &self.current, error).await)
                }
                answer => answer,
            }
        })
    }

    // > The client **SHOULD** initiate shutdown by:
    // > 1. Closing the input stream to the child process (the server).
    // > 2. Waiting for the server to exit.
    // > 3. If the server does not exit within a reasonable time, forcibly terminating the process
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let process = {
                let mut current = self.current();
                current.closed = true;
                Arc::clone(&current.process)
            };
            self.launcher.retire();
            process.stop(self.grace).await;
        })
    }

    fn target(&self) -> &str {
        self.launcher.name()
    }

    fn sessions(&self) -> Option<&dyn Sessions> {
        Some(self)
    }
}

impl Sessions for ChildTransport {
    fn probes_first(&self) -> bool {
        true
    }

    /// Starts the child again if it ended by itself: a session is that of one process.
    fn open(&self) -> Result<Arc<dyn SessionLink>, TransportError> {
        let process = self.process()?;
        let link = process.stream.link()?;
        let (name, current) = (self.target().to_owned(), Arc::clone(&self.current));
        Ok(Arc::new(session::ChildLink { link, process, name, current }))
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
