//! The tasks of a client that wait for changes, and the changes that its server reports.
//!
//! All waiting tasks of a client share one subscription (`session/task_stream`).

use antiphon_wire::DetailedTask;
use antiphon_wire::lock::Lock;
use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, MutexGuard},
};
use tokio::{sync::Notify, task::JoinHandle};

/// The maximum number of tasks in one subscription. Further ones are polled.
const MAX_TASKS: usize = 64;

/// The waiting tasks of a client. Clones are the same value.
#[derive(Clone, Default)]
pub(crate) struct TaskWatches(Arc<Watches>);

#[derive(Default)]
struct Watches {
    table: Lock<Table>,
    /// Notified when a task begins to wait.
    added: Notify,
}

#[derive(Default)]
struct Table {
    next: u64,
    watches: HashMap<u64, Slot>,
    /// The task of tokio that keeps the subscription open, as long as any task waits.
    stream: Option<JoinHandle<()>>,
    /// The tasks that the server does not report.
    declined: BTreeSet<Arc<str>>,
    /// `true` once the server has shown that it reports no tasks.
    is_refused: bool,
}

/// One waiter.
struct Slot {
    task_id: Arc<str>,
    /// `true` while the server reports the changes of this task.
    is_reported: bool,
    reported_changed: bool,
    latest: Option<Box<DetailedTask>>,
    wake: Arc<Notify>,
}

/// A change that concerns a waiter.
#[derive(Debug)]
pub(crate) enum TaskNews {
    /// The present state of the task.
    State(Box<DetailedTask>),
    /// The server reports the changes of the task from now on (`true`), or does not (`false`).
    Reported(bool),
    /// The task has changed. The message does not have all of its state.
    Changed,
}

/// One waiter for the changes of a task. Dropping the last one of a client closes the subscription.
pub(crate) struct TaskWatch {
    of: TaskWatches,
    number: u64,
    wake: Arc<Notify>,
}

impl TaskWatches {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.table.lock()
    }

    /// Adds a waiter. `spawn` starts the task of tokio that keeps the subscription, if there is none. Returns `None` if the
    /// server reports no tasks.
    pub(crate) fn add(
        &self,
        task_id: &str,
        spawn: impl FnOnce(Self) -> Option<JoinHandle<()>>,
    ) -> Option<TaskWatch> {
        let mut table = self.table();
        if table.is_refused {
            return None;
        }
        let (number, wake) = (table.next, Arc::<Notify>::default());
        table.next += 1;
        let task_id: Arc<str> = Arc::from(task_id);
        let of_others = table.watches.values().any(|slot| slot.task_id == task_id && slot.is_reported);
        let slot = Slot {
            task_id,
            is_reported: of_others,
            reported_changed: of_others,
            latest: None,
            wake: Arc::clone(&wake),
        };
        table.watches.insert(number, slot);
        if table.stream.as_ref().is_none_or(JoinHandle::is_finished) {
            table.stream = spawn(self.clone());
        }
        drop(table);
        self.0.added.notify_one();
        Some(TaskWatch { of: self.clone(), number, wake })
    }

    /// Waits until a task begins to wait.
    pub(crate) async fn added(&self) {
        self.0.added.notified().await;
    }

    /// The tasks that a subscription should name.
    pub(crate) fn wanted(&self) -> BTreeSet<Arc<str>> {
        let table = self.table();
        let ids = table.watches.values().map(|slot| &slot.task_id);
        let ids: BTreeSet<Arc<str>> = ids.filter(|id| !table.declined.contains(*id)).cloned().collect();
        ids.into_iter().take(MAX_TASKS).collect()
    }

    /// The server has acknowledged a subscription: from now on it reports `agreed`, of the tasks that were asked for.
    pub(crate) fn acknowledged(&self, asked: &BTreeSet<Arc<str>>, agreed: &[String]) {
        let mut table = self.table();
        for id in asked {
            let is_agreed = agreed.iter().any(|agreed| **agreed == **id);
            if !is_agreed {
                table.declined.insert(Arc::clone(id));
            }
            table.set_reported(id, is_agreed);
        }
    }

    /// The server refused a subscription to these tasks.
    pub(crate) fn declined(&self, asked: BTreeSet<Arc<str>>) {
        self.table().declined.extend(asked);
    }

    /// The server has shown that it reports no tasks.
    pub(crate) fn refused(&self) {
        self.table().is_refused = true;
    }

    /// A subscription has ended: its tasks are not reported any more, except those of another one.
    pub(crate) fn ended(&self, asked: &BTreeSet<Arc<str>>, still: Option<&BTreeSet<Arc<str>>>) {
        let mut table = self.table();
        for id in asked.iter().filter(|id| still.is_none_or(|still| !still.contains(*id))) {
            table.set_reported(id, false);
        }
    }

    /// Passes the state of a task to its waiters, in the place of an earlier one. Returns `false` if there is none.
    pub(crate) fn changed(&self, task: &DetailedTask) -> bool {
        let mut table = self.table();
        let mut any = false;
        for slot in table.watches.values_mut().filter(|slot| *slot.task_id == *task.task.task_id) {
            any = true;
            slot.latest = Some(Box::new(task.clone()));
            slot.wake.notify_one();
        }
        any
    }
}

impl Table {
    fn set_reported(&mut self, id: &Arc<str>, is_reported: bool) {
        for slot in self.watches.values_mut().filter(|slot| slot.task_id == *id) {
            if slot.is_reported != is_reported {
                (slot.is_reported, slot.reported_changed) = (is_reported, true);
                slot.wake.notify_one();
            }
        }
    }
}

impl TaskWatch {
    /// Waits for the next change. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> TaskNews {
        loop {
            if let Some(news) = self.take() {
                return news;
            }
            self.wake.notified().await;
        }
    }

    fn take(&self) -> Option<TaskNews> {
        let mut table = self.of.table();
        let slot = table.watches.get_mut(&self.number)?;
        if std::mem::replace(&mut slot.reported_changed, false) {
            return Some(TaskNews::Reported(slot.is_reported));
        }
        slot.latest.take().map(TaskNews::State)
    }
}

impl Drop for TaskWatch {
    fn drop(&mut self) {
        let mut table = self.of.table();
        let Some(slot) = table.watches.remove(&self.number) else { return };
        if !table.watches.values().any(|other| other.task_id == slot.task_id) {
            table.declined.remove(&slot.task_id);
        }
        if table.watches.is_empty()
            && let Some(stream) = table.stream.take()
        {
            stream.abort();
        }
    }
}
