//! The server processes: started, killed, stopped and ended by the faults.

use crate::{
    error::Result,
    fault::{FaultKind, Faults},
    keys::modified,
    log::Subject,
    server::ServerSettings,
};
use std::{
    net::SocketAddr,
    process::Stdio,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

/// The processes.
#[derive(Debug)]
pub(crate) struct Fleet {
    settings: ServerSettings,
    mutant: Option<String>,
    history: Arc<dyn Subject>,
    faults: Arc<Faults>,
    /// The version of the tools in processes that start.
    version: AtomicU32,
    places: Vec<tokio::sync::Mutex<Option<Child>>>,
    /// The process in each place.
    addresses: Arc<Mutex<Vec<Place>>>,
}

/// The process in a place.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// The address, while the process accepts requests.
    address: Option<(SocketAddr, u32)>,
    /// The moment of the key file that the process has read, or an earlier one.
    keys_read: u64,
}

impl Fleet {
    /// Starts this many processes.
    pub(crate) async fn start(
        settings: ServerSettings,
        mutant: Option<String>,
        size: usize,
        history: Arc<dyn Subject>,
        faults: Arc<Faults>,
    ) -> Result<Self> {
        let fleet = Self {
            settings,
            mutant,
            history,
            faults,
            version: AtomicU32::new(1),
            places: (0..size).map(|_| tokio::sync::Mutex::new(None)).collect(),
            addresses: Arc::new(Mutex::new(vec![Place::default(); size])),
        };
        for place in 0..size {
            let mut child = fleet.places[place].lock().await;
            *child = Some(fleet.spawn(place).await?);
        }
        Ok(fleet)
    }

    /// Returns the number of places.
    pub(crate) fn size(&self) -> usize {
        self.places.len()
    }

    /// Returns the address and the id of the process in a place, or in the next place that has one.
    pub(crate) fn address(&self, place: usize) -> Option<(SocketAddr, u32)> {
        let places = lock(&self.addresses);
        (0..places.len()).find_map(|next| places[(place + next) % places.len()].address)
    }

    /// Returns the address and the id of the process in this place.
    pub(crate) fn address_at(&self, place: usize) -> Option<(SocketAddr, u32)> {
        lock(&self.addresses).get(place)?.address
    }

    /// Returns true if every process has read the key file of this moment, or a later one.
    pub(crate) fn has_read_keys(&self, since: u64) -> bool {
        lock(&self.addresses).iter().all(|place| place.address.is_some() && place.keys_read >= since)
    }

    /// Sets the version of the tools in processes that start from now on.
    pub(crate) fn set_version(&self, version: u32) {
        self.version.store(version, Ordering::Relaxed);
    }

    async fn spawn(&self, place: usize) -> Result<Child> {
        let version = self.version.load(Ordering::Relaxed);
        let settings = ServerSettings { place, version, ..self.settings.clone() };
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("server").arg(serde_json::to_string(&settings)?);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).env_remove("ANTIPHON_MUTANT");
        if let Some(mutant) = &self.mutant {
            command.env("ANTIPHON_MUTANT", mutant);
        }
        let keys_read = modified(&settings.keys)?;
        let mut child = command.spawn()?;
        let input = child.stdin.take();
        let mut lines = BufReader::new(child.stdout.take().ok_or("a server has no output")?).lines();
        let address = lines.next_line().await?.ok_or("a server did not start")?.parse()?;
        let process = child.id().ok_or("a server did not start")?;
        lock(&self.addresses)[place] = Place { address: Some((address, process)), keys_read };
        let (history, places) = (Arc::clone(&self.history), Arc::clone(&self.addresses));
        tokio::spawn(async move {
            // The server ends if its input does.
            let _input = input;
            // What a killed process has printed is read, too.
            while let Ok(Some(line)) = lines.next_line().await {
                if let Some(moment) = line.strip_prefix("keys ").and_then(|moment| moment.parse().ok()) {
                    let mut places = lock(&places);
                    if places[place].address.is_some_and(|(_, found)| found == process) {
                        places[place].keys_read = moment;
                    }
                }
                history.traces().read(&line);
            }
        });
        Ok(child)
    }

    /// Does something to the process in a place, and starts another one where it ended. If that one does not start, the next fault in
    /// the place starts one.
    pub(crate) async fn fault(&self, place: usize, kind: FaultKind, pause: Duration) -> Result<()> {
        let mut held = self.places[place].lock().await;
        let Some(child) = held.as_mut() else { return Ok(()) };
        let Some(process) = child.id() else {
            // Its successor did not start: the store was away for too long.
            *held = Some(self.spawn(place).await?);
            return Ok(());
        };
        let fault = self.faults.begin(kind, Some(process));
        match kind {
            FaultKind::Pause => {
                signal(process, "-STOP").await?;
                tokio::time::sleep(pause).await;
                self.faults.end(fault);
                return signal(process, "-CONT").await;
            }
            FaultKind::Terminate | FaultKind::Upgrade => {
                // The proxy sends it nothing more, as a balancer that was told of the drain.
                lock(&self.addresses)[place].address = None;
                signal(process, "-TERM").await?;
                child.wait().await?;
            }
            _ => {
                child.kill().await?;
                lock(&self.addresses)[place].address = None;
            }
        }
        *held = Some(self.spawn(place).await?);
        self.faults.end(fault);
        Ok(())
    }

    /// Kills this process, if it runs, and starts another one in its place.
    pub(crate) async fn kill(&self, process: u32) -> Result<()> {
        let is_it = |place: &Place| place.address.is_some_and(|(_, found)| found == process);
        let place = lock(&self.addresses).iter().position(is_it);
        match place {
            Some(place) => self.fault(place, FaultKind::Kill, Duration::ZERO).await,
            None => Ok(()),
        }
    }

    /// Kills all processes, and starts them again after this time.
    pub(crate) async fn black_out(&self, time: Duration) -> Result<()> {
        let mut held = Vec::new();
        for place in &self.places {
            held.push(place.lock().await);
        }
        let fault = self.faults.begin(FaultKind::Blackout, None);
        for (place, child) in held.iter_mut().enumerate() {
            let Some(child) = child.as_mut() else { return Ok(()) };
            if child.id().is_some() {
                child.kill().await?;
            }
            lock(&self.addresses)[place].address = None;
        }
        tokio::time::sleep(time).await;
        for (place, child) in held.iter_mut().enumerate() {
            **child = Some(self.spawn(place).await?);
        }
        self.faults.end(fault);
        Ok(())
    }

    /// Ends all processes.
    pub(crate) async fn stop(&self) -> Result<()> {
        for place in &self.places {
            if let Some(mut child) = place.lock().await.take() {
                child.kill().await?;
            }
        }
        Ok(())
    }
}

async fn signal(process: u32, signal: &str) -> Result<()> {
    let status = Command::new("kill").arg(signal).arg(process.to_string()).status().await?;
    if status.success() { Ok(()) } else { Err(format!("kill {signal} {process} failed").into()) }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
