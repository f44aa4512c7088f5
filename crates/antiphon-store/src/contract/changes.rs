//! Feeds of changes: what one handle publishes reaches the watches of all, in order, on its channel alone.

use crate::changes::{ChangeChannel, ChangeFeed, ChangeWatch, MAX_CHANGE};
use crate::error::StoreErrorKind;
use std::{
    hash::{BuildHasher as _, Hasher as _, RandomState},
    sync::Arc,
    task::{Context, Waker},
};

/// Checks a feed, through two handles, as two instances of a server have them. The check waits until messages arrive.
///
/// # Panics
///
/// If the feed breaks a rule. The text names the case.
pub async fn check_changes(first: &Arc<dyn ChangeFeed>, second: &Arc<dyn ChangeFeed>) {
    let nonce = RandomState::new().build_hasher().finish();
    let channel = |name: &str| ChangeChannel::of(&format!("{name} {nonce}"));
    check_channels(first, second, channel("ours"), channel("theirs")).await;
    check_dropped_futures(first, second, channel("dropped")).await;
    check_refusals(first, channel("refused")).await;
}

/// Checks that each watch returns what was published on its channel since it was opened, in order.
async fn check_channels(
    first: &Arc<dyn ChangeFeed>,
    second: &Arc<dyn ChangeFeed>,
    ours: ChangeChannel,
    theirs: ChangeChannel,
) {
    publish(first, theirs, "before").await;
    let mut watches = [open(first, ours).await, open(second, ours).await, open(first, ours).await];
    let mut foreign = open(second, theirs).await;
    let longest = "x".repeat(MAX_CHANGE);
    let messages = ["one", "two of \"it\", with {signs}", &*longest, "two of \"it\", with {signs}", "last"];
    for (number, message) in messages.into_iter().enumerate() {
        publish(first, theirs, "of another server").await;
        publish(if number % 2 == 0 { first } else { second }, ours, message).await;
    }
    for watch in &mut watches {
        expect(watch, &messages).await;
    }
    expect(&mut foreign, &["of another server"; 5]).await;
}

/// Checks that a dropped future loses nothing, and that a watch has nothing from before.
async fn check_dropped_futures(
    first: &Arc<dyn ChangeFeed>,
    second: &Arc<dyn ChangeFeed>,
    channel: ChangeChannel,
) {
    let mut early = open(second, channel).await;
    let is_pending = early.next().as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending();
    assert!(is_pending, "nothing was published");
    publish(first, channel, "after a dropped future").await;
    let mut late = open(second, channel).await;
    publish(first, channel, "after a late watch").await;
    expect(&mut early, &["after a dropped future", "after a late watch"]).await;
    expect(&mut late, &["after a late watch"]).await;
}

/// Checks that messages are checked.
async fn check_refusals(feed: &Arc<dyn ChangeFeed>, channel: ChangeChannel) {
    let too_long = "x".repeat(MAX_CHANGE + 1);
    for (case, message) in [("empty", ""), ("too long", &*too_long), ("a line", "a\nb"), ("no ASCII", "ä")] {
        let refused = feed.publish(channel, message).await.map_err(|error| error.kind());
        assert_eq!(refused, Err(StoreErrorKind::Invalid), "{case}");
    }
}

async fn publish(feed: &Arc<dyn ChangeFeed>, channel: ChangeChannel, message: &str) {
    feed.publish(channel, message).await.unwrap_or_else(|error| panic!("publish: {error:?}"));
}

async fn open(feed: &Arc<dyn ChangeFeed>, channel: ChangeChannel) -> Box<dyn ChangeWatch> {
    feed.watch(channel).await.unwrap_or_else(|error| panic!("watch: {error:?}"))
}

async fn expect(watch: &mut Box<dyn ChangeWatch>, messages: &[&str]) {
    for message in messages {
        let next = watch.next().await;
        assert_eq!(next.as_deref().ok(), Some(*message), "{next:?}");
    }
}
