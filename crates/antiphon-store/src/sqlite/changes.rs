//! The feed of changes in the file: a table of the latest messages, which a watch reads when the version of the file changes.

use super::{
    schema::rolled_back,
    worker::{Reply, Worker},
};
use crate::{
    changes::{self, ChangeChannel, ChangeFeed, ChangeWatch},
    clock::StoreClock,
    error::{StoreError, StoreFuture, Written},
};
use rusqlite::{Connection, params};
use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::sleep;

/// The time between two looks at the version of the file.
const LOOK: Duration = Duration::from_millis(100);
/// The number of messages in the file. A watch that is behind by more has lost some.
const KEPT: i64 = 10_000;
/// The number of messages that one look reads.
const AT_ONCE: i64 = 1_000;
/// The number of looks in a row that may fail. A look that fails loses nothing: the next one reads from the same place.
const FAILURES: u32 = 10;

#[derive(Debug)]
pub(super) struct SqliteChanges {
    pub(super) worker: Worker,
    /// The number of messages that this store has published: a connection does not see its own changes in the version.
    pub(super) published: Arc<AtomicU64>,
}

impl ChangeFeed for SqliteChanges {
    fn publish<'a>(&'a self, channel: ChangeChannel, message: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            changes::check(message)?;
            let (message, published) = (message.to_owned(), Arc::clone(&self.published));
            let publish = move |rows: &super::rows::Rows<'_>| {
                let insert = "INSERT INTO antiphon_changes (channel, message) VALUES (?1, ?2)";
                rows.connection().prepare_cached(insert)?.execute(params![channel.as_bytes(), message])?;
                let kept = rows.connection().last_insert_rowid().saturating_sub(KEPT);
                let remove = "DELETE FROM antiphon_changes WHERE number <= ?1";
                rows.connection().prepare_cached(remove)?.execute([kept])?;
                published.fetch_add(1, Ordering::Relaxed);
                Ok(())
            };
            self.worker.run("publish", Written::Unknown, publish).await
        })
    }

    fn watch(&self, channel: ChangeChannel) -> StoreFuture<'_, Box<dyn ChangeWatch>> {
        Box::pin(async move {
            let (worker, published) = (self.worker.clone(), Arc::clone(&self.published));
            let mut watch = SqliteWatch { worker, channel, published, seen: None, waiting: VecDeque::new() };
            let looked = watch.look().await;
            looked.map_err(|(LookFault::Failed(error) | LookFault::Lost(error))| error)?;
            Ok(Box::new(watch) as Box<dyn ChangeWatch>)
        })
    }
}

struct SqliteWatch {
    worker: Worker,
    channel: ChangeChannel,
    published: Arc<AtomicU64>,
    seen: Option<Seen>,
    waiting: VecDeque<String>,
}

/// The last look at the file.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Seen {
    /// The version of the file, and the number of own messages; nothing if there was more to read.
    version: Option<(i64, u64)>,
    /// The number of the last message.
    number: i64,
}

/// A look at the file.
enum Look {
    Messages(Seen, Vec<String>),
    Lost,
}

/// The reason why a look has found nothing.
enum LookFault {
    Lost(StoreError),
    Failed(StoreError),
}

impl ChangeWatch for SqliteWatch {
    fn next(&mut self) -> StoreFuture<'_, String> {
        Box::pin(async {
            let mut failures = 0;
            loop {
                if let Some(message) = self.waiting.pop_front() {
                    return Ok(message);
                }
                // A look that reads less than there is is followed by another one at once.
                if failures > 0 || self.seen.is_none_or(|seen| seen.version.is_some()) {
                    sleep(LOOK).await;
                }
                failures = match self.look().await {
                    Ok(()) => 0,
                    Err(LookFault::Failed(_)) if failures < FAILURES => failures + 1,
                    Err(LookFault::Failed(error) | LookFault::Lost(error)) => return Err(error),
                };
            }
        })
    }
}

impl SqliteWatch {
    async fn look(&mut self) -> Result<(), LookFault> {
        let (channel, published, seen) = (self.channel, Arc::clone(&self.published), self.seen);
        let work = move |connection: &mut Connection, _: &StoreClock, reply: Reply<Look>| {
            let own = published.load(Ordering::Relaxed);
            reply.send(look(connection, channel, seen, own).map_err(|error| rolled_back("watch", error)));
        };
        match self.worker.run_alone("watch", work).await.map_err(LookFault::Failed)? {
            Look::Messages(seen, messages) => {
                self.seen = Some(seen);
                self.waiting.extend(messages);
                Ok(())
            }
            Look::Lost => {
                Err(LookFault::Lost(changes::lost(format!("the watch was behind by {KEPT} messages"))))
            }
        }
    }
}

fn look(
    connection: &Connection,
    channel: ChangeChannel,
    seen: Option<Seen>,
    own: u64,
) -> rusqlite::Result<Look> {
    let version: i64 = connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
    let version = Some((version, own));
    if let Some(seen) = seen.filter(|seen| seen.version == version) {
        return Ok(Look::Messages(seen, Vec::new()));
    }
    let ends = "SELECT coalesce((SELECT min(number) FROM antiphon_changes), 0),
        coalesce((SELECT max(number) FROM antiphon_changes), 0)";
    let ends = connection.prepare_cached(ends)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?)));
    let (first, last): (i64, i64) = ends?;
    let Some(Seen { number, .. }) = seen else {
        return Ok(Look::Messages(Seen { version, number: last }, Vec::new()));
    };
    // A file with fewer messages is another file, such as a backup.
    if last < number || first > number.saturating_add(1) {
        return Ok(Look::Lost);
    }
    let until = last.min(number.saturating_add(AT_ONCE));
    let read = "SELECT message FROM antiphon_changes WHERE number > ?1 AND number <= ?2 AND channel = ?3 ORDER BY number";
    let mut read = connection.prepare_cached(read)?;
    let messages = read.query_map(params![number, until, channel.as_bytes()], |row| row.get(0))?;
    let messages = messages.collect::<rusqlite::Result<_>>()?;
    Ok(Look::Messages(Seen { version: version.filter(|_| until == last), number: until }, messages))
}
