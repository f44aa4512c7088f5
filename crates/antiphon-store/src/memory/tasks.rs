//! The store of tasks in the memory of one process.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::future::ready;
use std::ops::Bound;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::check;
use crate::clock::{Micros, StoreClock};
use crate::error::StoreError;
use crate::key::{Owner, RunnerId};
use crate::store::{StoreFuture, StoreReach};
use crate::task::state::{Claimed, RowState};
use crate::task::{
    NewTask, TaskClaim, TaskCreated, TaskFence, TaskKey, TaskLimits, TaskMessage, TaskRow, TaskSent,
    TaskStore, TaskSummary, TaskUpdate,
};

/// The default limit of all bytes.
const BYTES: usize = 256 << 20;
/// The bytes that a row and a message take beside their content.
const ROW_COST: usize = 512;
const MESSAGE_COST: usize = 64;

/// A store of tasks in the memory of one process. The tasks end with the process.
///
/// It is bounded in bytes, beside the limits that each operation gets. A row whose time is over is removed by the next operation.
#[derive(Debug)]
pub struct MemoryTasks {
    table: Mutex<Table>,
    clock: StoreClock,
    max_bytes: usize,
}

#[derive(Debug, Default)]
struct Table {
    rows: HashMap<TaskKey, Row>,
    /// The moments from which tasks are due.
    due: BTreeSet<(Micros, TaskKey)>,
    /// The tasks of each owner.
    of_owner: BTreeSet<(Owner, TaskKey)>,
    /// The moments after which rows are gone.
    expiry: BTreeSet<(Micros, TaskKey)>,
    /// The numbers of tasks that are not final, in all and by owner.
    open: usize,
    open_of: HashMap<Owner, usize>,
    bytes: usize,
    latest: Micros,
}

#[derive(Debug)]
struct Row {
    state: RowState,
    owner: Owner,
    snapshot: Vec<u8>,
    messages: VecDeque<TaskMessage>,
}

impl Default for MemoryTasks {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryTasks {
    /// Returns an empty store with a clock that never goes back.
    #[must_use]
    pub fn new() -> Self {
        Self { table: Mutex::default(), clock: StoreClock::monotonic(), max_bytes: BYTES }
    }

    /// Sets the clock of the rows.
    #[must_use]
    pub fn clock(mut self, clock: StoreClock) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the maximum number of bytes of all rows and messages; 256 MiB by default. A snapshot that replaces another one is
    /// never refused.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Returns the number of bytes in use.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.run(|table, _| table.bytes)
    }

    /// Runs an operation on the rows that are not gone.
    fn run<T>(&self, operation: impl FnOnce(&mut Table, Micros) -> T) -> T {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.latest = table.latest.max(self.clock.now());
        let now = table.latest;
        while let Some((_, task)) = table.expiry.first().copied().filter(|(moment, _)| *moment <= now) {
            table.remove(task);
        }
        operation(&mut table, now)
    }

    fn create_now(&self, new: &NewTask, limits: &TaskLimits) -> Result<TaskCreated, StoreError> {
        check::new_task(new)?;
        self.run(|table, now| {
            if table.rows.contains_key(&new.task) {
                return Ok(TaskCreated::Existing);
            }
            if table.open >= limits.max_tasks() {
                return Err(check::full("create", "tasks", limits.max_tasks()));
            }
            if table.open_of.get(&new.owner).is_some_and(|open| *open >= limits.max_tasks_of_owner()) {
                return Err(check::full("create", "tasks of one owner", limits.max_tasks_of_owner()));
            }
            let row = Row {
                state: RowState::new(now, new.ttl),
                owner: new.owner,
                snapshot: new.snapshot.clone(),
                messages: VecDeque::new(),
            };
            if table.bytes + row.bytes() > self.max_bytes {
                return Err(check::full("create", "bytes", self.max_bytes));
            }
            table.insert(new.task, row);
            Ok(TaskCreated::First)
        })
    }

    fn send_now(&self, task: TaskKey, body: &[u8], limits: &TaskLimits) -> Result<TaskSent, StoreError> {
        check::value("send", body)?;
        self.run(|table, now| {
            let Some(row) = table.rows.get(&task) else { return Ok(TaskSent::NotFound) };
            if row.state.is_final() {
                return Ok(TaskSent::Final);
            }
            let queued: usize = row.messages.iter().map(|message| message.body.len()).sum();
            if row.messages.len() >= limits.max_messages() {
                return Err(check::full("send", "messages", limits.max_messages()));
            }
            if queued + body.len() > limits.max_message_bytes() {
                return Err(check::full("send", "bytes of messages", limits.max_message_bytes()));
            }
            if table.bytes + body.len() + MESSAGE_COST > self.max_bytes {
                return Err(check::full("send", "bytes", self.max_bytes));
            }
            table.change(task, |row| {
                let number = row.state.send(now);
                row.messages.push_back(TaskMessage { number, body: body.to_vec() });
            });
            Ok(TaskSent::Queued)
        })
    }

    fn claim_now(&self, task: TaskKey, runner: RunnerId, lease: Duration) -> Result<TaskClaim, StoreError> {
        check::lease("claim", lease)?;
        Ok(self.run(|table, now| {
            let claimed = table.change(task, |row| {
                let claimed = row.state.claim(runner, lease, now);
                let row = matches!(claimed, Claimed::Fresh(_)).then(|| row.to_row(now));
                (claimed, row)
            });
            match claimed {
                None => TaskClaim::NotFound,
                Some((Claimed::Fresh(number), Some(row))) => {
                    TaskClaim::Fresh(TaskFence::new(task, number), row)
                }
                Some((Claimed::Held(retry_after), _)) => TaskClaim::Held { retry_after },
                Some((Claimed::Final | Claimed::Fresh(_), _)) => TaskClaim::Final,
            }
        }))
    }

    fn renew_now(&self, fence: &TaskFence, lease: Duration) -> Result<(), StoreError> {
        check::lease("renew", lease)?;
        let renewed = self
            .run(|table, now| table.change(fence.task(), |row| row.state.renew(fence.number(), lease, now)));
        if renewed.is_some_and(|renewed| renewed.is_ok()) {
            Ok(())
        } else {
            Err(StoreError::fence_lost("renew"))
        }
    }

    fn update_now(&self, fence: &TaskFence, update: &TaskUpdate) -> Result<(), StoreError> {
        check::task_update(update)?;
        let updated = self.run(|table, now| {
            table.change(fence.task(), |row| {
                let has_messages = row.messages.iter().any(|message| message.number > update.taken);
                row.state.update(fence.number(), update, has_messages, now)?;
                row.messages.retain(|message| message.number > update.taken && !row.state.is_final());
                row.snapshot.clone_from(&update.snapshot);
                Ok::<(), crate::task::state::Lost>(())
            })
        });
        if updated.is_some_and(|updated| updated.is_ok()) {
            Ok(())
        } else {
            Err(StoreError::fence_lost("update"))
        }
    }

    fn due_now(&self, limit: usize) -> Vec<TaskKey> {
        self.run(|table, now| {
            let due = table.due.iter().take_while(|(moment, _)| *moment <= now);
            due.take(limit).map(|(_, task)| *task).collect()
        })
    }

    fn list_of_owner_now(&self, owner: Owner, after: Option<TaskKey>, limit: usize) -> Vec<TaskKey> {
        let first = after.map_or(Bound::Included((owner, TaskKey::from_bytes([0; 16]))), |after| {
            Bound::Excluded((owner, after))
        });
        self.run(|table, _| {
            let tasks = table.of_owner.range((first, Bound::Unbounded));
            tasks.take_while(|(other, _)| *other == owner).take(limit).map(|(_, task)| *task).collect()
        })
    }

    fn list_now(&self, limit: usize) -> Vec<TaskSummary> {
        self.run(|table, now| {
            let mut rows: Vec<_> = table.rows.iter().collect();
            rows.sort_unstable_by_key(|(task, row)| (row.state.created, **task));
            rows.into_iter().take(limit).map(|(task, row)| row.to_summary(*task, now)).collect()
        })
    }
}

impl Row {
    fn bytes(&self) -> usize {
        let messages = self.messages.iter().map(|message| message.body.len() + MESSAGE_COST);
        ROW_COST + self.snapshot.len() + messages.sum::<usize>()
    }

    fn to_row(&self, now: Micros) -> TaskRow {
        TaskRow {
            snapshot: self.snapshot.clone(),
            messages: self.messages.iter().cloned().collect(),
            version: self.state.version,
            is_final: self.state.is_final(),
            is_held: self.state.is_held(now),
        }
    }

    fn to_summary(&self, task: TaskKey, now: Micros) -> TaskSummary {
        TaskSummary {
            age: now.since(self.state.created),
            unchanged_for: now.since(self.state.changed),
            rest: self.state.expires.map(|expires| expires.since(now)),
            messages: self.messages.len(),
            received: self.state.numbered,
            snapshot_bytes: self.snapshot.len(),
            claims: self.state.claims(),
            ..TaskSummary::new(task, self.state.state(now))
        }
    }
}

impl Table {
    fn insert(&mut self, task: TaskKey, row: Row) {
        self.bytes += row.bytes();
        if !row.state.is_final() {
            self.open += 1;
            *self.open_of.entry(row.owner).or_default() += 1;
        }
        self.of_owner.insert((row.owner, task));
        self.due.extend(row.state.due_at().map(|moment| (moment, task)));
        self.expiry.extend(row.state.expires.map(|moment| (moment, task)));
        self.rows.insert(task, row);
    }

    fn remove(&mut self, task: TaskKey) -> Option<Row> {
        let row = self.rows.remove(&task)?;
        self.bytes -= row.bytes();
        if !row.state.is_final() {
            self.open -= 1;
            if let Some(open) = self.open_of.get_mut(&row.owner) {
                *open -= 1;
                if *open == 0 {
                    self.open_of.remove(&row.owner);
                }
            }
        }
        self.of_owner.remove(&(row.owner, task));
        if let Some(moment) = row.state.due_at() {
            self.due.remove(&(moment, task));
        }
        if let Some(moment) = row.state.expires {
            self.expiry.remove(&(moment, task));
        }
        Some(row)
    }

    /// Changes a row, and its places in the indexes.
    fn change<T>(&mut self, task: TaskKey, change: impl FnOnce(&mut Row) -> T) -> Option<T> {
        let mut row = self.remove(task)?;
        let changed = change(&mut row);
        self.insert(task, row);
        Some(changed)
    }
}

impl TaskStore for MemoryTasks {
    fn create<'a>(&'a self, task: &'a NewTask, limits: &'a TaskLimits) -> StoreFuture<'a, TaskCreated> {
        Box::pin(ready(self.create_now(task, limits)))
    }

    fn load(&self, task: TaskKey) -> StoreFuture<'_, Option<TaskRow>> {
        let row = self.run(|table, now| table.rows.get(&task).map(|row| row.to_row(now)));
        Box::pin(ready(Ok(row)))
    }

    fn send<'a>(
        &'a self,
        task: TaskKey,
        message: &'a [u8],
        limits: &'a TaskLimits,
    ) -> StoreFuture<'a, TaskSent> {
        Box::pin(ready(self.send_now(task, message, limits)))
    }

    fn claim(&self, task: TaskKey, runner: RunnerId, lease: Duration) -> StoreFuture<'_, TaskClaim> {
        Box::pin(ready(self.claim_now(task, runner, lease)))
    }

    fn renew<'a>(&'a self, fence: &'a TaskFence, lease: Duration) -> StoreFuture<'a, ()> {
        Box::pin(ready(self.renew_now(fence, lease)))
    }

    fn update<'a>(&'a self, fence: &'a TaskFence, update: &'a TaskUpdate) -> StoreFuture<'a, ()> {
        Box::pin(ready(self.update_now(fence, update)))
    }

    fn due(&self, limit: usize) -> StoreFuture<'_, Vec<TaskKey>> {
        Box::pin(ready(Ok(self.due_now(limit))))
    }

    fn list(&self, limit: usize) -> StoreFuture<'_, Vec<TaskSummary>> {
        Box::pin(ready(Ok(self.list_now(limit))))
    }

    fn list_of_owner(
        &self,
        owner: Owner,
        after: Option<TaskKey>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<TaskKey>> {
        Box::pin(ready(Ok(self.list_of_owner_now(owner, after, limit))))
    }

    /// Returns 0: each operation removes the rows whose time is over.
    fn sweep(&self, _limit: usize) -> StoreFuture<'_, usize> {
        self.run(|_, _| ());
        Box::pin(ready(Ok(0)))
    }

    fn reach(&self) -> StoreReach {
        StoreReach::Process
    }
}
