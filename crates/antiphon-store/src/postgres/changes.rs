//! The feed of changes: `NOTIFY` on a connection of the pool, `LISTEN` on a connection of the watch.

use super::pool::{Pool, PostgresConnection, of_statement};
use crate::{
    changes::{self, ChangeChannel, ChangeFeed, ChangeWatch},
    claim::BlobDigest,
    error::{StoreError, StoreErrorKind, StoreFuture, Written},
};
use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::time::timeout;
use tokio_postgres::{AsyncMessage, Client};

const NOTIFY: &str = "SELECT pg_notify($1, $2)";

#[derive(Debug)]
pub(super) struct PostgresChanges {
    pub(super) pool: Pool,
    /// The schema and the prefix of the tables.
    pub(super) names: Arc<str>,
}

impl PostgresChanges {
    /// Returns the name of a channel. All channels of a database are in one room, so the name has the schema and the prefix of the tables.
    fn name(&self, channel: ChangeChannel) -> String {
        let digest = BlobDigest::of(format!("{} {channel}", self.names).as_bytes()).to_string();
        // PostgreSQL cuts names to 63 bytes.
        format!("antiphon_{}", digest.get(..32).unwrap_or_default())
    }
}

impl ChangeFeed for PostgresChanges {
    fn publish<'a>(&'a self, channel: ChangeChannel, message: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            changes::check(message)?;
            let name = self.name(channel);
            self.pool.query("publish", Written::Unknown, NOTIFY, &[&name, &message]).await.map(drop)
        })
    }

    fn watch(&self, channel: ChangeChannel) -> StoreFuture<'_, Box<dyn ChangeWatch>> {
        Box::pin(async move {
            // The name has letters, digits and underscores. A connection that listens is idle, and a role may have a time for that;
            // versions before 14 do not.
            let never_idle =
                "SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'idle_session_timeout'";
            let listen = format!("{never_idle}; LISTEN {}", self.name(channel));
            let open = async {
                let (client, connection) = self.pool.connection().await?;
                let mut watch = PostgresWatch { client, connection, waiting: Vec::new() };
                watch.listen(&listen).await?;
                Ok(watch)
            };
            match timeout(self.pool.timeout(), open).await {
                Ok(Ok(watch)) => Ok(Box::new(watch) as Box<dyn ChangeWatch>),
                Ok(Err(error)) => Err(of_statement("watch", Written::No, error)),
                Err(elapsed) => Err(StoreError::read(StoreErrorKind::Timeout, "watch", elapsed)),
            }
        })
    }
}

struct PostgresWatch {
    /// The connection ends with its client.
    client: Client,
    connection: PostgresConnection,
    /// The messages that arrived with the reply to `LISTEN`.
    waiting: Vec<String>,
}

impl PostgresWatch {
    /// Begins to listen. Nobody else polls the connection.
    async fn listen(&mut self, statement: &str) -> Result<(), tokio_postgres::Error> {
        let Self { client, connection, waiting } = self;
        let mut listening = pin!(client.batch_execute(statement));
        poll_fn(|context| {
            while let Poll::Ready(Some(message)) = connection.poll_message(context) {
                waiting.extend(text_of(message?));
            }
            listening.as_mut().poll(context)
        })
        .await
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<String, StoreError>> {
        if !self.waiting.is_empty() {
            return Poll::Ready(Ok(self.waiting.remove(0)));
        }
        loop {
            match self.connection.poll_message(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(message))) => {
                    if let Some(text) = text_of(message) {
                        return Poll::Ready(Ok(text));
                    }
                }
                Poll::Ready(Some(Err(error))) => {
                    return Poll::Ready(Err(changes::lost(error)));
                }
                Poll::Ready(None) => return Poll::Ready(Err(changes::lost("the connection was closed"))),
            }
        }
    }
}

/// Returns the text of a notification.
fn text_of(message: AsyncMessage) -> Option<String> {
    match message {
        AsyncMessage::Notification(notification) => Some(notification.payload().to_owned()),
        _ => None,
    }
}

impl ChangeWatch for PostgresWatch {
    fn next(&mut self) -> StoreFuture<'_, String> {
        Box::pin(poll_fn(|context| self.poll_next(context)))
    }
}
