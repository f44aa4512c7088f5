//! A server as a child process.

mod warden;

use super::{
    client::{StreamTransport, Task},
    framing::{Line, LineBuffer},
};
use crate::transport::{
    IncomingNotification, OutgoingRequest, ServerReply, Transport, TransportError,
    TransportErrorKind::{Closed, Unreachable},
};
use futures_util::future::BoxFuture;
use std::{
    ffi::OsString,
    fmt,
    path::PathBuf,
    process::Stdio,
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::Command,
};
use warden::Warden;

/// The longest line of a child's standard error that is forwarded.
const MAX_ERROR_LINE: usize = 8 * 1024;
/// How long after a child's end its last lines are still waited for.
const LAST_LINES: Duration = Duration::from_millis(200);
/// How long a broken connection waits for the child's exit status, which says more.
const LAST_STATUS: Duration = Duration::from_secs(1);

/// How to start a server: a program, not a shell line.
#[must_use]
pub struct ChildCommand {
    command: Command,
    name: String,
    stderr: ChildStderr,
    grace: Duration,
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
/// [`close`](Transport::close) closes the child's standard input and waits; then terminates it and waits; then kills
/// it. Dropping the transport kills it at once.
#[derive(Debug)]
pub struct ChildTransport {
    stream: StreamTransport,
    warden: Warden,
    grace: Duration,
    stderr: Mutex<Option<Task>>,
}

impl ChildCommand {
    /// The program, looked up in `PATH`. The environment is inherited.
    pub fn new(program: impl Into<OsString>) -> Self {
        let program = program.into();
        let name = program.to_string_lossy().into_owned();
        let command = Command::new(program);
        Self { command, name, stderr: ChildStderr::Log, grace: Duration::from_secs(2) }
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
        let ChildCommand { mut command, name, stderr, grace } = command;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).stderr(match stderr {
            ChildStderr::Inherit => Stdio::inherit(),
            ChildStderr::Discard => Stdio::null(),
            ChildStderr::Log | ChildStderr::Lines(_) => Stdio::piped(),
        });
        let mut child = command.spawn().map_err(|fault| {
            TransportError::new(Unreachable, format!("`{name}` cannot be started")).with_source(fault)
        })?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(TransportError::new(Unreachable, format!("`{name}` has no pipes")));
        };
        let forward: Box<dyn FnMut(&str) + Send> = match stderr {
            ChildStderr::Lines(callback) => callback,
            _ => {
                let name = name.clone();
                Box::new(move |line| {
                    // The child does not get to steer the terminal that shows the log.
                    let line: String = line.chars().filter(|c| !c.is_control()).collect();
                    tracing::info!(target: "antiphon::child", server = name, "{line}");
                })
            }
        };
        let stderr = child.stderr.take().map(|pipe| Task::spawn(forward_lines(pipe, forward)));
        Ok(Self {
            stream: StreamTransport::new(stdout, stdin, name),
            warden: Warden::new(child),
            grace,
            stderr: Mutex::new(stderr),
        })
    }

    /// The operating system's id of the child; `None` once it has exited.
    pub fn id(&self) -> Option<u32> {
        self.warden.id()
    }

    async fn explain(&self, error: TransportError) -> TransportError {
        match self.warden.exited_within(LAST_STATUS).await {
            Some(end) => {
                TransportError::new(Closed, format!("the server process `{}` ended: {end}", self.target()))
            }
            None => error,
        }
    }
}

impl Transport for ChildTransport {
    fn exchange<'a>(
        &'a self,
        request: OutgoingRequest,
        on_notification: &'a mut (dyn FnMut(IncomingNotification) + Send),
    ) -> BoxFuture<'a, Result<ServerReply, TransportError>> {
        Box::pin(async move {
            match self.stream.exchange(request, on_notification).await {
                Err(error) if error.kind() == Closed => Err(self.explain(error).await),
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
            // Until its end the child can write: its last words must not be what it dies of.
            let reader = self.stream.close_writing().await;
            self.warden.stop(self.grace).await;
            let stderr = self.stderr.lock().unwrap_or_else(PoisonError::into_inner).take();
            // A grandchild may hold the pipes open.
            if let Some(stderr) = stderr {
                stderr.end_within(LAST_LINES).await;
            }
            if let Some(reader) = reader {
                reader.end_within(Duration::ZERO).await;
            }
        })
    }

    fn target(&self) -> &str {
        self.stream.target()
    }
}

/// > The server **MAY** write UTF-8 strings to `stderr` for any logging purposes
async fn forward_lines(mut pipe: impl AsyncRead + Unpin, mut forward: impl FnMut(&str)) {
    let mut lines = LineBuffer::new(MAX_ERROR_LINE);
    let mut chunk = vec![0; 4096];
    loop {
        let count = pipe.read(&mut chunk).await.unwrap_or(0);
        // The end of the stream ends the last line.
        lines.push(if count == 0 { b"\n" } else { &chunk[..count] });
        while let Some(line) = lines.next_line() {
            match line {
                Line::Whole(line) => forward(&String::from_utf8_lossy(&line)),
                Line::TooLong => forward(&format!("(a line of more than {MAX_ERROR_LINE} bytes)")),
            }
        }
        if count == 0 {
            return;
        }
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
