//! The feed of changes: `PUBLISH` on the connection of the operations, `SUBSCRIBE` on a connection of the watch.

use super::link::{Link, is_connection, of_script};
use crate::{
    changes::{self, ChangeChannel, ChangeFeed, ChangeWatch},
    error::{StoreError, StoreErrorKind, StoreFuture, Written},
};
use ::redis::{aio::PubSub, cmd};
use futures_util::StreamExt as _;
use std::{fmt, sync::Arc};
use tokio::time::{Instant, timeout_at};

pub(super) struct RedisChanges {
    pub(super) link: Link,
    pub(super) prefix: Arc<str>,
}

impl fmt::Debug for RedisChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisChanges").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl RedisChanges {
    /// Returns the name of a channel. All databases of a server have the same channels.
    fn name(&self, channel: ChangeChannel) -> String {
        format!("{}changes:{channel}", self.prefix)
    }
}

impl ChangeFeed for RedisChanges {
    fn publish<'a>(&'a self, channel: ChangeChannel, message: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            changes::check(message)?;
            let mut publish = cmd("PUBLISH");
            publish.arg(self.name(channel)).arg(message);
            let deadline = Instant::now() + self.link.timeout;
            let mut repeated = false;
            loop {
                let mut connection = self.link.connection.clone();
                match timeout_at(deadline, publish.query_async::<()>(&mut connection)).await {
                    Ok(Ok(())) => return Ok(()),
                    Ok(Err(error)) if is_connection(&error) && !repeated => repeated = true,
                    Ok(Err(error)) => return Err(of_script("publish", Written::Unknown, error)),
                    Err(elapsed) => {
                        let written = Written::Unknown;
                        return Err(StoreError::new(StoreErrorKind::Timeout, written, "publish", elapsed));
                    }
                }
            }
        })
    }

    fn watch(&self, channel: ChangeChannel) -> StoreFuture<'_, Box<dyn ChangeWatch>> {
        Box::pin(async move {
            let open = async {
                let mut messages = self.link.client.get_async_pubsub().await?;
                messages.subscribe(self.name(channel)).await?;
                Ok(messages)
            };
            match timeout_at(Instant::now() + self.link.timeout, open).await {
                Ok(Ok(messages)) => Ok(Box::new(RedisWatch(messages)) as Box<dyn ChangeWatch>),
                Ok(Err(error)) => Err(of_script("watch", Written::No, error)),
                Err(elapsed) => Err(StoreError::read(StoreErrorKind::Timeout, "watch", elapsed)),
            }
        })
    }
}

struct RedisWatch(PubSub);

impl ChangeWatch for RedisWatch {
    fn next(&mut self) -> StoreFuture<'_, String> {
        Box::pin(async {
            let message = self.0.on_message().next().await;
            // The server closes the connection of a watch that reads too slowly.
            let message = message.ok_or_else(|| changes::lost("the connection was closed"))?;
            message.get_payload().map_err(changes::lost)
        })
    }
}
