//! The one place that asks the operating system for random bytes.

use std::fmt;

/// The operating system gave no random bytes.
///
/// Keys, call secrets and nonces have no second source: whatever needed the bytes must not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntropyError(());

impl fmt::Display for EntropyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the operating system gave no random bytes")
    }
}

impl std::error::Error for EntropyError {}

/// Bytes fresh from the system on every call. They are not pooled: a snapshot of a virtual machine would
/// clone the pool.
pub(crate) fn bytes<const N: usize>() -> Result<[u8; N], EntropyError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| EntropyError(()))?;
    Ok(bytes)
}
