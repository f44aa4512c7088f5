//! The key of a folder of tokens in the key chain of the system.

use crate::{
    error::{Error, ErrorKind},
    store::{FileStore, StoreKey, TokenStore as _},
};
use antiphon_wire::escaped;
use keyring_core::{CredentialStore, Entry, Error as ChainError};
use ring::rand::{SecureRandom as _, SystemRandom};
use std::{path::PathBuf, sync::Arc};
use tokio::task::spawn_blocking;

/// The name of the entry in the key chain.
const ENTRY: &str = "key of the stored tokens";

impl FileStore {
    /// Returns the store in a folder, whose key is in the key chain: 32 random bytes in one entry of `service`, made at the first use.
    /// The tokens themselves stay in the files, because key chains limit the length of an entry, and lock nothing.
    ///
    /// The program chooses the key chain: a store of the crates for `keyring-core`, such as those for the Secret Service, the macOS
    /// keychain or the Windows credential store.
    ///
    /// ```
    /// use antiphon_oauth::{Error, store::FileStore};
    /// use keyring_core::{CredentialStore, mock};
    /// use std::sync::Arc;
    ///
    /// # async fn open() -> Result<(), Box<dyn std::error::Error>> {
    /// let chain: Arc<CredentialStore> = mock::Store::new()?; // that of the system, in a program
    /// let store = FileStore::with_key_chain("/home/ada/.local/share/my-host/tokens", chain, "my-host").await?;
    /// # drop(store);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Store`](ErrorKind::Store) if the key chain is locked or not there, or its entry is no key.
    pub async fn with_key_chain(
        folder: impl Into<PathBuf>,
        chain: Arc<CredentialStore>,
        service: &str,
    ) -> Result<Self, Error> {
        let (folder, service) = (folder.into(), service.to_owned());
        // Processes that begin at once make one key.
        let _lock = Self::new(&folder).lock(&StoreKey::new("key chain", &service)).await?;
        // A key chain may ask a person to open it.
        let key = spawn_blocking(move || key_in(&chain, &service)).await;
        let key = key.unwrap_or_else(|fault| Err(failed(&fault)))?;
        Ok(Self::with_key(folder, key))
    }
}

fn key_in(chain: &Arc<CredentialStore>, service: &str) -> Result<[u8; 32], Error> {
    let entry = Entry::new_in_store(chain, service, ENTRY).map_err(|fault| failed(&fault))?;
    match entry.get_secret() {
        Ok(known) => <[u8; 32]>::try_from(known).map_err(|_| failed(&"the entry is no key of 32 bytes")),
        Err(ChainError::NoEntry) => {
            let mut key = [0; 32];
            SystemRandom::new().fill(&mut key).map_err(|_| failed(&"the system gave no random bytes"))?;
            entry.set_secret(&key).map_err(|fault| failed(&fault))?;
            Ok(key)
        }
        Err(fault) => Err(failed(&fault)),
    }
}

/// The error holds only the text of its cause, whose fields may hold a secret.
fn failed(fault: &dyn std::fmt::Display) -> Error {
    let text = format!("the key chain of the system cannot be used: {}", escaped(&fault.to_string()));
    Error::new(ErrorKind::Store, text)
}
