//! The rows of tasks within one transaction.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::{MAIN_DB, OptionalExtension as _, Result, Row, params};

use super::rows::Rows;
use super::task_statements as statements;
use crate::clock::Micros;
use crate::key::{Owner, RunnerId};
use crate::task::state::{Claimed, Lease, Lost, Plan, RowState};
use crate::task::{
    NewTask, TaskClaim, TaskCreated, TaskFence, TaskKey, TaskLimits, TaskMessage, TaskRow, TaskSent,
    TaskSummary, TaskUpdate,
};

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
        if count(statements::OPEN, params![now])? >= limits.max_tasks() {
            return Ok(Err(("tasks", limits.max_tasks())));
        }
        if count(statements::OPEN_OF_OWNER, params![now, new.owner.as_bytes()])?
            >= limits.max_tasks_of_owner()
        {
            return Ok(Err(("tasks of one owner", limits.max_tasks_of_owner())));
        }
        // The row of an earlier task with this key is gone.
        self.write(statements::DELETE, params![new.task.as_bytes()])?;
        self.write(statements::CREATE, params![new.task.as_bytes(), new.owner.as_bytes(), now])?;
        self.write(statements::WRITE_SNAPSHOT, params![new.task.as_bytes(), new.snapshot])?;
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
        self.write(statements::ADD_MESSAGE, params![task.as_bytes(), number, body])?;
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
        self.write(statements::TAKE_MESSAGES, params![task.as_bytes(), taken])?;
        self.write(statements::WRITE_SNAPSHOT, params![task.as_bytes(), update.snapshot])?;
        self.write_task(task, &state)?;
        Ok(Ok(()))
    }

    pub(super) fn due_tasks(&self, limit: usize) -> Result<Vec<TaskKey>> {
        let mut statement = self.connection().prepare_cached(statements::DUE)?;
        let columns = params![self.now().get(), i64::try_from(limit).unwrap_or(i64::MAX)];
        let due = statement.query_map(columns, |row| row.get(0).map(TaskKey::from_bytes))?;
        due.collect()
    }

    pub(super) fn list_tasks(&self, limit: usize) -> Result<Vec<TaskSummary>> {
        let mut statement = self.connection().prepare_cached(statements::LIST)?;
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
        let mut statement = self.connection().prepare_cached(statements::LIST_OF_OWNER)?;
        let after = after.map(|after| *after.as_bytes());
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let columns = params![self.now().get(), owner.as_bytes(), after, limit];
        let tasks = statement.query_map(columns, |row| row.get(0).map(TaskKey::from_bytes))?;
        tasks.collect()
    }

    pub(super) fn sweep_tasks(&self, limit: usize) -> Result<usize> {
        let columns = params![self.now().get(), i64::try_from(limit).unwrap_or(i64::MAX)];
        let swept = self.connection().prepare_cached(statements::SWEEP)?.execute(columns)?;
        if swept > 0 {
            self.note_write();
        }
        Ok(swept)
    }

    /// Returns the number of messages above this number, and of their bytes.
    fn queue(&self, task: TaskKey, above: u64) -> Result<(usize, usize)> {
        let columns = params![task.as_bytes(), above];
        let mut statement = self.connection().prepare_cached(statements::QUEUE)?;
        statement.query_row(columns, |row| Ok((row.get(0)?, row.get(1)?)))
    }

    fn find_task(&self, task: TaskKey) -> Result<Option<RowState>> {
        let mut statement = self.connection().prepare_cached(statements::FIND)?;
        statement.query_row(params![task.as_bytes(), self.now().get()], state_of).optional()
    }

    fn row(&self, task: TaskKey, state: &RowState, bytes: usize) -> Result<TaskRow> {
        let mut statement = self.connection().prepare_cached(statements::MESSAGES)?;
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
            let mut statement = self.connection().prepare_cached(statements::SNAPSHOT_LENGTH)?;
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
        let mut statement = self.connection().prepare_cached(statements::SNAPSHOT)?;
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
        self.write(statements::WRITE, columns)
    }
}

/// Reads the columns of [`statements::FIND`].
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
