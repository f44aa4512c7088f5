//! Limits of a memory store.

/// The limits of a [`MemoryStore`](super::MemoryStore).
///
/// A claim, a record that a step starts, and a new blob are refused as [`Full`](crate::StoreErrorKind::Full) when a limit is
/// reached. The end of a step and an outcome are never refused, since the effect has happened: the store may exceed its limit
/// of bytes by the outcomes of the legs that run.
#[derive(Clone, Copy, Debug)]
pub struct MemoryLimits {
    pub(super) rows: usize,
    pub(super) bytes: usize,
    pub(super) rows_per_owner: usize,
    pub(super) bytes_per_owner: usize,
}

impl Default for MemoryLimits {
    fn default() -> Self {
        Self { rows: 100_000, bytes: 256 << 20, rows_per_owner: 1_000, bytes_per_owner: 16 << 20 }
    }
}

impl MemoryLimits {
    /// Sets the maximum number of calls and blobs; 100,000 by default.
    #[must_use]
    pub fn rows(mut self, rows: usize) -> Self {
        self.rows = rows;
        self
    }

    /// Sets the maximum number of bytes of all calls and blobs; 256 MiB by default.
    #[must_use]
    pub fn bytes(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }

    /// Sets the maximum number of calls and blobs of one owner; 1,000 by default.
    #[must_use]
    pub fn rows_per_owner(mut self, rows: usize) -> Self {
        self.rows_per_owner = rows;
        self
    }

    /// Sets the maximum number of bytes of one owner; 16 MiB by default.
    #[must_use]
    pub fn bytes_per_owner(mut self, bytes: usize) -> Self {
        self.bytes_per_owner = bytes;
        self
    }
}
