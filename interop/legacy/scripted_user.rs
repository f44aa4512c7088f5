//! The state of the scripted user at a client: the case under test, the questions received and the notifications
//! received. The including program has a module `table` with a `Case`, and implements the answers itself.

use crate::table::Case;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// A user whose answers come from a table. Clones share one state.
#[derive(Clone, Default)]
pub(crate) struct ScriptedUser {
    state: Arc<Mutex<UserState>>,
    changed: Arc<Notify>,
}

#[derive(Default)]
pub(crate) struct UserState {
    pub(crate) case: Case,
    pub(crate) asked: Vec<String>,
    pub(crate) progress: usize,
    pub(crate) logs: usize,
    pub(crate) completed: Vec<String>,
}

impl ScriptedUser {
    pub(crate) fn begin_case(&self, case: &Case) {
        *self.state() = UserState { case: case.clone(), ..UserState::default() };
    }

    /// Waits for the notifications that the case expects. They can arrive before the result or after it.
    ///
    /// # Errors
    ///
    /// The ids of the finished elicitations, if they differ from those of the case.
    pub(crate) async fn wait_for_notifications(&self) -> Result<(), String> {
        loop {
            let change = self.changed.notified();
            {
                let state = self.state();
                let case = &state.case;
                let all_reports = state.progress >= case.progress && state.logs >= case.logs;
                if all_reports && state.completed.len() >= case.completed.len() {
                    let same = state.completed == case.completed;
                    return if same { Ok(()) } else { Err(format!("completed {:?}", state.completed)) };
                }
            }
            change.await;
        }
    }

    pub(crate) fn update(&self, change: impl FnOnce(&mut UserState)) {
        change(&mut self.state());
        self.changed.notify_one();
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, UserState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
