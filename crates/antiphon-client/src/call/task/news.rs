//! The changes of a task that the server reports by itself.

use crate::{
    asks::questions::Origin,
    call::task_form::TaskForm,
    session::{
        connection::Connection,
        legacy::Session,
        listeners::Listener,
        task_stream::watch_task,
        task_watch::{TaskNews, TaskWatch},
    },
    transport::IncomingNotification,
};
use antiphon_wire::{LegacyTask, method};
use std::{
    future::pending,
    sync::{Arc, Weak},
};
use tokio::sync::Notify;

/// The source of the changes of one task.
pub(crate) enum NewsSource {
    /// The task is polled only.
    None,
    /// The subscription of the client.
    Subscription(TaskWatch),
    /// The notifications of a session.
    Session(Arc<StatusListener>),
}

impl NewsSource {
    /// Subscribes to the changes of the task, as far as the client does that and the server is known.
    ///
    /// `call`: the call that the questions of the task belong to.
    pub(crate) fn new(
        connection: &Arc<Connection>,
        task_id: &str,
        form: TaskForm,
        call: &Arc<Origin>,
    ) -> Self {
        if let Some(session) = connection.current_session() {
            session.add_task_call(task_id, call);
            return Self::Session(StatusListener::new(&session, task_id));
        }
        if !connection.core.task_notifications || !connection.is_modern() || form == TaskForm::Draft {
            return Self::None;
        }
        watch_task(connection, task_id).map_or(Self::None, Self::Subscription)
    }

    /// Waits for the next change. Without a source, it waits without end.
    pub(crate) async fn next(&mut self) -> TaskNews {
        match self {
            Self::None => pending().await,
            Self::Subscription(watch) => watch.next().await,
            Self::Session(listener) => {
                listener.changed.notified().await;
                TaskNews::Changed
            }
        }
    }
}

/// Receives `notifications/tasks/status` of one task.
///
/// > Requestors **MUST NOT** rely on receiving this notification, as it is optional.
pub(crate) struct StatusListener {
    task_id: String,
    changed: Notify,
}

impl StatusListener {
    fn new(session: &Session, task_id: &str) -> Arc<Self> {
        let listener = Arc::new(Self { task_id: task_id.to_owned(), changed: Notify::new() });
        session.listen(Arc::downgrade(&listener) as Weak<dyn Listener>);
        listener
    }
}

impl Listener for StatusListener {
    fn on_change(&self, notification: &IncomingNotification) {
        if notification.method != method::TASKS_STATUS {
            return;
        }
        let params = notification.params.as_deref().map_or("{}", |params| params.get());
        if let Ok(LegacyTask { task, .. }) = serde_json::from_str(params)
            && task.task_id == self.task_id
        {
            self.changed.notify_one();
        }
    }
}
