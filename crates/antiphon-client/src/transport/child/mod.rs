//! A server as a child process.

mod process;
mod stderr;
mod supervisor;

pub use process::{ChildCommand, ChildStderr};

use crate::transport::{
    IncomingNotification, OutgoingNotification, OutgoingRequest, ServerMessage, ServerReply, SessionLink,
    SessionTransport, Transport, TransportError, TransportErrorKind::Closed, stdio::StreamLink,
};
use antiphon_wire::{ProtocolVersion, escaped, lock::Lock};
use futures_util::future::BoxFuture;
use process::{Current, Launcher, Process, Restarts, explain, lock};
use std::{
    sync::{Arc, MutexGuard},
    time::Duration,
};

/// A transport to a server that it starts as a child process.
///
/// If the child ends by itself, or closes its output, the requests under way fail as
/// [`Closed`](crate::transport::TransportErrorKind::Closed), and the next request starts it again: see
/// [`ChildCommand::restarts`].
///
/// On Unix, a child is the leader of a process group of its own. [`close`](Transport::close) closes the child's standard input and
/// waits; then terminates the group and waits; then kills it: nothing is left behind a launcher such as `npx`, `uvx` or a shell.
/// Dropping the transport kills the group at once. A process that leaves the group, as daemons do, is not ended. On Windows, only
/// the child itself is killed, and what it started may go on.
///
/// Ctrl-C at a terminal does not reach another process group: a program that ends at Ctrl-C closes its clients first. If it does not,
/// a child sees only the end of its input. A child that reads the terminal (`ssh` and `sudo` do, for a password) is stopped by
/// the operating system, and its requests end at their time limit; this program goes on.
#[derive(Debug)]
pub struct ChildTransport {
    launcher: Launcher,
    grace: Duration,
    current: Arc<Lock<Current>>,
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
        let (command, ChildCommand { name, stderr, grace, restarts, .. }) = command.into_command();
        let launcher = Launcher::new(command, name, stderr);
        let process = Arc::new(launcher.start(None)?);
        let current = Current { process, restarts: Restarts::new(restarts), closed: false };
        Ok(Self { launcher, grace, current: Arc::new(Lock::new(current)) })
    }

    /// The operating system's id of the child; `None` once it has exited, until it is started again.
    pub fn id(&self) -> Option<u32> {
        self.current().process.supervisor.id()
    }

    /// The process to send the next request to.
    ///
    /// > If the server process exits unexpectedly, the client **SHOULD** restart it.
    fn process(&self) -> Result<Arc<Process>, TransportError> {
        let mut current = self.current();
        if !current.closed && current.process.has_ended() && current.restarts.are_allowed() {
            current.restarts.take(self.target())?;
            tracing::warn!(server = %escaped(self.target()), "the server process ended by itself: it is started again");
            // The last lines of the previous child are still being forwarded.
            let last_words = current.process.stderr();
            current.process = Arc::new(self.launcher.start(last_words)?);
        }
        Ok(Arc::clone(&current.process))
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        lock(&self.current)
    }
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
            // The caller decides if a request may be sent twice.
            match process.stream.exchange(request, on_notification).await {
                Err(error) if error.kind() == Closed => {
                    Err(explain(&process, self.target(), &self.current, error).await)
                }
                answer => answer,
            }
        })
    }

    fn notify(&self, notification: OutgoingNotification) -> BoxFuture<'_, Result<(), TransportError>> {
        Box::pin(async move { self.process()?.stream.notify(notification).await })
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

    fn sessions(&self) -> Option<&dyn SessionTransport> {
        Some(self)
    }
}

impl SessionTransport for ChildTransport {
    fn probes_first(&self) -> bool {
        true
    }

    /// Starts the child again if it ended by itself: a session is that of one process.
    fn open(&self) -> Result<Arc<dyn SessionLink>, TransportError> {
        let process = self.process()?;
        let link = process.stream.link()?;
        let (name, current) = (self.target().to_owned(), Arc::clone(&self.current));
        Ok(Arc::new(ChildLink { link, process, name, current }))
    }
}

/// The streams of one process, and how it ended.
struct ChildLink {
    pub(crate) link: StreamLink,
    pub(crate) process: Arc<Process>,
    pub(crate) name: String,
    pub(crate) current: Arc<Lock<Current>>,
}

impl ChildLink {
    async fn explained<T>(&self, outcome: Result<T, TransportError>) -> Result<T, TransportError> {
        match outcome {
            Err(error) if error.kind() == Closed => {
                Err(explain(&self.process, &self.name, &self.current, error).await)
            }
            outcome => outcome,
        }
    }
}

impl SessionLink for ChildLink {
    fn exchange<'a>(
        &'a self,
        request: OutgoingRequest,
        on_message: &'a mut (dyn FnMut(ServerMessage) + Send),
    ) -> BoxFuture<'a, Result<ServerReply, TransportError>> {
        Box::pin(async move { self.explained(self.link.exchange(request, on_message).await).await })
    }

    fn send(&self, message: Vec<u8>) -> BoxFuture<'_, Result<(), TransportError>> {
        Box::pin(async move { self.explained(self.link.send(message).await).await })
    }

    fn established(&self, version: &ProtocolVersion) {
        self.link.established(version);
    }

    fn listen<'a>(
        &'a self,
        ready: &'a mut (dyn FnMut() + Send),
        on_message: &'a mut (dyn FnMut(ServerMessage) + Send),
    ) -> BoxFuture<'a, Result<(), TransportError>> {
        Box::pin(async move { self.explained(self.link.listen(ready, on_message).await).await })
    }

    fn is_over(&self) -> bool {
        self.process.has_ended()
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        self.link.end()
    }
}
