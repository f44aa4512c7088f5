//! The owner of a child: waits for its end, and ends it with the processes that it started.

use crate::transport::stdio::Task;
use antiphon_wire::escaped;
pub(crate) use group::Group;
use std::time::Duration;
use tokio::{process::Child, sync::watch};

/// The pause between two looks at the processes that a child has left behind. Nothing reports their end.
const PAUSE: Duration = Duration::from_millis(20);
/// The number of looks after the processes were killed. One that nobody waits for stays in its group, although it is dead.
const LAST_LOOKS: u32 = 10;

/// The owner of a child and its process group. Dropping it kills all of them.
pub(crate) struct ChildSupervisor {
    id: Option<u32>,
    orders: watch::Sender<Order>,
    end: watch::Receiver<Ended>,
    _task: Task,
}

#[derive(Clone, Copy)]
enum Order {
    /// The client works: what a child leaves behind may still answer requests under way.
    Work,
    /// The client closes.
    Wait,
    Terminate,
    Kill,
}

/// The state of the processes.
#[derive(Clone, Default)]
struct Ended {
    /// The exit status of the child, once it has exited.
    child: Option<String>,
    /// `true` if no process of the group is left.
    group: bool,
}

impl ChildSupervisor {
    pub(crate) fn new(child: Child) -> Self {
        let id = child.id();
        let group = Group::of(&child);
        let (orders, to_obey) = watch::channel(Order::Work);
        let (to_tell, end) = watch::channel(Ended::default());
        let task = Task::spawn(guard(child, group, to_obey, to_tell));
        Self { id, orders, end, _task: task }
    }

    /// `None` once the child has exited.
    pub(crate) fn id(&self) -> Option<u32> {
        self.id.filter(|_| self.end.borrow().child.is_none())
    }

    /// The exit status of the child, if it exits in time.
    pub(crate) async fn exited_within(&self, limit: Duration) -> Option<String> {
        let mut end = self.end.clone();
        let end = tokio::time::timeout(limit, end.wait_for(|ended| ended.child.is_some())).await;
        end.ok()?.ok()?.child.clone()
    }

    /// Waits for all processes to exit, then terminates them, then kills them, with `grace` between the steps.
    pub(crate) async fn stop(&self, grace: Duration) {
        self.orders.send_replace(Order::Wait);
        // > On POSIX systems, forced termination typically escalates from `SIGTERM` to `SIGKILL`.
        for order in [Order::Terminate, Order::Kill] {
            if tokio::time::timeout(grace, self.are_gone()).await.is_ok() {
                return;
            }
            self.orders.send_replace(order);
        }
        self.are_gone().await;
    }

    async fn are_gone(&self) {
        let mut end = self.end.clone();
        let _ = end.wait_for(|ended| ended.group).await;
    }
}

/// Obeys the orders until no process of the group is left. If it is dropped before that, all of them are killed.
async fn guard(
    mut child: Child,
    mut group: Group,
    mut orders: watch::Receiver<Order>,
    ended: watch::Sender<Ended>,
) {
    let mut order = Order::Work;
    let status = loop {
        tokio::select! {
            status = child.wait() => break status,
            Ok(()) = orders.changed() => {
                order = *orders.borrow_and_update();
                obey(order, &group, &mut child);
            }
        }
    };
    let status = match status {
        Ok(status) => status.to_string(),
        Err(fault) => format!("its exit status cannot be read: {fault}"),
    };
    group.look();
    ended.send_replace(Ended { child: Some(status), group: group.is_gone() });
    let mut looks = 0;
    while !group.is_gone() && looks < LAST_LOOKS {
        tokio::select! {
            Ok(()) = orders.changed() => {
                order = *orders.borrow_and_update();
                obey(order, &group, &mut child);
            }
            () = tokio::time::sleep(PAUSE), if !matches!(order, Order::Work) => {
                looks += u32::from(matches!(order, Order::Kill));
            }
        }
        group.look();
    }
    ended.send_modify(|ended| ended.group = true);
}

fn obey(order: Order, group: &Group, child: &mut Child) {
    let obeyed = match order {
        Order::Work | Order::Wait => Ok(()),
        Order::Terminate => group.terminate(child),
        Order::Kill => group.kill(child),
    };
    if let Err(fault) = obeyed {
        tracing::warn!(fault = %escaped(&fault), "the server process cannot be stopped");
    }
}

impl std::fmt::Debug for ChildSupervisor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChildSupervisor").field("id", &self.id()).finish_non_exhaustive()
    }
}

#[cfg(unix)]
mod group {
    //! The process group of a child, on Unix: the child, and the processes that it started.

    use nix::{
        errno::Errno,
        sys::signal::{Signal, killpg},
        unistd::Pid,
    };
    use std::io;
    use tokio::process::{Child, Command};

    /// The process group of a child. Dropping it kills what is left of the group.
    pub(crate) struct Group {
        /// The id of the group; `None` once no process is in it. The operating system gives the id to no other process as long as the
        /// child was not waited for, or another process is in the group.
        id: Option<Pid>,
    }

    impl Group {
        /// Gives each child of this command its own group. A child that a terminal starts is in that of its program otherwise.
        pub(crate) fn prepare(command: &mut Command) {
            command.process_group(0);
        }

        /// Returns the group of a child whose command was prepared.
        pub(crate) fn of(child: &Child) -> Self {
            Self { id: child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw) }
        }

        /// Sends SIGTERM to the group. A process that has stopped, for example because it read the terminal, receives it too.
        pub(crate) fn terminate(&self, _: &mut Child) -> io::Result<()> {
            self.send(Signal::SIGTERM)?;
            self.send(Signal::SIGCONT)
        }

        /// Kills the group.
        pub(crate) fn kill(&self, _: &mut Child) -> io::Result<()> {
            self.send(Signal::SIGKILL)
        }

        /// Looks if a process is left in the group. The child was waited for.
        pub(crate) fn look(&mut self) {
            self.id = self.id.filter(|id| killpg(*id, None).is_ok());
        }

        /// Returns `true` if no process is left.
        pub(crate) fn is_gone(&self) -> bool {
            self.id.is_none()
        }

        fn send(&self, signal: Signal) -> io::Result<()> {
            match self.id.map(|id| killpg(id, signal)) {
                None | Some(Ok(()) | Err(Errno::ESRCH)) => Ok(()),
                Some(Err(fault)) => Err(fault.into()),
            }
        }
    }

    impl Drop for Group {
        fn drop(&mut self) {
            let _ = self.send(Signal::SIGKILL);
        }
    }
}

#[cfg(not(unix))]
mod group {
    //! The place of a child's process group on systems without one: only the child itself is ended.

    use std::io;
    use tokio::process::{Child, Command};

    /// A child alone. What the child started is not known here.
    pub(crate) struct Group;

    impl Group {
        /// Changes nothing.
        pub(crate) fn prepare(_: &mut Command) {}

        /// Returns the child alone.
        pub(crate) fn of(_: &Child) -> Self {
            Self
        }

        /// Kills the child: there is no gentler way.
        pub(crate) fn terminate(&self, child: &mut Child) -> io::Result<()> {
            child.start_kill()
        }

        /// Kills the child.
        pub(crate) fn kill(&self, child: &mut Child) -> io::Result<()> {
            child.start_kill()
        }

        /// Does nothing.
        pub(crate) fn look(&mut self) {}

        /// Returns `true`: the child was waited for.
        pub(crate) fn is_gone(&self) -> bool {
            true
        }
    }
}
