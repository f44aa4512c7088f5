//! Stores of tokens: what a sign-in leaves for the next start of the program.

mod file;

pub use file::FileStore;

use crate::error::Error;
use futures_util::future::BoxFuture;
use ring::digest::{SHA256, digest};
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

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

/// A store in memory.
#[derive(Default)]
pub struct MemoryStore {
    values: Mutex<HashMap<StoreKey, Vec<u8>>>,
    locks: Mutex<HashMap<StoreKey, Arc<tokio::sync::Mutex<()>>>>,
}

impl MemoryStore {
    /// Returns an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn values(&self) -> MutexGuard<'_, HashMap<StoreKey, Vec<u8>>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TokenStore for MemoryStore {
    fn load<'a>(&'a self, key: &'a StoreKey) -> BoxFuture<'a, Result<Option<Vec<u8>>, Error>> {
        Box::pin(async { Ok(self.values().get(key).cloned()) })
    }

    fn save<'a>(&'a self, key: &'a StoreKey, value: &'a [u8]) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async {
            self.values().insert(key.clone(), value.to_vec());
            Ok(())
        })
    }

    fn remove<'a>(&'a self, key: &'a StoreKey) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async {
            self.values().remove(key);
            Ok(())
        })
    }

    fn lock<'a>(&'a self, key: &'a StoreKey) -> BoxFuture<'a, Result<StoreGuard, Error>> {
        Box::pin(async {
            let lock = {
                let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
                Arc::clone(locks.entry(key.clone()).or_default())
            };
            Ok(StoreGuard::new(lock.lock_owned().await))
        })
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryStore(..)")
    }
}

#[cfg(feature = "testing")]
pub mod contract {
    //! The contract of every [`TokenStore`].

    use crate::store::{StoreKey, TokenStore};
    use std::sync::Arc;

    /// Checks a store, which must be empty. `other` is the same store as another process has it: a second handle of the same
    /// entries.
    ///
    /// # Panics
    /// If the store does not do what [`TokenStore`] says. The text says what is wrong.
    pub async fn check(store: Arc<dyn TokenStore>, other: Arc<dyn TokenStore>) {
        let [a, b] = ["a", "b"].map(|account| StoreKey::new("https://server.example/mcp", account));
        let load = |store: &Arc<dyn TokenStore>, key: &StoreKey| {
            let (store, key) = (Arc::clone(store), key.clone());
            async move { store.load(&key).await.expect("an entry can be loaded") }
        };
        assert_eq!(load(&store, &a).await, None, "an empty store has no entry");
        store.remove(&a).await.expect("an entry that is not there can be removed");
        for value in [&b"one"[..], b"", &[0, 255, 10, 13], &vec![7; 100_000]] {
            store.save(&a, value).await.expect("an entry can be saved");
            assert_eq!(load(&store, &a).await.as_deref(), Some(value), "the last value is there");
            assert_eq!(load(&other, &a).await.as_deref(), Some(value), "another process sees the last value");
            assert_eq!(load(&store, &b).await, None, "another account has its own entry");
        }
        store.save(&b, b"two").await.expect("a second entry can be saved");
        other.remove(&a).await.expect("an entry can be removed");
        assert_eq!(load(&store, &a).await, None, "a removed entry is gone");
        assert_eq!(load(&store, &b).await.as_deref(), Some(&b"two"[..]), "other entries stay");

        let held = store.lock(&a).await.expect("an entry can be locked");
        drop(other.lock(&b).await.expect("entries are locked one by one"));
        let waits = tokio::spawn({
            let (other, a) = (Arc::clone(&other), a.clone());
            async move { drop(other.lock(&a).await.expect("a lock can be waited for")) }
        });
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        assert!(!waits.is_finished(), "a second holder waits for the first one");
        drop(held);
        waits.await.expect("the second holder gets the lock");
        drop(store.lock(&a).await.expect("a lock can be taken again"));
    }
}
