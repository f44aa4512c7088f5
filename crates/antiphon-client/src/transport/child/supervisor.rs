//! The owner of a child: waits for its end, and ends it.

use crate::transport::stdio::Task;
use antiphon_wire::escaped;
use std::{io, process::ExitStatus, time::Duration};
use tokio::{process::Child, sync::watch};

/// The owner of a child. Dropping it kills the child.
pub(crate) struct ChildSupervisor {
    id: Option<u32>,
    orders: watch::Sender<Order>,
    end: watch::Receiver<Option<String>>,
    _task: Task,
}

#[derive(Clone, Copy)]
enum Order {
    Wait,
    Terminate,
    Kill,
}

impl ChildSupervisor {
    pub(crate) fn new(child: Child) -> Self {
        let id = child.id();
        let (orders, to_obey) = watch::channel(Order::Wait);
        let (to_tell, end) = watch::channel(None);
        let task = Task::spawn(async move {
            let status = guard(child, to_obey).await;
            to_tell.send_replace(Some(match status {
                Ok(status) => status.to_string(),
                Err(fault) => format!("its exit status cannot be read: {fault}"),
            }));
        });
        Self { id, orders, end, _task: task }
    }

    /// `None` once the child has exited.
    pub(crate) fn id(&self) -> Option<u32> {
        self.id.filter(|_| self.end.borrow().is_none())
    }

    /// The exit status of the child, if it exits in time.
    pub(crate) async fn exited_within(&self, limit: Duration) -> Option<String> {
        let mut end = self.end.clone();
        let end = tokio::time::timeout(limit, end.wait_for(Option::is_some)).await;
        end.ok()?.ok()?.clone()
    }

    /// Waits for the child to exit, then terminates it, then kills it, with `grace` between the steps.
    pub(crate) async fn stop(&self, grace: Duration) {
        // > On POSIX systems, forced termination typically escalates from `SIGTERM` to `SIGKILL`.
        for order in [Order::Terminate, Order::Kill] {
            if self.exited_within(grace).await.is_some() {
                return;
            }
            self.orders.send_replace(order);
        }
        let mut end = self.end.clone();
        let _ = end.wait_for(Option::is_some).await;
    }
}

async fn guard(mut child: Child, mut orders: watch::Receiver<Order>) -> io::Result<ExitStatus> {
    loop {
        tokio::select! {
            status = child.wait() => return status,
            Ok(()) = orders.changed() => {}
        }
        let order = *orders.borrow_and_update();
        let obeyed = match order {
            Order::Wait => Ok(()),
            Order::Terminate => terminate(&mut child),
            Order::Kill => child.start_kill(),
        };
        if let Err(fault) = obeyed {
            tracing::warn!(fault = %escaped(&fault), "the server process cannot be stopped");
        }
    }
}

#[cfg(unix)]
fn terminate(child: &mut Child) -> io::Result<()> {
    use nix::{sys::signal, unistd::Pid};
    // Until the child is waited for, its id cannot belong to another process.
    let Some(id) = child.id().and_then(|id| i32::try_from(id).ok()) else { return Ok(()) };
    signal::kill(Pid::from_raw(id), signal::Signal::SIGTERM).map_err(io::Error::from)
}

#[cfg(not(unix))]
fn terminate(child: &mut Child) -> io::Result<()> {
    child.start_kill()
}

impl std::fmt::Debug for ChildSupervisor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChildSupervisor").field("id", &self.id()).finish_non_exhaustive()
    }
}
