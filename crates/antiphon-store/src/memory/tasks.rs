//! The store of tasks in the memory of one process.

use crate::{
    check,
    claim::{Owner, RunnerId},
    clock::{Micros, StoreClock},
    error::StoreError,
    store::{StoreFuture, StoreReach},
    task::{
        NewTask, TaskClaim, TaskCreated, TaskFence, TaskKey, TaskLimits, TaskMessage, TaskRow, TaskSent,
        TaskStore, TaskSummary, TaskUpdate,
        state::{Claimed, RowState},
    },
};
use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    future::ready,
    ops::Bound,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// The default limit of the bytes of one owner.
const BYTES_OF_OWNER: usize = 16 << 20;
/// The bytes that a row and a message take beside their content.
const ROW_COST: usize = 512;
const MESSAGE_COST: usize = 64;
/// The most bytes of a message that is the only one of its task, and is never refused.
const SMALL_MESSAGE: usize = 1024;

/// A store of tasks in the memory of one process. The tasks end with the process.
///
/// It is bounded in bytes, in all and for each owner, beside the limits that each operation gets. All anonymous callers are one owner,
/// so they leave the rest to the others. A row whose time is over is removed by the next operation.
#[derive(Debug)]
pub struct MemoryTasks {
    table: Mutex<Table>,
    clock: StoreClock,
    max_bytes: usize,
    max_bytes_of_owner: usize,
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
    all: Usage,
    of: HashMap<Owner, Usage>,
    latest: Micros,
}

/// The number of tasks that are not final, and the bytes of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Usage {
    open: usize,
    bytes: usize,
}

#[derive(Debug)]
struct Row {
    state: RowState,
    owner: Owner,
    snapshot: Arc<[u8]>,
    messages: VecDeque<TaskMessage>,
}

impl Default for MemoryTasks {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryTasks {
    /// The default of [`max_bytes`](Self::max_bytes): 64 MiB.
    pub const DEFAULT_MAX_BYTES: usize = 64 << 20;

    /// Returns an empty store with a clock that never goes back.
    #[must_use]
    pub fn new() -> Self {
        Self {
            table: Mutex::default(),
            clock: StoreClock::monotonic(),
            max_bytes: Self::DEFAULT_MAX_BYTES,
            max_bytes_of_owner: BYTES_OF_OWNER,
        }
    }

    /// Sets the clock of the rows.
    #[must_use]
    pub fn clock(mut self, clock: StoreClock) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the maximum number of bytes of all rows and messages; 64 MiB by default. A snapshot that replaces another one is
    /// never refused, nor a message of up to 1 KiB to a task that has no other.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Sets the maximum number of bytes of the rows and messages of one owner; 16 MiB by default. A server on a pair of streams has
    /// one owner, so it may set the limit of all. A snapshot that replaces another one is never refused.
    #[must_use]
    pub fn max_bytes_of_owner(mut self, bytes: usize) -> Self {
        self.max_bytes_of_owner = bytes;
        self
    }

    /// Returns the number of bytes in use.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.run(|table, _| table.all.bytes)
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
            if table.all.open >= limits.max_tasks() {
                return Err(check::full("create", "tasks", limits.max_tasks()));
            }
            if table.usage_of(new.owner).open >= limits.max_tasks_of_owner() {
                return Err(check::full("create", "tasks of one owner", limits.max_tasks_of_owner()));
            }
            let row = Row {
                state: RowState::new(now, new.ttl),
                owner: new.owner,
                snapshot: Arc::from(&*new.snapshot),
                messages: VecDeque::new(),
            };
            self.check_room("create", table, new.owner, row.bytes())?;
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
            // A full store takes a cancellation, which makes room.
            if !row.messages.is_empty() || body.len() > SMALL_MESSAGE {
                self.check_room("send", table, row.owner, body.len() + MESSAGE_COST)?;
            }
            table.change(task, |row| {
                let number = row.state.send(now);
                row.messages.push_back(TaskMessage { number, body: body.to_vec() });
            });
            Ok(TaskSent::Queued)
        })
    }

    /// Refuses what does not fit.
    fn check_room(
        &self,
        operation: &'static str,
        table: &Table,
        owner: Owner,
        more: usize,
    ) -> Result<(), StoreError> {
        if table.usage_of(owner).bytes + more > self.max_bytes_of_owner {
            return Err(check::full(operation, "bytes of one owner", self.max_bytes_of_owner));
        }
        if table.all.bytes + more > self.max_bytes {
            return Err(check::full(operation, "bytes", self.max_bytes));
        }
        Ok(())
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
                row.snapshot = Arc::from(&*update.snapshot);
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
            snapshot: Arc::clone(&self.snapshot),
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
    fn usage_of(&self, owner: Owner) -> Usage {
        self.of.get(&owner).copied().unwrap_or_default()
    }

    fn insert(&mut self, task: TaskKey, row: Row) {
        let (open, bytes) = (usize::from(!row.state.is_final()), row.bytes());
        for usage in [&mut self.all, self.of.entry(row.owner).or_default()] {
            usage.open += open;
            usage.bytes += bytes;
        }
        self.of_owner.insert((row.owner, task));
        self.due.extend(row.state.due_at().map(|moment| (moment, task)));
        self.expiry.extend(row.state.expires.map(|moment| (moment, task)));
        self.rows.insert(task, row);
    }

    fn remove(&mut self, task: TaskKey) -> Option<Row> {
        let row = self.rows.remove(&task)?;
        let (open, bytes) = (usize::from(!row.state.is_final()), row.bytes());
        self.all.open -= open;
        self.all.bytes -= bytes;
        if let Some(usage) = self.of.get_mut(&row.owner) {
            usage.open -= open;
            usage.bytes -= bytes;
            if *usage == Usage::default() {
                self.of.remove(&row.owner);
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
