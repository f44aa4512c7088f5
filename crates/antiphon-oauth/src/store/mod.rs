//! Stores of tokens: what a sign-in leaves for the next start of the program.

mod file;
#[cfg(feature = "key-chain")]
mod key_chain;
mod memory;

#[cfg(feature = "testing")]
pub mod contract;

pub use file::FileStore;
pub use memory::MemoryStore;

use crate::error::Error;
use futures_util::future::BoxFuture;
use ring::digest::{SHA256, digest};
use std::{fmt, sync::Arc};

/// The name of one entry: the digest of a resource server and an account, so that it is a file name and says nothing.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct StoreKey(String);

impl StoreKey {
    /// Returns the name of the entry of an account at a server.
    #[must_use]
    pub fn new(server: &str, account: &str) -> Self {
        let text = format!("{}:{server}{account}", server.len());
        let hex =
            digest(&SHA256, text.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        Self(hex)
    }

    /// 64 lowercase hexadecimal digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for StoreKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreKey({})", self.0)
    }
}

/// The lock of one entry, until it is dropped.
pub struct StoreGuard(#[allow(dead_code, reason = "it is dropped")] Box<dyn Send + Sync>);

impl StoreGuard {
    /// Wraps what gives the lock back when it is dropped.
    pub fn new(held: impl Send + Sync + 'static) -> Self {
        Self(Box::new(held))
    }
}

impl fmt::Debug for StoreGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreGuard(..)")
    }
}

/// A store of tokens and registrations. The values are secrets: a store keeps them from others.
///
/// Every change of an entry happens under its lock, which all processes with the store must share: a refresh token may be spent
/// once only. `contract::check` (feature `testing`) checks a store.
pub trait TokenStore: Send + Sync + 'static {
    /// Returns the value of an entry, or `None`.
    fn load<'a>(&'a self, key: &'a StoreKey) -> BoxFuture<'a, Result<Option<Vec<u8>>, Error>>;

    /// Stores the value of an entry, in place of an earlier one: after a crash, one of the two is there.
    fn save<'a>(&'a self, key: &'a StoreKey, value: &'a [u8]) -> BoxFuture<'a, Result<(), Error>>;

    /// Removes an entry, if it is there.
    fn remove<'a>(&'a self, key: &'a StoreKey) -> BoxFuture<'a, Result<(), Error>>;

    /// Locks an entry, and waits for another holder. The caller limits the time. A lock ends with its process.
    fn lock<'a>(&'a self, key: &'a StoreKey) -> BoxFuture<'a, Result<StoreGuard, Error>>;
}

impl<T: TokenStore + ?Sized> TokenStore for Arc<T> {
    fn load<'a>(&'a self, key: &'a StoreKey) -> BoxFuture<'a, Result<Option<Vec<u8>>, Error>> {
        (**self).load(key)
    }

    fn save<'a>(&'a self, key: &'a StoreKey, value: &'a [u8]) -> BoxFuture<'a, Result<(), Error>> {
        (**self).save(key, value)
    }

    fn remove<'a>(&'a self, key: &'a StoreKey) -> BoxFuture<'a, Result<(), Error>> {
        (**self).remove(key)
    }

    fn lock<'a>(&'a self, key: &'a StoreKey) -> BoxFuture<'a, Result<StoreGuard, Error>> {
        (**self).lock(key)
    }
}
