//! Random bytes from the operating system. No other module of this crate reads them.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

/// An error from the operating system: it gave no random bytes.
///
/// Keys, call secrets and nonces have no second source: the operation that needed the bytes must fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntropyError(());

impl fmt::Display for EntropyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the operating system gave no random bytes")
    }
}

impl std::error::Error for EntropyError {}

/// Returns fresh bytes from the system on every call. The bytes are not pooled: a snapshot of a virtual
/// machine would clone the pool.
pub(crate) fn bytes<const N: usize>() -> Result<[u8; N], EntropyError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| EntropyError(()))?;
    Ok(bytes)
}

/// Twelve random bytes that may be taken once.
///
/// The first token of a call takes its nonce from the call's id, which is as random: one request to the system
/// instead of two.
pub(crate) struct Nonce {
    bytes: [u8; 12],
    taken: AtomicBool,
}

impl Nonce {
    pub(crate) fn new(bytes: [u8; 12]) -> Self {
        Self { bytes, taken: AtomicBool::new(false) }
    }

    /// Returns the bytes to the first caller, and `None` to every other one.
    pub(crate) fn take(&self) -> Option<[u8; 12]> {
        (!self.taken.swap(true, Ordering::Relaxed)).then_some(self.bytes)
    }
}
