//! The schedule of faults: some tasks, each with random times from the seed.

use crate::{
    Result,
    clock::{ClockSteps, micros},
    fault::{FaultKind, Faults},
    fleet::Fleet,
    history::History,
    keys::{Edit, Keys},
    options::Options,
    progress::Progress,
    random::Random,
    rows::lock_file,
    store::{Address, Store},
    wire::Wire,
};
use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};
use tokio::task::JoinHandle;

/// What the faults concern.
#[derive(Debug)]
pub(crate) struct Schedule {
    pub(crate) options: Options,
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) faults: Arc<Faults>,
    pub(crate) history: Arc<History>,
    pub(crate) store: Arc<std::sync::Mutex<Store>>,
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
            let task = tokio::spawn(async move { fleet.fault(place, kind, pause).await });
            if kind == FaultKind::Kill {
                let _ = task.await;
            }
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
            let fault = tokio::task::spawn_blocking(move || all.stop_store(time));
            if let Ok(Err(error)) = fault.await {
                eprintln!("a fault of the store failed: {error}");
            }
            tokio::time::sleep(Duration::from_secs(15) + random.millis(30_000)).await;
        }
    }

    fn stop_store(&self, time: Duration) -> Result<()> {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        if let Address::Sqlite(file) = &store.direct {
            let fault = self.faults.begin(FaultKind::StoreLock, None);
            lock_file(file, time)?;
            self.faults.end(fault);
        }
        if let Some((server, _)) = &mut store.server {
            let fault = self.faults.begin(FaultKind::StoreRestart, None);
            server.restart(time)?;
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

    /// The clock of the host steps forward by up to a minute and back by up to five seconds, for the servers and for the rows
    /// of SQLite. Beside it, the clocks of the servers differ by up to 50 seconds; a minute is the most that they may.
    async fn steps_of_clocks(self: Arc<Self>) {
        let mut random = self.random("clocks");
        let (mut host, mut seconds) = (0, 0);
        loop {
            let gap = Duration::from_secs(2) + random.millis(5000);
            tokio::time::sleep(gap).await;
            seconds += gap.as_secs();
            let by = |random: &mut Random, most: u64| i64::try_from(random.below(most)).unwrap_or_default();
            // States outlive two of the large steps: their time is three minutes.
            let kind = if seconds > 45 || host == 0 {
                seconds = 0;
                host += by(&mut random, 60_000);
                FaultKind::StoreClock
            } else if random.percent(25) {
                host -= by(&mut random, 5000);
                FaultKind::StoreClock
            } else {
                FaultKind::ServerClock
            };
            let stepped = match kind {
                FaultKind::StoreClock => self.clocks.set_host(host),
                _ => {
                    let place = usize::try_from(random.below(3)).unwrap_or_default();
                    self.clocks.set_place(place, by(&mut random, 50_000) - 25_000)
                }
            };
            // The rows of the other stores are not on this clock.
            let is_ours = self.options.store == "sqlite" || kind == FaultKind::ServerClock;
            if stepped.is_ok() {
                self.faults.note(if is_ours { kind } else { FaultKind::ServerClock }, None);
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
        let edited = micros();
        if let Err(error) = self.keys.edit(edit) {
            eprintln!("the key file was not edited: {error}");
        }
        while !self.fleet.has_read_keys(edited) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}
