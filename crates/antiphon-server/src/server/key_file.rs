//! Keys that change while the server runs: from code, or from a file that is watched.

use crate::{
    options::seconds,
    runtime::KeysError,
    server::{Inner, Server},
};
use antiphon_seal::KeyRing;
use antiphon_wire::escaped;
use std::{
    error::Error as StdError,
    fmt, fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::{Arc, Weak, mpsc},
    thread,
    time::{Duration, SystemTime},
};
use tokio::{
    task::spawn_blocking,
    time::{Instant, sleep_until},
};

/// The default time between two looks at the file.
const INTERVAL: Duration = Duration::from_secs(5);

/// The maximum length of a key file, in bytes: more than twenty thousand keys.
const MAX_LENGTH: u64 = 1024 * 1024;

/// The time after which a look at the file counts as failed.
const LOOK_TIMEOUT: Duration = Duration::from_secs(2);

/// The number of looks at a time that have not ended, each with a thread: a disk may not answer for hours.
const MAX_LOOKS: usize = 4;

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
            look_at,
            look_timeout: LOOK_TIMEOUT,
            looks: Arc::default(),
        }
    }
}

/// A watch of a key file, from [`Server::watch_keys`]. It looks at the file's time of modification, length and inode, and
/// does nothing until it is polled.
///
/// Replace the file as a whole, by a rename, as `antiphon keygen` does. A file that cannot be read or parsed changes
/// nothing: the server continues with the keys that it had. A key file is a regular file of at most 1 MiB. The file is read
/// on a thread of its own: a disk that does not answer within 2 seconds is an error, and the next look is another try.
pub struct KeyFileWatch {
    server: Weak<Inner>,
    file: PathBuf,
    interval: Duration,
    /// The file at the last look; `None` before the first one.
    seen: Option<Seen>,
    next: Option<Instant>,
    look_at: LookAt,
    look_timeout: Duration,
    /// Each look that is not over has a clone.
    looks: Arc<()>,
}

/// The identity of a file's content, or the error of looking at it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    File { modified: Option<SystemTime>, length: u64, inode: u64 },
    Missing(io::ErrorKind),
}

/// The file at a look, and its keys if it has changed.
type Look = (Seen, Option<Result<KeyRing, KeysError>>);

/// A function that looks at a file, and reads it unless it is as before.
type LookAt = fn(&Path, Option<Seen>) -> Look;

impl KeyFileWatch {
    /// Sets the time between two looks at the file. Default: 5 seconds.
    #[must_use]
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// Reads the file now, changed or not: for a signal. Ends after 2 seconds, also if the disk does not answer.
    ///
    /// # Errors
    /// If the file cannot be read, or its ring not be used.
    pub async fn load(&mut self) -> Result<(), KeysError> {
        let (seen, loaded) = self.look(None).await;
        self.seen = Some(seen);
        loaded.map_or(Ok(()), |loaded| self.set(loaded))
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
            let (seen, loaded) = self.look(self.seen).await;
            self.next = Instant::now().checked_add(self.interval);
            if let Some(loaded) = loaded {
                self.seen = Some(seen);
                return Some(self.set(loaded));
            }
        }
    }

    /// Looks at the file, for a limited time.
    async fn look(&self, before: Option<Seen>) -> Look {
        let failed = |fault: io::Error| {
            let seen = Seen::Missing(fault.kind());
            (seen, (before != Some(seen)).then(|| Err(fault.into())))
        };
        let overdue = || io::Error::new(io::ErrorKind::TimedOut, "the disk does not answer");
        // The watch has one itself.
        if Arc::strong_count(&self.looks) > MAX_LOOKS {
            return failed(overdue());
        }
        let (sender, receiver) = mpsc::channel();
        let (file, look_at, look) = (self.file.clone(), self.look_at, Arc::clone(&self.looks));
        // Not a thread of tokio: a runtime that ends would wait for it, and so for the disk.
        let begun = thread::Builder::new().name("key file".to_owned()).spawn(move || {
            let looked = look_at(&file, before);
            drop(look);
            // Nobody waits for a look that took too long.
            let _ = sender.send(looked);
        });
        if let Err(fault) = begun {
            return failed(fault);
        }
        let limit = self.look_timeout;
        match spawn_blocking(move || receiver.recv_timeout(limit)).await {
            Ok(Ok(looked)) => looked,
            _ => failed(overdue()),
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

fn look_at(file: &Path, before: Option<Seen>) -> Look {
    // The look comes first: a change after it is found by the next one.
    let seen = match fs::metadata(file) {
        Ok(metadata) => {
            Seen::File { modified: metadata.modified().ok(), length: metadata.len(), inode: inode(&metadata) }
        }
        Err(fault) => Seen::Missing(fault.kind()),
    };
    (seen, (before != Some(seen)).then(|| read(file)))
}

fn read(file: &Path) -> Result<KeyRing, KeysError> {
    // Before it is opened, too: to open a pipe is to wait for its writer.
    check_regular(&fs::metadata(file)?)?;
    let opened = fs::File::open(file)?;
    check_regular(&opened.metadata()?)?;
    let mut text = String::new();
    if opened.take(MAX_LENGTH + 1).read_to_string(&mut text)? as u64 > MAX_LENGTH {
        return Err(unusable("the file is longer than 1 MiB").into());
    }
    Ok(KeyRing::parse_file(&text)?)
}

fn check_regular(metadata: &fs::Metadata) -> io::Result<()> {
    if metadata.is_file() { Ok(()) } else { Err(unusable("not a regular file")) }
}

fn unusable(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn hangs(_: &Path, _: Option<Seen>) -> Look {
        loop {
            thread::park();
        }
    }

    fn is_found(_: &Path, _: Option<Seen>) -> Look {
        FOUND.fetch_add(1, Ordering::SeqCst);
        (Seen::Missing(io::ErrorKind::Other), Some(KeyRing::random().map_err(|_| unusable("").into())))
    }

    static FOUND: AtomicUsize = AtomicUsize::new(0);

    /// The cause of a failed look.
    fn cause(looked: Result<(), KeysError>) -> Option<String> {
        looked.err().map(|error| error.source().map(ToString::to_string).unwrap_or_default())
    }

    /// A disk that does not answer stops neither the watch, nor a signal, nor the end of the program.
    #[tokio::test(start_paused = true)]
    async fn a_look_that_hangs_is_an_error_and_the_next_one_is_another_try() {
        let server = Server::builder("keys", "1").build().unwrap();
        let mut watch = server.watch_keys("/mounted/keys");
        let overdue = Some("the disk does not answer".to_owned());
        for by_signal in [false, true, true, true, true, true] {
            (watch.look_at, watch.look_timeout) = (hangs, Duration::ZERO);
            let looked = match by_signal {
                true => watch.load().await,
                false => watch.changed().await.unwrap(),
            };
            assert_eq!(cause(looked), overdue);
        }
        // The same error is reported once by the watch, and no further thread begins.
        assert!(tokio::time::timeout(INTERVAL * 5, watch.changed()).await.is_err());
        assert_eq!(Arc::strong_count(&watch.looks), 1 + MAX_LOOKS);
        (watch.look_at, watch.look_timeout) = (is_found, LOOK_TIMEOUT);
        assert_eq!(cause(watch.load().await), overdue, "as many looks as may hang");
        // The disk is back: one of the looks ends.
        watch.looks = Arc::default();
        assert_eq!(cause(watch.changed().await.unwrap()), None);
        assert_eq!(cause(watch.load().await), None);
        assert_eq!(FOUND.load(Ordering::SeqCst), 2);
    }
}
