//! The rows of tasks within one transaction.

use super::rows::Rows;
use crate::{
    claim::{Owner, RunnerId},
    clock::Micros,
    task::{
        NewTask, TaskClaim, TaskCreated, TaskFence, TaskKey, TaskLimits, TaskMessage, TaskRow, TaskSent,
        TaskSummary, TaskUpdate,
        state::{Claimed, Lease, Lost, Plan, RowState},
    },
};
use rusqlite::{MAIN_DB, OptionalExtension as _, Result, Row, params};
use std::{sync::Arc, time::Duration};

/// The length of a snapshot that is read as a whole: a stream costs more.
const SHORT: usize = 16 * 1024;

/// A limit that is reached: its name, and its value.
pub(super) type Full = (&'static str, usize);

impl Rows<'_> {
    pub(super) fn create_task(
        &self,
        new: &NewTask,
        limits: &TaskLimits,
    ) -> Result<std::result::Result<TaskCreated, Full>> {
        if self.find_task(new.task)?.is_some() {
            return Ok(Ok(TaskCreated::Existing));
        }
        let count = |statement: &str, columns: &[&dyn rusqlite::ToSql]| -> Result<usize> {
            self.connection().prepare_cached(statement)?.query_row(columns, |row| row.get(0))
        };
        let now = self.now().get();
        if count(OPEN, params![now])? >= limits.max_tasks() {
            return Ok(Err(("tasks", limits.max_tasks())));
        }
        if count(OPEN_OF_OWNER, params![now, new.owner.as_bytes()])? >= limits.max_tasks_of_owner() {
            return Ok(Err(("tasks of one owner", limits.max_tasks_of_owner())));
        }
        // The row of an earlier task with this key is gone.
        self.write(DELETE, params![new.task.as_bytes()])?;
        self.write(CREATE, params![new.task.as_bytes(), new.owner.as_bytes(), now])?;
        self.write(WRITE_SNAPSHOT, params![new.task.as_bytes(), new.snapshot])?;
        self.write_task(new.task, &RowState::new(self.now(), new.ttl))?;
        Ok(Ok(TaskCreated::First))
    }

    /// Returns a row, with at least so many bytes of its snapshot.
    pub(super) fn load_task(&self, task: TaskKey, bytes: usize) -> Result<Option<TaskRow>> {
        self.find_task(task)?.map(|state| self.row(task, &state, bytes)).transpose()
    }

    pub(super) fn send_to_task(
        &self,
        task: TaskKey,
        body: &[u8],
        limits: &TaskLimits,
    ) -> Result<std::result::Result<TaskSent, Full>> {
        let Some(mut state) = self.find_task(task)? else { return Ok(Ok(TaskSent::NotFound)) };
        if state.is_final() {
            return Ok(Ok(TaskSent::Final));
        }
        let (messages, bytes) = self.queue(task, 0)?;
        if messages >= limits.max_messages() {
            return Ok(Err(("messages", limits.max_messages())));
        }
        if bytes + body.len() > limits.max_message_bytes() {
            return Ok(Err(("bytes of messages", limits.max_message_bytes())));
        }
        let number = state.send(self.now());
        self.write(ADD_MESSAGE, params![task.as_bytes(), number, body])?;
        self.write_task(task, &state)?;
        Ok(Ok(TaskSent::Queued))
    }

    pub(super) fn claim_task(&self, task: TaskKey, runner: RunnerId, lease: Duration) -> Result<TaskClaim> {
        let Some(mut state) = self.find_task(task)? else { return Ok(TaskClaim::NotFound) };
        Ok(match state.claim(runner, lease, self.now()) {
            Claimed::Fresh(number) => {
                self.write_task(task, &state)?;
                TaskClaim::Fresh(TaskFence::new(task, number), self.row(task, &state, usize::MAX)?)
            }
            Claimed::Held(retry_after) => TaskClaim::Held { retry_after },
            Claimed::Final => TaskClaim::Final,
        })
    }

    pub(super) fn renew_task(
        &self,
        fence: &TaskFence,
        lease: Duration,
    ) -> Result<std::result::Result<(), Lost>> {
        let Some(mut state) = self.find_task(fence.task())? else { return Ok(Err(Lost)) };
        let renewed = state.renew(fence.number(), lease, self.now());
        if renewed.is_ok() {
            self.write_task(fence.task(), &state)?;
        }
        Ok(renewed)
    }

    pub(super) fn update_task(
        &self,
        fence: &TaskFence,
        update: &TaskUpdate,
    ) -> Result<std::result::Result<(), Lost>> {
        let task = fence.task();
        let Some(mut state) = self.find_task(task)? else { return Ok(Err(Lost)) };
        // No message has a higher number.
        let taken = update.taken.min(state.numbered);
        let (messages, _) = self.queue(task, taken)?;
        if state.update(fence.number(), update, messages > 0, self.now()).is_err() {
            return Ok(Err(Lost));
        }
        let taken = if state.is_final() { state.numbered } else { taken };
        self.write(TAKE_MESSAGES, params![task.as_bytes(), taken])?;
        self.write(WRITE_SNAPSHOT, params![task.as_bytes(), update.snapshot])?;
        self.write_task(task, &state)?;
        Ok(Ok(()))
    }

    pub(super) fn due_tasks(&self, limit: usize) -> Result<Vec<TaskKey>> {
        let mut statement = self.connection().prepare_cached(DUE)?;
        let columns = params![self.now().get(), i64::try_from(limit).unwrap_or(i64::MAX)];
        let due = statement.query_map(columns, |row| row.get(0).map(TaskKey::from_bytes))?;
        due.collect()
    }

    pub(super) fn list_tasks(&self, limit: usize) -> Result<Vec<TaskSummary>> {
        let mut statement = self.connection().prepare_cached(LIST)?;
        let columns = params![self.now().get(), i64::try_from(limit).unwrap_or(i64::MAX)];
        let now = self.now();
        let rows = statement.query_map(columns, |row| {
            let state = state_of(row)?;
            Ok(TaskSummary {
                age: now.since(state.created),
                unchanged_for: now.since(state.changed),
                rest: state.expires.map(|expires| expires.since(now)),
                messages: row.get(12)?,
                received: state.numbered,
                snapshot_bytes: row.get(11)?,
                claims: state.claims(),
                ..TaskSummary::new(TaskKey::from_bytes(row.get(10)?), state.state(now))
            })
        })?;
        rows.collect()
    }

    pub(super) fn list_tasks_of_owner(
        &self,
        owner: Owner,
        after: Option<TaskKey>,
        limit: usize,
    ) -> Result<Vec<TaskKey>> {
        let mut statement = self.connection().prepare_cached(LIST_OF_OWNER)?;
        let after = after.map(|after| *after.as_bytes());
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let columns = params![self.now().get(), owner.as_bytes(), after, limit];
        let tasks = statement.query_map(columns, |row| row.get(0).map(TaskKey::from_bytes))?;
        tasks.collect()
    }

    pub(super) fn sweep_tasks(&self, limit: usize) -> Result<usize> {
        let columns = params![self.now().get(), i64::try_from(limit).unwrap_or(i64::MAX)];
        let swept = self.connection().prepare_cached(SWEEP)?.execute(columns)?;
        if swept > 0 {
            self.note_write();
        }
        Ok(swept)
    }

    /// Returns the number of messages above this number, and of their bytes.
    fn queue(&self, task: TaskKey, above: u64) -> Result<(usize, usize)> {
        let columns = params![task.as_bytes(), above];
        let mut statement = self.connection().prepare_cached(QUEUE)?;
        statement.query_row(columns, |row| Ok((row.get(0)?, row.get(1)?)))
    }

    fn find_task(&self, task: TaskKey) -> Result<Option<RowState>> {
        let mut statement = self.connection().prepare_cached(FIND)?;
        statement.query_row(params![task.as_bytes(), self.now().get()], state_of).optional()
    }

    fn row(&self, task: TaskKey, state: &RowState, bytes: usize) -> Result<TaskRow> {
        let mut statement = self.connection().prepare_cached(MESSAGES)?;
        let messages = statement.query_map(params![task.as_bytes()], |row| {
            Ok(TaskMessage { number: row.get(0)?, body: row.get(1)? })
        })?;
        Ok(TaskRow {
            messages: messages.collect::<Result<_>>()?,
            snapshot: self.snapshot(task, bytes)?,
            version: state.version,
            is_final: state.is_final(),
            is_held: state.is_held(self.now()),
        })
    }

    /// Returns at least so many bytes of a snapshot. SQLite reads a value as a whole, unless it is opened as a stream.
    fn snapshot(&self, task: TaskKey, bytes: usize) -> Result<Arc<[u8]>> {
        let columns = params![task.as_bytes()];
        if bytes < usize::MAX {
            let mut statement = self.connection().prepare_cached(SNAPSHOT_LENGTH)?;
            let (row, length): (i64, usize) =
                statement.query_row(columns, |row| Ok((row.get(0)?, row.get(1)?)))?;
            if length > bytes.max(SHORT) {
                let table = c"antiphon_task_snapshots";
                let stream = self.connection().blob_open(MAIN_DB, table, c"snapshot", row, true)?;
                let mut head = vec![0; bytes];
                stream.read_at_exact(&mut head, 0)?;
                return Ok(head.into());
            }
        }
        let mut statement = self.connection().prepare_cached(SNAPSHOT)?;
        statement.query_row(columns, |row| Ok(row.get_ref(0)?.as_blob()?.into()))
    }

    fn write_task(&self, task: TaskKey, state: &RowState) -> Result<()> {
        let (plan, plan_at) = match state.plan {
            Plan::Ready(since) => (0, Some(since)),
            Plan::Waits(until) => (1, until),
            Plan::Final => (2, None),
        };
        let columns = params![
            task.as_bytes(),
            state.version,
            state.numbered,
            state.fence,
            state.lease.map(|lease| *lease.runner.as_bytes()),
            state.lease.map(|lease| lease.until.get()),
            plan,
            plan_at.map(Micros::get),
            state.due_at().map(Micros::get),
            state.expires.map(Micros::get),
            state.changed.get(),
        ];
        self.write(WRITE, columns)
    }
}

/// Reads the columns of [`FIND`].
fn state_of(row: &Row<'_>) -> Result<RowState> {
    let moment =
        |at: usize| -> Result<Option<Micros>> { Ok(row.get::<_, Option<i64>>(at)?.map(Micros::new)) };
    let plan = match (row.get(5)?, moment(6)?) {
        (0, since) => Plan::Ready(since.unwrap_or_default()),
        (1, until) => Plan::Waits(until),
        (2, _) => Plan::Final,
        (other, _) => return Err(rusqlite::Error::IntegralValueOutOfRange(5, other)),
    };
    let lease = match (row.get::<_, Option<[u8; 16]>>(3)?, moment(4)?) {
        (Some(runner), Some(until)) => Some(Lease { runner: RunnerId::from_bytes(runner), until }),
        _ => None,
    };
    Ok(RowState {
        version: row.get(0)?,
        numbered: row.get(1)?,
        fence: row.get(2)?,
        lease,
        plan,
        expires: moment(7)?,
        created: moment(8)?.unwrap_or_default(),
        changed: moment(9)?.unwrap_or_default(),
    })
}

// The statements on tasks. Times are microseconds since 1970.

/// The tables of version 2. A snapshot has a table of its own, so that a lease is renewed without writing the snapshot again. `plan`
/// is 0 while a task is ready, 1 while it waits, 2 when it is final; `plan_at` is the moment of that plan, if it has one. `due_at` is the moment from which the task is due, if there is one.
pub(super) const CREATE_TABLES: &str = "
    CREATE TABLE antiphon_tasks (
        task BLOB NOT NULL PRIMARY KEY,
        owner BLOB NOT NULL,
        version INTEGER NOT NULL,
        numbered INTEGER NOT NULL,
        fence INTEGER NOT NULL,
        runner BLOB,
        lease_until INTEGER,
        plan INTEGER NOT NULL,
        plan_at INTEGER,
        due_at INTEGER,
        expires_at INTEGER,
        created_at INTEGER NOT NULL,
        changed_at INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX antiphon_tasks_due ON antiphon_tasks (due_at) WHERE due_at IS NOT NULL;
    CREATE INDEX antiphon_tasks_expiry ON antiphon_tasks (expires_at) WHERE expires_at IS NOT NULL;
    CREATE INDEX antiphon_tasks_of_owner ON antiphon_tasks (owner, task);
    CREATE INDEX antiphon_tasks_open ON antiphon_tasks (owner, plan, expires_at) WHERE plan < 2;
    CREATE TABLE antiphon_task_snapshots (
        task BLOB NOT NULL PRIMARY KEY REFERENCES antiphon_tasks (task) ON DELETE CASCADE,
        snapshot BLOB NOT NULL
    ) STRICT;
    CREATE TABLE antiphon_task_messages (
        task BLOB NOT NULL REFERENCES antiphon_tasks (task) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY (task, number)
    ) STRICT;
    UPDATE antiphon_store SET version = 2 WHERE id = 1;
";

/// Returns the row of a task, without its snapshot.
const FIND: &str = "
    SELECT version, numbered, fence, runner, lease_until, plan, plan_at, expires_at, created_at, changed_at
    FROM antiphon_tasks WHERE task = ?1 AND (expires_at IS NULL OR expires_at > ?2)";

/// Returns the snapshot of a task.
const SNAPSHOT: &str = "SELECT snapshot FROM antiphon_task_snapshots WHERE task = ?1";

/// Returns the number of the row that has the snapshot of a task, and its length, which is read without the snapshot.
pub(super) const SNAPSHOT_LENGTH: &str =
    "SELECT rowid, length(snapshot) FROM antiphon_task_snapshots WHERE task = ?1";

/// Returns the messages of a task, in the order of their arrival.
const MESSAGES: &str = "SELECT number, body FROM antiphon_task_messages WHERE task = ?1 ORDER BY number";

/// Returns the number of messages of a task, and of their bytes.
const QUEUE: &str = "SELECT count(*), coalesce(sum(length(body)), 0) FROM antiphon_task_messages WHERE task = ?1 AND number > ?2";

/// Returns the number of tasks that are neither final nor gone: all, and those of one owner.
const OPEN: &str =
    "SELECT count(*) FROM antiphon_tasks WHERE plan < 2 AND (expires_at IS NULL OR expires_at > ?1)";
const OPEN_OF_OWNER: &str = "
    SELECT count(*) FROM antiphon_tasks
    WHERE plan < 2 AND owner = ?2 AND (expires_at IS NULL OR expires_at > ?1)";

/// Removes the row of a task and its messages.
pub(super) const DELETE: &str = "DELETE FROM antiphon_tasks WHERE task = ?1";

/// Creates the row of a task.
pub(super) const CREATE: &str = "
    INSERT INTO antiphon_tasks (task, owner, version, numbered, fence, plan, created_at, changed_at)
    VALUES (?1, ?2, 0, 0, 0, 0, ?3, ?3)";

/// Replaces the columns of a row, except for its snapshot.
const WRITE: &str = "
    UPDATE antiphon_tasks SET
        version = ?2, numbered = ?3, fence = ?4, runner = ?5, lease_until = ?6, plan = ?7, plan_at = ?8, due_at = ?9,
        expires_at = ?10, changed_at = ?11
    WHERE task = ?1";

/// Replaces the snapshot of a row.
const WRITE_SNAPSHOT: &str = "
    INSERT INTO antiphon_task_snapshots (task, snapshot) VALUES (?1, ?2)
    ON CONFLICT (task) DO UPDATE SET snapshot = excluded.snapshot";

/// Adds a message.
const ADD_MESSAGE: &str = "INSERT INTO antiphon_task_messages (task, number, body) VALUES (?1, ?2, ?3)";

/// Removes the messages up to a number.
const TAKE_MESSAGES: &str = "DELETE FROM antiphon_task_messages WHERE task = ?1 AND number <= ?2";

/// Returns the tasks that are due.
const DUE: &str = "
    SELECT task FROM antiphon_tasks
    WHERE due_at <= ?1 AND (expires_at IS NULL OR expires_at > ?1) ORDER BY due_at, task LIMIT ?2";

/// Returns the rows of all tasks, without their content.
const LIST: &str = "
    SELECT version, numbered, fence, runner, lease_until, plan, plan_at, expires_at, created_at, changed_at, task,
        (SELECT length(snapshot) FROM antiphon_task_snapshots AS s WHERE s.task = t.task),
        (SELECT count(*) FROM antiphon_task_messages AS m WHERE m.task = t.task)
    FROM antiphon_tasks AS t WHERE expires_at IS NULL OR expires_at > ?1 ORDER BY created_at, task LIMIT ?2";

/// Returns the tasks of one owner after a key, if there is one.
const LIST_OF_OWNER: &str = "
    SELECT task FROM antiphon_tasks
    WHERE owner = ?2 AND task > coalesce(?3, x'') AND (expires_at IS NULL OR expires_at > ?1) ORDER BY task LIMIT ?4";

/// Removes the tasks that expired first and are not held, and their messages.
const SWEEP: &str = "
    DELETE FROM antiphon_tasks WHERE task IN
        (SELECT task FROM antiphon_tasks WHERE expires_at <= ?1 AND coalesce(lease_until, 0) <= ?1
         ORDER BY expires_at LIMIT ?2)";

#[cfg(test)]
mod tests {
    use rusqlite::{Connection, params};

    use super::{CREATE_TABLES, OPEN, OPEN_OF_OWNER};
    use crate::sqlite::rows;

    fn tables() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(rows::CREATE_TABLES).unwrap();
        connection.execute_batch(CREATE_TABLES).unwrap();
        connection
    }

    /// Each creation counts tasks: it reads the index only, and no row.
    #[test]
    fn open_tasks_are_counted_in_the_index() {
        let connection = tables();
        let plan = |statement: &str, columns: &[&dyn rusqlite::ToSql]| -> String {
            let explain = format!("EXPLAIN QUERY PLAN {statement}");
            connection.query_row(&explain, columns, |row| row.get("detail")).unwrap()
        };
        for plan in [plan(OPEN, params![1]), plan(OPEN_OF_OWNER, params![1, [1_u8; 16]])] {
            assert!(plan.contains("COVERING INDEX antiphon_tasks_open"), "{plan}");
        }
    }
}
