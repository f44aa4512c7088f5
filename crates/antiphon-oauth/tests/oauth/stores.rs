//! Stores.

use crate::support::Folder;
use antiphon_oauth::store::{FileStore, MemoryStore, StoreKey, TokenStore, contract};
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
