//! Names of rows: the call, its runner, the digest of what came with a leg, and the caller who is charged.

use std::fmt;

/// The id of a call, and the key of its row: 16 random bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallKey([u8; 16]);

/// The id of one run of one leg: 16 random bytes, new for every run.
///
/// A claim that is repeated with the same id, because its reply was lost, returns the same fence.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RunnerId([u8; 16]);

/// The digest of the answers that came with a leg. It distinguishes a second delivery of a request from another request.
///
/// The digest is keyed with a secret of the call, so the time of a comparison is no help to a caller.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 16]);

/// The digest of the caller to whom a store charges rows and bytes. [`MemoryStore`](crate::MemoryStore) has a limit for each
/// owner. Stores on disk and on a network do not store the owner.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner([u8; 16]);

macro_rules! sixteen_bytes {
    ($name:ident) => {
        impl $name {
            /// Returns the value with these bytes.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(bytes)
            }

            /// Returns the bytes.
            #[must_use]
            pub const fn as_bytes(&self) -> &[u8; 16] {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_hex(f, &self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }
    };
}

sixteen_bytes!(CallKey);
sixteen_bytes!(RunnerId);
sixteen_bytes!(Fingerprint);
sixteen_bytes!(Owner);

/// Writes bytes as lowercase hexadecimal digits.
pub(crate) fn write_hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}
