//! Feeds of changes: what one handle publishes reaches the watches of all, in order, on its channel alone.

use crate::changes::{ChangeChannel, ChangeFeed, MAX_CHANGE};
use crate::error::StoreErrorKind;
use std::{
    hash::{BuildHasher as _, Hasher as _, RandomState},
    sync::Arc,
};

/// Checks a feed, through two handles, as two instances of a server have them. The check waits until messages arrive.
///
/// # Panics
///
/// If the feed breaks a rule. The text names the case.
pub async fn check_changes(first: &Arc<dyn ChangeFeed>, second: &Arc<dyn ChangeFeed>) {
    let nonce = RandomState::new().build_hasher().finish();
    let (ours, theirs) =
        (ChangeChannel::of(&format!("ours {nonce}")), ChangeChannel::of(&format!("theirs {nonce}")));
    let publish = async |feed: &Arc<dyn ChangeFeed>, channel, message: &str| {
        feed.publish(channel, message).await.unwrap_or_else(|error| panic!("publish: {error:?}"));
    };
    let open = async |feed: &Arc<dyn ChangeFeed>, channel| {
        feed.watch(channel).await.unwrap_or_else(|error| panic!("watch: {error:?}"))
    };
    // Before anything was ever published on the channel, and after.
    publish(first, theirs, "before").await;
    let mut watches = [
        open(first, ours).await,
        open(second, ours).await,
        open(second, theirs).await,
        open(first, ours).await,
    ];
    let longest = "x".repeat(MAX_CHANGE);
    let messages = ["one", "two of \"it\", with {signs}", &*longest, "two of \"it\", with {signs}", "last"];
    for (number, message) in messages.into_iter().enumerate() {
        publish(first, theirs, "of another server").await;
        publish(if number % 2 == 0 { first } else { second }, ours, message).await;
    }
    for watch in [0, 1, 3] {
        for message in messages {
            let next = watches[watch].next().await;
            assert_eq!(next.as_deref().ok(), Some(message), "watch {watch}: {next:?}");
        }
    }
    for _ in messages {
        let next = watches[2].next().await;
        assert_eq!(next.as_deref().ok(), Some("of another server"), "the other channel: {next:?}");
    }
    // A dropped future loses nothing.
    {
        let mut next = watches[1].next();
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(next.as_mut().poll(&mut context).is_pending(), "there is no further message");
    }
    publish(first, ours, "after a dropped future").await;
    let mut late = open(second, ours).await;
    publish(first, ours, "after a late watch").await;
    for message in ["after a dropped future", "after a late watch"] {
        let next = watches[1].next().await;
        assert_eq!(next.as_deref().ok(), Some(message), "{next:?}");
    }
    let next = late.next().await;
    assert_eq!(next.as_deref().ok(), Some("after a late watch"), "{next:?}");
    for (case, message) in
        [("empty", String::new()), ("too long", format!("{longest}x")), ("a line", "a\nb".to_owned())]
    {
        let refused = first.publish(ours, &message).await.map_err(|error| error.kind());
        assert_eq!(refused, Err(StoreErrorKind::Invalid), "{case}");
    }
}
