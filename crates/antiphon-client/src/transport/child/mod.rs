//! A server as a child process.

mod command;
mod current;
mod process;
mod session;
mod stderr;
mod supervisor;

pub use command::{ChildCommand, ChildStderr};

use crate::transport::{
    IncomingNotification, OutgoingRequest, ServerReply, SessionLink, SessionTransport, Transport,
    TransportError, TransportErrorKind::Closed,
};
use antiphon_wire::escaped;
use current::{Current, explain, lock};
use futures_util::future::BoxFuture;
use process::{Launcher, Process, Restarts};
use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

/// A transport to a server that it starts as a child process.
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
        Ok(Self { launcher, grace, current: Arc::new(Mutex::new(current)) })
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
        // Each field is written in one assignment, so a poisoned lock is usable.
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
        Ok(Arc::new(session::ChildLink { link, process, name, current }))
    }
}
