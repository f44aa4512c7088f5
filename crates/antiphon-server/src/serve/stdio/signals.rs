//! The signals that end a program.

use std::future::{Future, pending};

/// Returns a future that resolves at SIGTERM or SIGINT. The handlers are installed at once.
#[cfg(unix)]
pub(crate) fn stopped() -> impl Future<Output = ()> + Send {
    use tokio::signal::unix::{SignalKind, signal};
    let signals = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
    async move {
        match signals {
            (Ok(mut terminate), Ok(mut interrupt)) => {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
            }
            // Without a handler, a signal ends the process.
            _ => pending().await,
        }
    }
}

/// Returns a future that resolves at Ctrl-C.
#[cfg(not(unix))]
pub(crate) fn stopped() -> impl Future<Output = ()> + Send {
    async {
        if tokio::signal::ctrl_c().await.is_err() {
            pending().await
        }
    }
}
