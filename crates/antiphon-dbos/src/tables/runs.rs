//! The operations of workflows and of the upkeep: heartbeats, what dbos may not have, and what is over.

use super::{Tables, column, key_of, statements, workflow_id};
use antiphon_store::{TaskKey, TaskMessage};
use sqlx::{Row as _, postgres::PgRow};
use std::time::Duration;

/// A recorded decision, as the row of its task shows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn<'a> {
    pub(crate) task: TaskKey,
    /// The number of the decision in its task.
    pub(crate) number: i64,
    pub(crate) snapshot: &'a [u8],
    pub(crate) taken: u64,
    pub(crate) shows: Shows,
}

/// The state of a task after a decision.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shows {
    Runs,
    Waits,
    /// Kept for this time.
    Final(Duration),
}

impl Tables {
    /// Returns the snapshot of a task, if its row shows the decision with this number; 0 is the creation.
    pub(crate) async fn shown(&self, task: TaskKey, turn: i64) -> Result<Option<Vec<u8>>, sqlx::Error> {
        let query = self.query(statements::SHOWN).bind(task.as_bytes().as_slice()).bind(turn);
        query.fetch_optional(&self.pool).await?.map(|row| row.try_get(0)).transpose()
    }

    /// Returns the messages above a number.
    pub(crate) async fn messages(&self, task: TaskKey, above: u64) -> Result<Vec<TaskMessage>, sqlx::Error> {
        let query = self.query(statements::MESSAGES).bind(task.as_bytes().as_slice()).bind(column(above));
        let message = |row: &PgRow| {
            Ok(TaskMessage::new(row.try_get::<i64, _>(0)?.unsigned_abs(), row.try_get::<Vec<u8>, _>(1)?))
        };
        query.fetch_all(&self.pool).await?.iter().map(message).collect()
    }

    /// Writes a recorded decision. A decision that was written before, or after which others were, changes nothing.
    pub(crate) async fn write(&self, turn: Turn<'_>) -> Result<(), sqlx::Error> {
        let (state, keep): (i16, _) = match turn.shows {
            Shows::Runs => (1, None),
            Shows::Waits => (2, None),
            Shows::Final(keep) => (3, Some(keep.as_secs_f64())),
        };
        self.query(statements::WRITE)
            .bind(turn.task.as_bytes().as_slice())
            .bind(turn.number)
            .bind(turn.snapshot)
            .bind(column(turn.taken))
            .bind(state)
            .bind(keep)
            .bind(&self.channel)
            .bind(format!("c{}", workflow_id(turn.task)))
            .execute(&self.pool)
            .await
            .map(drop)
    }

    /// Returns true if an instance has the workflow of a task.
    pub(crate) async fn is_of(&self, task: TaskKey, executor: &str) -> Result<bool, sqlx::Error> {
        let query = self.query(statements::IS_OF).bind(workflow_id(task)).bind(executor);
        query.fetch_one(&self.pool).await?.try_get(0)
    }

    /// Shows a snapshot while the leg of a decision runs, if this instance has the workflow of the task.
    pub(crate) async fn show(
        &self,
        task: TaskKey,
        turn: i64,
        snapshot: &[u8],
        executor: &str,
    ) -> Result<(), sqlx::Error> {
        self.query(statements::SHOW)
            .bind(task.as_bytes().as_slice())
            .bind(turn)
            .bind(snapshot)
            .bind(&self.channel)
            .bind(format!("c{}", workflow_id(task)))
            .bind(workflow_id(task))
            .bind(executor)
            .execute(&self.pool)
            .await
            .map(drop)
    }
}

// The operations of the upkeep: heartbeats, what dbos may not have, and what is over.

impl Tables {
    pub(crate) async fn beat(&self, executor: &str) -> Result<(), sqlx::Error> {
        self.query(statements::BEAT).bind(executor).execute(&self.pool).await.map(drop)
    }

    /// Returns the instances without a heartbeat within this time.
    pub(crate) async fn dead(&self, lease: Duration) -> Result<Vec<String>, sqlx::Error> {
        let query = self.query(statements::DEAD).bind(lease.as_secs_f64());
        query.fetch_all(&self.pool).await?.iter().map(|row| row.try_get(0)).collect()
    }

    /// Forgets an instance, and those without a heartbeat within this time.
    pub(crate) async fn forget(&self, executor: &str, time: Duration) -> Result<(), sqlx::Error> {
        let query = self.query(statements::FORGET).bind(executor).bind(time.as_secs_f64());
        query.execute(&self.pool).await.map(drop)
    }

    /// Returns the tasks whose workflows this instance has.
    pub(crate) async fn owned(&self, executor: &str) -> Result<Vec<TaskKey>, sqlx::Error> {
        keys_of(&self.query(statements::OWNED).bind(executor).fetch_all(&self.pool).await?)
    }

    /// Returns tasks that dbos may not have. Without `all`, not those that their own instance may be about to start.
    pub(crate) async fn unstarted(&self, all: bool, limit: usize) -> Result<Vec<TaskKey>, sqlx::Error> {
        keys_of(&self.query(statements::UNSTARTED).bind(column(limit)).bind(all).fetch_all(&self.pool).await?)
    }

    pub(crate) async fn unannounced(&self, limit: usize) -> Result<Vec<(TaskKey, i64)>, sqlx::Error> {
        let query = self.query(statements::UNANNOUNCED).bind(column(limit));
        let message = |row: &PgRow| Ok((row.try_get(0).and_then(key_of)?, row.try_get(1)?));
        query.fetch_all(&self.pool).await?.iter().map(message).collect()
    }

    pub(crate) async fn expired(&self, limit: usize) -> Result<Vec<TaskKey>, sqlx::Error> {
        keys_of(&self.query(statements::EXPIRED).bind(column(limit)).fetch_all(&self.pool).await?)
    }

    pub(crate) async fn delete(&self, tasks: &[TaskKey]) -> Result<(), sqlx::Error> {
        let keys: Vec<Vec<u8>> = tasks.iter().map(|task| task.as_bytes().to_vec()).collect();
        self.query(statements::DELETE).bind(keys).execute(&self.pool).await.map(drop)
    }
}

fn keys_of(rows: &[PgRow]) -> Result<Vec<TaskKey>, sqlx::Error> {
    rows.iter().map(|row| row.try_get(0).and_then(key_of)).collect()
}
