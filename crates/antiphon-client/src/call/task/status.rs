//! The status messages of a task, as progress of its call.

use crate::{
    call::{definition::CallOptions, task_handle::TaskHandle},
    request::{
        core::Core,
        events::{EventContext, ProgressEvent},
    },
};
use antiphon_wire::method;
use std::sync::Arc;

/// The status messages so far.
#[derive(Default)]
pub(crate) struct StatusEvents {
    last: Option<String>,
    count: u32,
}

impl StatusEvents {
    /// Passes a new status message to the callback for progress.
    pub(crate) fn report(
        &mut self,
        core: &Core,
        options: &CallOptions,
        task: &TaskHandle,
        message: Option<String>,
    ) {
        let Some(on_progress) = options.on_progress.as_ref().or(core.observers.progress.as_ref()) else {
            return;
        };
        let Some((progress, message)) = self.next(message) else { return };
        on_progress.call(ProgressEvent {
            context: Arc::new(EventContext {
                server: core.identity(),
                method: method::TASKS_GET,
                name: task.tool().map(str::to_owned),
                round: task.round(),
                leg: progress,
            }),
            progress: f64::from(progress),
            total: None,
            message: Some(message),
        });
    }

    /// Returns the number of a message, from 1, and the message, if it differs from the one before.
    fn next(&mut self, message: Option<String>) -> Option<(u32, String)> {
        let message = message?;
        if self.last.as_ref() == Some(&message) {
            return None;
        }
        self.last = Some(message.clone());
        self.count = self.count.saturating_add(1);
        Some((self.count, message))
    }
}
