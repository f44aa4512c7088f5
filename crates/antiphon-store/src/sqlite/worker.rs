//! The thread that owns the connection. Operations that wait together are one transaction, and so one write to the disk. A
//! transaction with writes of the program runs alone.

use super::{
    rows::Rows,
    schema::{self, SqliteOptions, kind, rolled_back},
};
use crate::{
    clock::StoreClock,
    error::{StoreError, StoreErrorKind, Written},
};
use rusqlite::Connection;
use std::{
    convert::Infallible,
    path::PathBuf,
    sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel},
    time::{Duration, Instant},
};
use tokio::sync::oneshot;

/// The maximum number of operations of one transaction.
const GROUP: usize = 64;

/// The sender of operations to the thread. The thread ends with its last sender.
#[derive(Clone, Debug)]
pub(super) struct Worker {
    jobs: SyncSender<Work>,
    options: SqliteOptions,
}

/// The work that waits for the connection.
enum Work {
    /// An operation, in one transaction with others.
    Operation(Box<dyn Job>),
    /// A transaction of its own.
    Alone(Box<Alone>),
}

type Alone = dyn FnOnce(&mut Connection, &StoreClock) + Send;

/// An operation that waits, then has a result, and replies after the transaction's end.
trait Job: Send {
    /// Runs the operation; returns false if its changes are to be rolled back.
    fn run(&mut self, rows: &Rows<'_>) -> bool;
    /// Replies. `failure` is the error of the transaction.
    fn finish(self: Box<Self>, failure: Option<&Failure>);
}

/// The error of a transaction, for each of its operations.
struct Failure {
    kind: StoreErrorKind,
    written: Written,
    text: String,
}

struct Operation<T, W> {
    name: &'static str,
    work: Option<W>,
    result: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
    /// Dropped after the reply.
    _hold: ClockHold,
}

impl<T: Send, W: FnOnce(&Rows<'_>) -> rusqlite::Result<T> + Send> Job for Operation<T, W> {
    fn run(&mut self, rows: &Rows<'_>) -> bool {
        // Nobody waits for the reply: its caller went away, or its time is over.
        let Some(work) = self.work.take().filter(|_| !self.reply.is_closed()) else { return true };
        let result = work(rows).map_err(|error| rolled_back(self.name, error));
        let worked = result.is_ok();
        self.result = Some(result);
        worked
    }

    fn finish(self: Box<Self>, failure: Option<&Failure>) {
        let result = match (failure, self.result) {
            (Some(failure), _) => {
                Err(StoreError::new(failure.kind, failure.written, self.name, failure.text.clone()))
            }
            (None, Some(result)) => result,
            (None, None) => return,
        };
        // A caller that went away needs no reply.
        drop(self.reply.send(result));
    }
}

impl Worker {
    /// Starts the thread, and opens the file on it.
    pub(super) async fn start(path: PathBuf, options: SqliteOptions) -> Result<Self, StoreError> {
        let (jobs, waiting) = sync_channel::<Work>(options.queue);
        let (opened, open) = oneshot::channel();
        let (timeout, clock, read_only) = (options.timeout, options.clock.clone(), options.read_only);
        let open_file = if read_only { schema::open_read_only } else { schema::open };
        let hold = ClockHold::new(timeout);
        let thread = move || match open_file(&path, timeout) {
            Ok(mut connection) => {
                drop(opened.send(Ok(())));
                drop(hold);
                serve(&mut connection, &waiting, &clock, read_only);
            }
            Err(error) => drop(opened.send(Err(error))),
        };
        std::thread::Builder::new()
            .name("antiphon-sqlite".to_owned())
            .spawn(thread)
            .map_err(|error| StoreError::read(StoreErrorKind::Other, "open", error))?;
        open.await.unwrap_or_else(|_| Err(ended("open", Written::No)))?;
        Ok(Self { jobs, options })
    }

    /// Runs an operation in a transaction, within the time limit. `on_timeout` is the effect of an operation without a reply.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        name: &'static str,
        on_timeout: Written,
        work: impl FnOnce(&Rows<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, result) = oneshot::channel();
        let hold = ClockHold::new(self.options.timeout);
        let operation = Operation { name, work: Some(work), result: None, reply, _hold: hold };
        self.send(name, Work::Operation(Box::new(operation)))?;
        match tokio::time::timeout(self.options.timeout, result).await {
            Ok(reply) => reply.unwrap_or_else(|_| Err(ended(name, on_timeout))),
            Err(elapsed) => Err(StoreError::new(StoreErrorKind::Timeout, on_timeout, name, elapsed)),
        }
    }

    /// Runs `work` alone on the connection, within the time limit. It receives the sender of its reply, and must roll back if
    /// nobody waits for the reply any more.
    pub(super) async fn run_alone<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce(&mut Connection, &StoreClock, Reply<T>) + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, result) = oneshot::channel();
        let hold = ClockHold::new(self.options.timeout);
        let alone = move |connection: &mut Connection, clock: &StoreClock| {
            work(connection, clock, Reply(reply));
            drop(hold);
        };
        self.send(name, Work::Alone(Box::new(alone)))?;
        match tokio::time::timeout(self.options.timeout, result).await {
            Ok(reply) => reply.unwrap_or_else(|_| Err(ended(name, Written::Unknown))),
            Err(elapsed) => Err(StoreError::new(StoreErrorKind::Timeout, Written::Unknown, name, elapsed)),
        }
    }

    fn send(&self, name: &'static str, work: Work) -> Result<(), StoreError> {
        match self.jobs.try_send(work) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(_)) => {
                let text = format!("{} operations wait for the file", self.options.queue);
                Err(StoreError::read(StoreErrorKind::Unreachable, name, text))
            }
            Err(TrySendError::Disconnected(_)) => Err(ended(name, Written::No)),
        }
    }
}

/// The sender of the reply to work that runs alone.
pub(super) struct Reply<T>(oneshot::Sender<Result<T, StoreError>>);

impl<T> Reply<T> {
    /// Returns false if the caller went away, or its time is over.
    pub(super) fn is_awaited(&self) -> bool {
        !self.0.is_closed()
    }

    pub(super) fn send(self, result: Result<T, StoreError>) {
        // A caller that went away needs no reply.
        drop(self.0.send(result));
    }
}

fn ended(name: &'static str, written: Written) -> StoreError {
    StoreError::new(StoreErrorKind::Unreachable, written, name, "the thread of the file has ended")
}

/// Runs the operations until the last sender is gone.
fn serve(connection: &mut Connection, waiting: &Receiver<Work>, clock: &StoreClock, read_only: bool) {
    let mut next = None;
    while let Some(work) = next.take().or_else(|| waiting.recv().ok()) {
        let first = match work {
            Work::Operation(first) => first,
            Work::Alone(run) => {
                run(connection, clock);
                continue;
            }
        };
        let mut group = vec![first];
        while group.len() < GROUP {
            match waiting.try_recv() {
                Ok(Work::Operation(job)) => group.push(job),
                Ok(alone) => {
                    next = Some(alone);
                    break;
                }
                Err(_) => break,
            }
        }
        let failure = transact(connection, clock, read_only, &mut group).err();
        for job in group {
            job.finish(failure.as_ref());
        }
    }
}

/// Runs a group of operations in one transaction. The changes of an operation that fails are rolled back alone.
fn transact(
    connection: &Connection,
    clock: &StoreClock,
    read_only: bool,
    group: &mut [Box<dyn Job>],
) -> Result<(), Failure> {
    let not_written = |error: rusqlite::Error| {
        rollback(connection);
        Failure { kind: kind(&error), written: Written::No, text: error.to_string() }
    };
    let execute = |statement| connection.prepare_cached(statement)?.execute([]).map(drop);
    // A file that is only read has no lock for writers.
    execute(if read_only { "BEGIN" } else { "BEGIN IMMEDIATE" }).map_err(not_written)?;
    let rows = Rows::begin(connection, clock).map_err(not_written)?;
    for job in group {
        execute("SAVEPOINT operation").map_err(not_written)?;
        let worked = job.run(&rows);
        // A full disk and errors of input and output end the whole transaction.
        if connection.is_autocommit() {
            let text = "an operation of the same transaction failed".to_owned();
            return Err(Failure { kind: StoreErrorKind::Unreachable, written: Written::No, text });
        }
        if !worked {
            execute("ROLLBACK TO operation").map_err(not_written)?;
        }
        execute("RELEASE operation").map_err(not_written)?;
    }
    rows.end().map_err(not_written)?;
    execute("COMMIT").map_err(|error| {
        rollback(connection);
        Failure { kind: kind(&error), written: Written::Unknown, text: error.to_string() }
    })
}

pub(super) fn rollback(connection: &Connection) {
    if !connection.is_autocommit() {
        // If the rollback fails too, the next transaction cannot begin, and its operations report that.
        drop(connection.execute_batch("ROLLBACK"));
    }
}

// Holds a paused clock of tokio while the thread of the file works.
//
// Tokio advances a paused clock to the next timer as soon as its own tasks wait, and does not know of this thread: the time
// limit of an operation, leases and the handlers' timers would end within a moment. It does not advance the clock while a
// blocking task runs (`tokio::time::pause`, "Preventing auto-advance").

/// Holds the clock until it is dropped, at most for the real time of the limit. It does nothing if the clock runs.
struct ClockHold {
    /// Ends the blocking task when it is dropped.
    _task: Option<Sender<Infallible>>,
}

impl ClockHold {
    pub(super) fn new(limit: Duration) -> Self {
        if !is_paused() {
            return Self { _task: None };
        }
        let (task, held) = channel::<Infallible>();
        tokio::task::spawn_blocking(move || held.recv_timeout(limit));
        Self { _task: Some(task) }
    }
}

/// Returns true if tokio's clock stands still while the system's clock advances by one tick.
fn is_paused() -> bool {
    let (tokio_time, time) = (tokio::time::Instant::now(), Instant::now());
    while Instant::now() == time {}
    tokio::time::Instant::now() == tokio_time
}
