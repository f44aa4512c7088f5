//! The store in memory: tokens end with the program.

use crate::{
    error::Error,
    store::{StoreGuard, StoreKey, TokenStore},
};
use futures_util::future::BoxFuture;
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

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
