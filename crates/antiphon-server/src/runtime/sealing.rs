//! The sealer of a server, which a new key ring replaces while requests run.

use antiphon_seal::{KeyError, KeyRing, Sealer, utc};
use arc_swap::{ArcSwap, Guard};
use std::{
    error::Error as StdError,
    fmt, io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// The maximum time by which a first moment of the sealing key may be ahead, in seconds: clocks differ.
const AHEAD: u64 = 60;

/// The sealer that is in use, and the settings of the next one.
pub(crate) struct Sealing {
    sealer: ArcSwap<Sealer>,
    audience: String,
    max_token_len: usize,
    /// True if a codec seals: then there is no ring.
    has_codec: bool,
    /// True after an error about a state under an unknown key.
    unknown_key_logged: AtomicBool,
}

impl Sealing {
    pub(crate) fn new(sealer: Sealer, audience: String, max_token_len: usize, has_codec: bool) -> Self {
        Self {
            sealer: ArcSwap::from_pointee(sealer.with_max_token_len(max_token_len)),
            audience,
            max_token_len,
            has_codec,
            unknown_key_logged: AtomicBool::new(false),
        }
    }

    /// Returns the sealer, for one operation.
    pub(crate) fn sealer(&self) -> Guard<Arc<Sealer>> {
        self.sealer.load()
    }

    /// Replaces the ring. `now` is in Unix seconds.
    pub(crate) fn replace(&self, ring: &KeyRing, now: u64) -> Result<(), KeysError> {
        if self.has_codec {
            return Err(KeysError(Fault::Codec));
        }
        if self.audience.is_empty() {
            return Err(KeysError(Fault::NoAudience));
        }
        check_time(ring, now)?;
        let sealer = Sealer::new(ring, &self.audience).with_max_token_len(self.max_token_len);
        self.sealer.store(Arc::new(sealer));
        self.unknown_key_logged.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Returns `true` the first time under this ring.
    pub(crate) fn is_first_unknown_key(&self) -> bool {
        !self.unknown_key_logged.swap(true, Ordering::Relaxed)
    }
}

/// Refuses a ring whose own tokens do not open yet. `now` is in Unix seconds.
pub(crate) fn check_time(ring: &KeyRing, now: u64) -> Result<(), KeysError> {
    let from = ring.min_issued_at();
    if from > now.saturating_add(AHEAD) { Err(KeysError(Fault::Future(from))) } else { Ok(()) }
}

/// An error from replacing the keys of a server. The server continues with the keys that it had.
#[derive(Debug)]
pub struct KeysError(Fault);

#[derive(Debug)]
enum Fault {
    Read(io::Error),
    Key(KeyError),
    Codec,
    NoAudience,
    Future(u64),
}

impl From<io::Error> for KeysError {
    fn from(fault: io::Error) -> Self {
        Self(Fault::Read(fault))
    }
}

impl From<KeyError> for KeysError {
    fn from(error: KeyError) -> Self {
        Self(Fault::Key(error))
    }
}

impl fmt::Display for KeysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Fault::Read(_) => f.write_str("the key file cannot be read"),
            Fault::Key(_) => f.write_str("the keys are not valid"),
            Fault::Codec => f.write_str("this server seals with a codec, which has keys of its own"),
            Fault::NoAudience => {
                f.write_str("a key ring needs a named server, or an audience: use `.audience(..)`")
            }
            Fault::Future(from) => write!(
                f,
                "the sealing key opens tokens from {} on only, which is in the future",
                utc::format(*from)
            ),
        }
    }
}

impl StdError for KeysError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.0 {
            Fault::Read(fault) => Some(fault),
            Fault::Key(error) => Some(error),
            Fault::Codec | Fault::NoAudience | Fault::Future(_) => None,
        }
    }
}
