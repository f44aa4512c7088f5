//! The operations of requests, and those of workflows and of the upkeep: heartbeats, what dbos may not have, and what is over.

use crate::tables::{Tables, column, full, key_of, of_read, of_write, statements, workflow_id};
use antiphon_store::{
    NewTask, Owner, StoreError, TaskCreated, TaskKey, TaskLimits, TaskMessage, TaskRow, TaskSent, TaskState,
    TaskSummary,
};
use sqlx::{Row as _, postgres::PgRow};
use std::time::Duration;

/// The result of a creation.
pub(crate) enum Creation {
    Done(TaskCreated),
    /// The time of an earlier task with this key is over: its workflow goes before it does.
    Expired,
}

impl Tables {
    pub(crate) async fn create(&self, new: &NewTask, limits: &TaskLimits) -> Result<Creation, StoreError> {
        let task = new.task.as_bytes().as_slice();
        let read = |error| of_read("create", error);
        let exists =
            self.query(statements::EXISTS).bind(task).fetch_optional(&self.pool).await.map_err(read)?;
        match exists.map(|row| row.try_get::<bool, _>(0)).transpose().map_err(read)? {
            Some(true) => return Ok(Creation::Done(TaskCreated::Existing)),
            Some(false) => return Ok(Creation::Expired),
            None => {}
        }
        self.check_open(None, "tasks", limits.max_tasks()).await?;
        self.check_open(Some(new.owner), "tasks of one owner", limits.max_tasks_of_owner()).await?;
        let created = self
            .query(statements::CREATE)
            .bind(task)
            .bind(new.owner.as_bytes().as_slice())
            .bind(&new.snapshot)
            .bind(new.ttl.map(|ttl| ttl.as_secs_f64()))
            .execute(&self.pool)
            .await
            .map_err(|error| of_write("create", error))?;
        let created = if created.rows_affected() > 0 { TaskCreated::First } else { TaskCreated::Existing };
        Ok(Creation::Done(created))
    }

    async fn check_open(&self, owner: Option<Owner>, what: &str, limit: usize) -> Result<(), StoreError> {
        let open = self
            .query(statements::OPEN)
            .bind(owner.as_ref().map(|owner| owner.as_bytes().as_slice().to_vec()))
            .bind(column(limit))
            .fetch_one(&self.pool)
            .await
            .and_then(|row| row.try_get::<i64, _>(0))
            .map_err(|error| of_read("create", error))?;
        if open >= column(limit) { Err(full("create", what, limit)) } else { Ok(()) }
    }

    pub(crate) async fn started(&self, task: TaskKey) -> Result<(), sqlx::Error> {
        self.query(statements::STARTED).bind(task.as_bytes().as_slice()).execute(&self.pool).await.map(drop)
    }

    pub(crate) async fn get(&self, task: TaskKey) -> Result<Option<TaskRow>, StoreError> {
        let row = self
            .query(statements::GET)
            .bind(task.as_bytes().as_slice())
            .fetch_optional(&self.pool)
            .await
            .map_err(|error| of_read("get", error))?;
        row.as_ref().map(row_of).transpose().map_err(|error| of_read("get", error))
    }

    /// Adds a message. Returns its number, if it was added.
    pub(crate) async fn send(
        &self,
        task: TaskKey,
        body: &[u8],
        limits: &TaskLimits,
    ) -> Result<(TaskSent, i64), StoreError> {
        let write = |error| of_write("send", error);
        let key = task.as_bytes().as_slice();
        let mut transaction = self.pool.begin().await.map_err(write)?;
        let locked = self.query(statements::LOCK_TASK).bind(key).fetch_optional(&mut *transaction).await;
        let Some(locked) = locked.map_err(write)? else { return Ok((TaskSent::NotFound, 0)) };
        if locked.try_get::<i16, _>(0).map_err(write)? == 3 {
            return Ok((TaskSent::Final, 0));
        }
        let number = locked.try_get::<i64, _>(1).map_err(write)? + 1;
        let taken: i64 = locked.try_get(2).map_err(write)?;
        let queue = self.query(statements::QUEUE).bind(key).bind(taken).fetch_one(&mut *transaction).await;
        let queue = queue.map_err(write)?;
        if queue.try_get::<i64, _>(0).map_err(write)? >= column(limits.max_messages()) {
            return Err(full("send", "messages", limits.max_messages()));
        }
        let bytes: i64 = queue.try_get(1).map_err(write)?;
        if bytes.saturating_add(column(body.len())) > column(limits.max_message_bytes()) {
            return Err(full("send", "bytes of messages", limits.max_message_bytes()));
        }
        self.query(statements::SEND)
            .bind(key)
            .bind(number)
            .bind(body)
            .bind(&self.channel)
            .bind(format!("m{}", workflow_id(task)))
            .execute(&mut *transaction)
            .await
            .map_err(write)?;
        transaction.commit().await.map_err(write)?;
        Ok((TaskSent::Queued, number))
    }

    pub(crate) async fn announced(&self, task: TaskKey, number: i64) -> Result<(), sqlx::Error> {
        let statement = self.query(statements::ANNOUNCED).bind(task.as_bytes().as_slice()).bind(number);
        statement.execute(&self.pool).await.map(drop)
    }

    pub(crate) async fn list(&self, limit: usize) -> Result<Vec<TaskSummary>, StoreError> {
        let rows = self.query(statements::LIST).bind(column(limit)).fetch_all(&self.pool).await;
        let rows = rows.map_err(|error| of_read("list", error))?;
        rows.iter().map(summary_of).collect::<Result<_, _>>().map_err(|error| of_read("list", error))
    }

    pub(crate) async fn list_of_owner(
        &self,
        owner: Owner,
        after: Option<TaskKey>,
        limit: usize,
    ) -> Result<Vec<TaskKey>, StoreError> {
        let rows = self
            .query(statements::LIST_OF_OWNER)
            .bind(owner.as_bytes().as_slice())
            .bind(after.map(|after| after.as_bytes().to_vec()))
            .bind(column(limit))
            .fetch_all(&self.pool)
            .await
            .map_err(|error| of_read("list", error))?;
        rows.iter()
            .map(|row| row.try_get(0).and_then(key_of))
            .collect::<Result<_, _>>()
            .map_err(|error| of_read("list", error))
    }
}

fn row_of(row: &PgRow) -> Result<TaskRow, sqlx::Error> {
    let state: i16 = row.try_get("state")?;
    let numbers: Vec<i64> = row.try_get("numbers")?;
    let bodies: Vec<Vec<u8>> = row.try_get("bodies")?;
    let message = |(number, body): (i64, Vec<u8>)| TaskMessage::new(number.unsigned_abs(), body);
    let version = row.try_get::<i64, _>("version")?.unsigned_abs();
    let mut found = TaskRow::new(row.try_get::<Vec<u8>, _>("snapshot")?, version);
    found.messages = numbers.into_iter().zip(bodies).map(message).collect();
    found.is_final = state == 3;
    found.is_held = state == 1;
    Ok(found)
}

fn summary_of(row: &PgRow) -> Result<TaskSummary, sqlx::Error> {
    let time = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let count = |number: i64| usize::try_from(number).unwrap_or_default();
    let state = match row.try_get::<i16, _>("state")? {
        0 => TaskState::Due,
        1 => TaskState::Held,
        2 => TaskState::Waits,
        _ => TaskState::Final,
    };
    let mut summary = TaskSummary::new(row.try_get("task").and_then(key_of)?, state);
    summary.age = time(row.try_get("age")?);
    summary.unchanged_for = time(row.try_get("unchanged")?);
    summary.rest = row.try_get::<Option<f64>, _>("rest")?.map(time);
    summary.messages = count(row.try_get("messages")?);
    summary.snapshot_bytes = count(row.try_get("bytes")?);
    summary.claims = row.try_get("turn")?;
    Ok(summary)
}

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
