//! Names of blobs: the digest of their bytes.

use crate::{
    claim::write_hex,
    error::{StoreError, StoreErrorKind},
};
use sha2::{Digest as _, Sha256};
use std::fmt;

/// The SHA-256 digest of a blob, and the key of its row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobDigest([u8; 32]);

impl BlobDigest {
    /// Returns the digest of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Returns the digest with these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes of the digest.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the blob if it has this digest. Every store calls this function before it returns a blob.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Corrupt`] if the store returned other bytes.
    pub fn verify(&self, blob: Vec<u8>) -> Result<Vec<u8>, StoreError> {
        if Self::of(&blob) == *self {
            return Ok(blob);
        }
        Err(StoreError::read(StoreErrorKind::Corrupt, "get", format!("the blob {self} has another digest")))
    }
}

impl fmt::Display for BlobDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

impl fmt::Debug for BlobDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlobDigest({self})")
    }
}
