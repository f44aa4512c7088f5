//! The operations of the upkeep: heartbeats, what dbos may not have, and what is over.

use std::time::Duration;

use antiphon_store::TaskKey;
use sqlx::Row as _;
use sqlx::postgres::PgRow;

use super::{Tables, column, key_of, statements};

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
