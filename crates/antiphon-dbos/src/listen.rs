//! The changes that all instances report, on a channel of the database.

use std::sync::Weak;
use std::time::Duration;

use antiphon_wire::escaped;
use sqlx::PgPool;
use sqlx::postgres::PgListener;
use tokio::time::sleep;

use crate::shared::Shared;
use crate::tables::task_of;

/// The time until a broken connection is tried again.
const PAUSE: Duration = Duration::from_secs(1);

/// Listens as long as the engine exists.
pub(crate) async fn run(shared: Weak<Shared>) {
    loop {
        let Some((pool, channel)) =
            shared.upgrade().map(|shared| (shared.tables.pool().clone(), shared.tables.channel.clone()))
        else {
            return;
        };
        if let Err(error) = listen(&shared, &pool, &channel).await {
            tracing::warn!(error = %escaped(&error), "the changes of tasks are not received now");
            sleep(PAUSE).await;
        }
    }
}

async fn listen(shared: &Weak<Shared>, pool: &PgPool, channel: &str) -> Result<(), sqlx::Error> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.listen(channel).await?;
    loop {
        // Changes before the connection were missed.
        missed(shared);
        while let Some(notification) = listener.try_recv().await? {
            let Some(shared) = shared.upgrade() else { return Ok(()) };
            let Some((kind, id)) = notification.payload().split_at_checked(1) else { continue };
            let Some(task) = task_of(id) else { continue };
            if kind == "m" {
                shared.legs.end_soon(task);
            }
            shared.changed(Some(task));
        }
    }
}

fn missed(shared: &Weak<Shared>) {
    if let Some(shared) = shared.upgrade() {
        // There may be a message for each of them.
        shared.legs.end_all();
        shared.changed(None);
    }
}
