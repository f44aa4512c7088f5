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
