//! Keys that change while the server runs: from code, or from a file that is watched.

use crate::{KeysError, Server, clock::seconds, server::Inner};
use antiphon_seal::KeyRing;
use antiphon_wire::escaped;
use std::{
    error::Error as StdError,
    fmt, fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
    time::{Duration, SystemTime},
};
use tokio::{
    task::spawn_blocking,
    time::{Instant, sleep_until},
};

/// The default time between two looks at the file.
const INTERVAL: Duration = Duration::from_secs(5);

impl Server {
    /// Replaces the key ring. Requests that run go on: each state is opened with the ring of the moment it arrives, and
    /// sealed with the ring of the moment it leaves.
    ///
    /// To replace a key without losing a call, set three rings one after the other, each on all instances before the
    /// next: `[old, new]`, `[new, old]`, `[new]`. See the chapter `guide::fleets` of the crate `antiphon`.
    ///
    /// # Errors
    /// If the server seals with a codec, has neither a name nor an audience, or if the sealing key opens tokens of the
    /// future only. The server continues with the ring that it had.
    pub fn set_keys(&self, ring: &KeyRing) -> Result<(), KeysError> {
        let runtime = &self.0.runtime;
        runtime.sealing.replace(ring, seconds(runtime.clock.now()))?;
        tracing::info!(server = %escaped(&runtime.name), keys = ring.len(), "the keys were replaced");
        Ok(())
    }

    /// Returns a watch of this key file: the server gets the ring of the file whenever the file changes. The text is that
    /// of [`KeyRing::parse_file`]; `antiphon keygen` edits it.
    ///
    /// ```no_run
    /// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
    /// use antiphon::{seal::KeyRing, server::Server};
    ///
    /// let ring = KeyRing::parse_file(&std::fs::read_to_string("/etc/orders/keys")?)?;
    /// let server = Server::builder("orders", "1.0").keys(ring).build()?;
    /// tokio::spawn(server.watch_keys("/etc/orders/keys").run());
    /// # Ok(()) }
    /// ```
    pub fn watch_keys(&self, file: impl Into<PathBuf>) -> KeyFileWatch {
        KeyFileWatch {
            server: Arc::downgrade(&self.0),
            file: file.into(),
            interval: INTERVAL,
            seen: None,
            next: None,
        }
    }
}

/// A watch of a key file, from [`Server::watch_keys`]. It looks at the file's time of modification, length and inode, and
/// does nothing until it is polled.
///
/// Replace the file as a whole, by a rename, as `antiphon keygen` does. A file that cannot be read or parsed changes
/// nothing: the server continues with the keys that it had.
pub struct KeyFileWatch {
    server: Weak<Inner>,
    file: PathBuf,
    interval: Duration,
    /// The file at the last look; `None` before the first one.
    seen: Option<Seen>,
    next: Option<Instant>,
}

/// The identity of a file's content, or the error of looking at it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    File { modified: Option<SystemTime>, length: u64, inode: u64 },
    Missing(io::ErrorKind),
}

impl KeyFileWatch {
    /// Sets the time between two looks at the file. Default: 5 seconds.
    #[must_use]
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// Reads the file now, changed or not: for a signal.
    ///
    /// # Errors
    /// If the file cannot be read, or its ring not be used.
    pub fn load(&mut self) -> Result<(), KeysError> {
        // The look comes first: a change after it is found by the next one.
        self.seen = Some(look(&self.file));
        let loaded = read(&self.file);
        self.set(loaded)
    }

    /// Waits until the file has changed, and loads it. Without [`load`](Self::load) before it, the first call loads the file
    /// at once. Returns `None` when the server is gone. Cancel safe: a change is found by the next call.
    pub async fn changed(&mut self) -> Option<Result<(), KeysError>> {
        loop {
            if let Some(next) = self.next {
                sleep_until(next).await;
            }
            if self.server.strong_count() == 0 {
                return None;
            }
            let (file, before) = (self.file.clone(), self.seen);
            let looked = spawn_blocking(move || {
                let seen = look(&file);
                (seen, (before != Some(seen)).then(|| read(&file)))
            });
            let looked = looked.await;
            self.next = Instant::now().checked_add(self.interval);
            if let Ok((seen, Some(loaded))) = looked {
                self.seen = Some(seen);
                return Some(self.set(loaded));
            }
        }
    }

    /// Loads the file whenever it has changed. A file that cannot be used is an error in the log. Ends with the server.
    pub async fn run(mut self) {
        while let Some(loaded) = self.changed().await {
            if let Err(error) = loaded {
                let cause = error.source().map(ToString::to_string).unwrap_or_default();
                tracing::error!(file = ?escaped(&self.file.display()), error = %escaped(&error), cause = %escaped(&cause), "the keys stay as they were");
            }
        }
    }

    fn set(&self, loaded: Result<KeyRing, KeysError>) -> Result<(), KeysError> {
        let Some(inner) = self.server.upgrade() else { return Ok(()) };
        Server(inner).set_keys(&loaded?)
    }
}

fn look(file: &Path) -> Seen {
    match fs::metadata(file) {
        Ok(metadata) => {
            Seen::File { modified: metadata.modified().ok(), length: metadata.len(), inode: inode(&metadata) }
        }
        Err(fault) => Seen::Missing(fault.kind()),
    }
}

fn read(file: &Path) -> Result<KeyRing, KeysError> {
    Ok(KeyRing::parse_file(&fs::read_to_string(file)?)?)
}

/// Returns the number of the file on its disk: a file that was renamed over another has its own.
#[cfg(unix)]
fn inode(metadata: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[cfg(not(unix))]
fn inode(_: &fs::Metadata) -> u64 {
    0
}

impl fmt::Debug for KeyFileWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyFileWatch")
            .field("file", &self.file)
            .field("interval", &self.interval)
            .finish_non_exhaustive()
    }
}
