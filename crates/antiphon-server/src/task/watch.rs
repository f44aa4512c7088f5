//! The tasks that a subscription watches.

use super::{id, requests::load, view};
use crate::{refusal::Refusal, runtime::Runtime, task_registry::Tasks};
use antiphon_seal::Principal;
use antiphon_store::{StoreReach, TaskKey};
use antiphon_wire::DetailedTask;
use std::{sync::Arc, time::Duration};
use tokio::sync::broadcast::{self, error::RecvError};

/// The time between two looks at tasks that other processes may change.
const LOOK: Duration = Duration::from_secs(1);

/// The changes of tasks, for a request that waits for one of them.
pub(super) struct Changes {
    changes: broadcast::Receiver<TaskKey>,
    is_local: bool,
}

impl Changes {
    /// Returns the changes from now on.
    pub(super) fn of(tasks: &Tasks) -> Self {
        Self { changes: tasks.changes(), is_local: tasks.store.reach() == StoreReach::Process }
    }

    /// Waits for the next task that has changed in this process. Changes may be missed.
    pub(super) async fn next(&mut self) -> TaskKey {
        loop {
            match self.changes.recv().await {
                Ok(key) => return key,
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return std::future::pending().await,
            }
        }
    }

    /// Waits until this task may have changed.
    pub(super) async fn of_task(&mut self, task: TaskKey) {
        loop {
            let is_local = self.is_local;
            let look = async move {
                if is_local { std::future::pending().await } else { tokio::time::sleep(LOOK).await }
            };
            tokio::select! {
                changed = self.changes.recv() => match changed {
                    Ok(key) if key != task => {}
                    Ok(_) | Err(RecvError::Lagged(_)) => return,
                    Err(RecvError::Closed) => std::future::pending().await,
                },
                () = look => return,
            }
        }
    }
}

/// The tasks that a subscription watches.
pub(crate) struct TaskWatch {
    server: Arc<Runtime>,
    principal: Option<Principal>,
    watched: Vec<Watched>,
    changes: broadcast::Receiver<TaskKey>,
}

struct Watched {
    key: TaskKey,
    /// The state that was sent last, as JSON.
    sent: String,
    /// True if the task may have changed since.
    is_due: bool,
}

impl TaskWatch {
    /// Returns the watch of those of the tasks that the caller has, and their ids.
    pub(crate) async fn open(
        server: &Arc<Runtime>,
        ids: &[String],
        principal: Option<Principal>,
    ) -> Result<Option<(Self, Vec<String>)>, Refusal> {
        let Some(tasks) = &server.tasks else { return Ok(None) };
        // Before the first look, so that no change is missed.
        let changes = tasks.changes();
        let (mut watched, mut known) = (Vec::new(), Vec::new());
        for text in ids {
            let Some(key) = id::parse(text) else { continue };
            if known.contains(text) || load(server, tasks, key, principal.as_ref()).await?.is_none() {
                continue;
            }
            watched.push(Watched { key, sent: String::new(), is_due: true });
            known.push(text.clone());
        }
        Ok(Some((Self { server: Arc::clone(server), principal, watched, changes }, known)))
    }

    /// Returns the number of the next task that has changed, and its state. The state at the beginning is the first change.
    pub(crate) async fn next(&mut self) -> (u32, DetailedTask) {
        let server = Arc::clone(&self.server);
        let Some(tasks) = &server.tasks else { return std::future::pending().await };
        loop {
            if let Some(changed) = self.changed(&server, tasks).await {
                return changed;
            }
            self.wait(tasks).await;
        }
    }

    async fn changed(&mut self, server: &Arc<Runtime>, tasks: &Tasks) -> Option<(u32, DetailedTask)> {
        for (number, watched) in (0..).zip(&mut self.watched) {
            if !watched.is_due {
                continue;
            }
            // Cleared after the look only: this future may be dropped meanwhile.
            let loaded = load(server, tasks, watched.key, self.principal.as_ref()).await;
            watched.is_due = false;
            let Ok(Some((row, snapshot))) = loaded else { continue };
            let task = view::detailed(server, watched.key, &row, snapshot);
            let text = serde_json::to_string(&task).unwrap_or_default();
            if text != watched.sent {
                watched.sent = text;
                return Some((number, task));
            }
        }
        None
    }

    async fn wait(&mut self, tasks: &Tasks) {
        let is_local = tasks.store.reach() == StoreReach::Process;
        loop {
            let look = async {
                if is_local { std::future::pending().await } else { tokio::time::sleep(LOOK).await }
            };
            tokio::select! {
                changed = self.changes.recv() => match changed {
                    Ok(key) => {
                        let Some(watched) = self.watched.iter_mut().find(|watched| watched.key == key) else {
                            continue;
                        };
                        watched.is_due = true;
                    }
                    Err(RecvError::Lagged(_)) => self.look_at_all(),
                    Err(RecvError::Closed) => std::future::pending().await,
                },
                () = look => self.look_at_all(),
            }
            return;
        }
    }

    fn look_at_all(&mut self) {
        self.watched.iter_mut().for_each(|watched| watched.is_due = true);
    }
}
