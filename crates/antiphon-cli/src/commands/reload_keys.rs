//! The keys of a running server: the file is read again when it changes, and at SIGHUP.

use crate::{console, sanitize};
use antiphon::server::{
    Server,
    operations::{KeyFileWatch, KeysError},
};
use std::{
    error::Error as _,
    path::{Path, PathBuf},
};

/// Begins to watch the file. The handler of the signal is installed at once: without it, the signal ends the process.
pub(super) fn spawn(server: &Server, file: &Path) {
    let (watch, file) = (server.watch_keys(file), file.to_owned());
    tokio::spawn(reload(watch, file, Hangups::new()));
}

async fn reload(mut watch: KeyFileWatch, file: PathBuf, mut hangups: Hangups) {
    // The server has begun with these keys; a change since then counts.
    if let Err(error) = watch.load().await {
        failed(&error, &file);
    }
    loop {
        let changed = tokio::select! {
            loaded = watch.changed() => Some(loaded),
            () = hangups.next() => None,
        };
        let (loaded, cause) = match changed {
            Some(loaded) => (loaded, "it changed"),
            None => (Some(watch.load().await), "SIGHUP"),
        };
        match loaded {
            Some(Ok(())) => {
                console::hint(&sanitize::line(&format!("keys read again from {}: {cause}", file.display())));
            }
            Some(Err(error)) => failed(&error, &file),
            None => return,
        }
    }
}

fn failed(error: &KeysError, file: &Path) {
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    let text = format!("error: key file {}: {error}{cause}. The keys stay as they were", file.display());
    console::note(&sanitize::line(&text));
}

/// The SIGHUPs that this process gets.
#[cfg(unix)]
struct Hangups(Option<tokio::signal::unix::Signal>);

#[cfg(unix)]
impl Hangups {
    fn new() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        Self(signal(SignalKind::hangup()).ok())
    }

    /// Resolves at the next one.
    async fn next(&mut self) {
        let received = match &mut self.0 {
            Some(signal) => signal.recv().await,
            None => None,
        };
        if received.is_none() {
            std::future::pending().await
        }
    }
}

/// A system without SIGHUP.
#[cfg(not(unix))]
struct Hangups;

#[cfg(not(unix))]
impl Hangups {
    fn new() -> Self {
        Self
    }

    async fn next(&mut self) {
        std::future::pending().await
    }
}
