//! The schedule of faults: some tasks, each with random times from the seed.

use crate::{
    clock::{ClockSteps, micros},
    error::Result,
    fault::{FaultKind, Faults},
    fleet::Fleet,
    keys::{Edit, Keys},
    log::Subject,
    options::Options,
    progress::Progress,
    random::Random,
    rows::lock_file,
    store::{Address, Store},
    wire::Wire,
};
use std::{sync::Arc, time::Duration};
use tokio::task::{JoinHandle, block_in_place};

/// The faults of a run, and everything that they concern.
#[derive(Debug)]
pub(crate) struct Schedule {
    pub(crate) options: Options,
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) faults: Arc<Faults>,
    pub(crate) history: Arc<dyn Subject>,
    pub(crate) store: Arc<tokio::sync::Mutex<Store>>,
    pub(crate) wire: Option<Arc<Wire>>,
    pub(crate) clocks: ClockSteps,
    pub(crate) keys: Keys,
    pub(crate) progress: Progress,
}

impl Schedule {
    /// Begins to make faults. Aborting the tasks ends them; a fault that has begun comes to its end.
    pub(crate) fn start(self) -> Vec<JoinHandle<()>> {
        let all = Arc::new(self);
        let mut tasks = Vec::new();
        if all.fleet.size() > 1 {
            tasks.push(tokio::spawn(Arc::clone(&all).processes()));
        }
        if all.options.crash {
            return tasks;
        }
        if all.fleet.size() > 1 {
            tasks.push(tokio::spawn(Arc::clone(&all).upgrade()));
            tasks.push(tokio::spawn(Arc::clone(&all).stores()));
            if all.options.tasks {
                tasks.push(tokio::spawn(Arc::clone(&all).blackouts()));
            }
        }
        tasks.push(tokio::spawn(Arc::clone(&all).wires()));
        tasks.push(tokio::spawn(Arc::clone(&all).steps_of_clocks()));
        tasks.push(tokio::spawn(all.rotations()));
        tasks
    }

    fn random(&self, part: &str) -> Random {
        Random::new(self.options.seed, part, 0)
    }

    /// The time of a pause: longer than the lease.
    fn pause(&self) -> Duration {
        Duration::from_millis(self.options.lease * 3 / 2)
    }

    async fn processes(self: Arc<Self>) {
        let mut random = self.random("faults");
        loop {
            let (least, more) = if self.options.crash { (100, 400) } else { (400, 1600) };
            tokio::time::sleep(Duration::from_millis(least) + random.millis(more)).await;
            let place = usize::try_from(random.below(3)).unwrap_or_default();
            let kind = match random.below(100) {
                _ if self.options.crash => FaultKind::Kill,
                0..50 => FaultKind::Kill,
                50..80 => FaultKind::Pause,
                _ => FaultKind::Terminate,
            };
            let (fleet, pause) = (Arc::clone(&self.fleet), self.pause());
            // A pause does not keep other processes from their faults.
            let task = tokio::spawn(async move {
                if let Err(error) = fleet.fault(place, kind, pause).await {
                    eprintln!("a fault of a process failed: {error}");
                }
            });
            if kind == FaultKind::Kill {
                let _ = task.await;
            }
        }
    }

    /// All processes die at once, and for a while there is none.
    async fn blackouts(self: Arc<Self>) {
        let mut random = self.random("blackouts");
        tokio::time::sleep(Duration::from_secs(2) + random.millis(3000)).await;
        loop {
            let (fleet, time) = (Arc::clone(&self.fleet), random.millis(self.options.lease * 3 / 2));
            // A fault that has begun comes to its end.
            if let Ok(Err(error)) = tokio::spawn(async move { fleet.black_out(time).await }).await {
                eprintln!("the fleet did not start again: {error}");
            }
            tokio::time::sleep(Duration::from_secs(8) + random.millis(12_000)).await;
        }
    }

    /// Half way, one process after the other gets a successor with the next version of the tools.
    async fn upgrade(self: Arc<Self>) {
        self.progress.reaches(0.5).await;
        self.fleet.set_version(2);
        for place in 0..self.fleet.size() {
            let (fleet, pause) = (Arc::clone(&self.fleet), self.pause());
            let task = tokio::spawn(async move { fleet.fault(place, FaultKind::Upgrade, pause).await });
            let _ = task.await;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// The store ends and begins again, or another process has the lock of its file.
    async fn stores(self: Arc<Self>) {
        let mut random = self.random("stores");
        tokio::time::sleep(Duration::from_secs(3) + random.millis(5000)).await;
        loop {
            let time = match self.options.store.as_str() {
                // Sometimes longer than the lease, and than the time limit of an operation.
                "sqlite" => random.millis(6500),
                _ => random.millis(2000),
            };
            let all = Arc::clone(&self);
            let fault = tokio::spawn(async move { all.stop_store(time).await });
            if let Ok(Err(error)) = fault.await {
                eprintln!("a fault of the store failed: {error}");
            }
            tokio::time::sleep(Duration::from_secs(15) + random.millis(30_000)).await;
        }
    }

    async fn stop_store(&self, time: Duration) -> Result<()> {
        let mut store = self.store.lock().await;
        if let Address::Sqlite(file) = &store.direct {
            let fault = self.faults.begin(FaultKind::StoreLock, None);
            let lock = block_in_place(|| lock_file(file))?;
            tokio::time::sleep(time).await;
            drop(lock);
            self.faults.end(fault);
        }
        if let Some((server, _)) = &mut store.server {
            let fault = self.faults.begin(FaultKind::StoreRestart, None);
            block_in_place(|| server.crash())?;
            tokio::time::sleep(time).await;
            block_in_place(|| server.start())?;
            self.faults.end(fault);
        }
        Ok(())
    }

    /// Cut and late connections between the servers and the store.
    async fn wires(self: Arc<Self>) {
        let mut random = self.random("wires");
        let Some(wire) = &self.wire else { return };
        loop {
            tokio::time::sleep(Duration::from_millis(300) + random.millis(2500)).await;
            let kind = match random.below(100) {
                0..30 => FaultKind::CutRequest,
                30..60 => FaultKind::CutReply,
                60..75 => FaultKind::CutAll,
                _ => FaultKind::Stall,
            };
            wire.fault(kind, random.millis(self.options.lease * 3 / 2));
        }
    }

    /// The clock of the host steps forward by up to a minute, and back by up to five seconds, for the servers and for the rows
    /// of SQLite. Beside it, the clocks of the servers differ by up to 40 seconds; a minute is the most that they may.
    async fn steps_of_clocks(self: Arc<Self>) {
        let mut random = self.random("clocks");
        let mut host = 0;
        loop {
            // Rows and states outlive two of the large steps, and a state is never more than a minute in the future.
            host += signed(random.below(60_000));
            self.step_host(host);
            self.step_servers(&mut random, 5).await;
            host -= signed(random.below(5000));
            self.step_host(host);
            self.step_servers(&mut random, 5).await;
        }
    }

    fn step_host(&self, step: i64) {
        if self.clocks.set_host(step).is_ok() {
            // The rows of the other stores are not on this clock.
            let is_ours = self.options.store == "sqlite";
            self.faults.note(if is_ours { FaultKind::StoreClock } else { FaultKind::ServerClock }, None);
        }
    }

    async fn step_servers(&self, random: &mut Random, count: u32) {
        for _ in 0..count {
            tokio::time::sleep(Duration::from_secs(4) + random.millis(3000)).await;
            let place = usize::try_from(random.below(3)).unwrap_or_default();
            if self.clocks.set_place(place, signed(random.below(40_000)) - 20_000).is_ok() {
                self.faults.note(FaultKind::ServerClock, None);
            }
        }
    }

    /// The three edits of a rotation, each when the one before has reached every process. A long run has several rotations.
    async fn rotations(self: Arc<Self>) {
        self.progress.reaches(0.25).await;
        loop {
            self.edit(Edit::Add).await;
            self.edit(Edit::Promote).await;
            // The states of the old key are those of calls that began before now.
            let promoted = micros();
            while self.history.runs_since_before(promoted) {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            self.edit(Edit::Retire).await;
            tokio::time::sleep(Duration::from_secs(60)).await;
        }
    }

    async fn edit(&self, edit: Edit) {
        self.faults.note(FaultKind::Keys, None);
        let edited = self.keys.edit(edit).unwrap_or_else(|error| {
            eprintln!("the key file was not edited: {error}");
            0
        });
        while !self.fleet.has_read_keys(edited) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or_default()
}
