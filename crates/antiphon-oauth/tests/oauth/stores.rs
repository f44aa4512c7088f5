//! Stores.

use crate::support::Folder;
use antiphon_oauth::{
    ErrorKind,
    store::{FileStore, MemoryStore, StoreKey, TokenStore, contract},
};
use keyring_core::{CredentialStore, Entry, Error as ChainError, mock};
use std::{fs, path::PathBuf, sync::Arc};

#[tokio::test]
async fn the_store_in_memory() {
    let store = Arc::new(MemoryStore::new());
    contract::check(Arc::clone(&store) as _, store).await;
}

#[tokio::test]
async fn the_store_in_a_folder() {
    let folder = Folder::new();
    let open = || Arc::new(FileStore::new(&folder.0));
    contract::check(open(), open()).await;
}

fn is_secret(text: &str, key: &[u8]) -> bool {
    text.contains(&format!("{key:?}")[1..])
}

#[tokio::test]
async fn the_store_with_its_key_in_the_key_chain() {
    let (folder, chain) = (Folder::new(), mock::Store::new().unwrap());
    let open = async || {
        let chain: Arc<CredentialStore> = chain.clone();
        FileStore::with_key_chain(&folder.0, chain, "antiphon").await
    };
    // Two processes begin at once.
    let (one, other) = tokio::join!(open(), open());
    contract::check(Arc::new(one.unwrap()), Arc::new(other.unwrap())).await;
    assert!(!folder.0.join("key").exists());
    let chained: Arc<CredentialStore> = chain.clone();
    let entry = Entry::new_in_store(&chained, "antiphon", "key of the stored tokens").unwrap();
    let key = entry.get_secret().unwrap();
    assert_eq!(key.len(), 32);
    // Another key does not open the files, and an entry that is no key is an error.
    let name = StoreKey::new("https://a.example", "");
    open().await.unwrap().save(&name, b"token").await.unwrap();
    entry.set_secret(&[7; 32]).unwrap();
    assert!(open().await.unwrap().load(&name).await.is_err());
    entry.set_secret(&key).unwrap();
    assert_eq!(open().await.unwrap().load(&name).await.unwrap().as_deref(), Some(&b"token"[..]));
    entry.set_secret(b"short-secret").unwrap();
    let fault = open().await.unwrap_err();
    assert_eq!(fault.kind(), ErrorKind::Store);
    let shown = format!("{fault} {fault:?}");
    assert!(!shown.contains("short-secret") && !is_secret(&shown, b"short-secret"), "{shown}");
    let mock: &mock::Cred = entry.as_any().downcast_ref().unwrap();
    mock.set_error(ChainError::BadEncoding(b"short-secret".to_vec()));
    let shown = format!("{:?}", open().await.unwrap_err());
    assert!(shown.contains("cannot be used") && !is_secret(&shown, b"short-secret"), "{shown}");
}

#[tokio::test]
async fn files_are_private_and_sealed() {
    let folder = Folder::new();
    let store = FileStore::new(&folder.0);
    let [key, other] = ["a", "b"].map(|account| StoreKey::new("https://a.example", account));
    store.save(&key, b"the-secret-token").await.unwrap();
    let file = folder.0.join(format!("{}.tokens", key.as_str()));
    let sealed = fs::read(&file).unwrap();
    assert!(!sealed.windows(6).any(|part| part == b"secret"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder.0), mode(&file), mode(&folder.0.join("key"))), (0o700, 0o600, 0o600));
    }
    // A file of another entry, a changed one, and one of another key are refused.
    fs::copy(&file, folder.0.join(format!("{}.tokens", other.as_str()))).unwrap();
    assert!(store.load(&other).await.is_err());
    let foreign = FileStore::with_key(&folder.0, [7; 32]);
    assert!(foreign.load(&key).await.is_err());
    for at in [0, 1, 20, sealed.len() - 1] {
        let mut changed = sealed.clone();
        changed[at] ^= 1;
        fs::write(&file, changed).unwrap();
        assert!(store.load(&key).await.is_err(), "{at}");
    }
    fs::write(&file, b"").unwrap();
    assert!(store.load(&key).await.is_err());
    store.remove(&key).await.unwrap();
    assert_eq!(store.load(&key).await.unwrap(), None);
}

#[cfg(unix)]
#[tokio::test]
async fn a_key_that_others_may_read_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    let key = StoreKey::new("https://a.example", "");
    assert_eq!(FileStore::new(&folder.0).load(&key).await.unwrap(), None);
    assert!(!folder.0.exists(), "nothing is made for nothing");
    FileStore::new(&folder.0).save(&key, b"x").await.unwrap();
    fs::set_permissions(folder.0.join("key"), fs::Permissions::from_mode(0o644)).unwrap();
    let fault = FileStore::new(&folder.0).load(&key).await.unwrap_err();
    assert!(fault.to_string().contains("0600"), "{fault}");
}
