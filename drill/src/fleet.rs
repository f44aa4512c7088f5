//! The server processes: started, killed, stopped and ended by the faults.

use crate::{Result, clock::micros, server::ServerSettings};
use std::{
    net::SocketAddr,
    process::Stdio,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

/// A fault of a process.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) kind: FaultKind,
    pub(crate) process: u32,
    /// The begin and the end, in microseconds.
    pub(crate) from: u64,
    pub(crate) until: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FaultKind {
    /// SIGKILL.
    Kill,
    /// SIGSTOP for longer than the lease, then SIGCONT.
    Pause,
    /// SIGTERM: the requests under way may end.
    Terminate,
}

/// The processes.
#[derive(Debug)]
pub(crate) struct Fleet {
    settings: ServerSettings,
    mutant: Option<String>,
    places: Vec<tokio::sync::Mutex<Option<Child>>>,
    /// The address of the process in each place, while it accepts requests.
    addresses: Mutex<Vec<Option<(SocketAddr, u32)>>>,
    faults: Mutex<Vec<Fault>>,
}

impl Fleet {
    /// Starts this many processes.
    pub(crate) async fn start(settings: ServerSettings, mutant: Option<String>, size: usize) -> Result<Self> {
        let fleet = Self {
            settings,
            mutant,
            places: (0..size).map(|_| tokio::sync::Mutex::new(None)).collect(),
            addresses: Mutex::new(vec![None; size]),
            faults: Mutex::default(),
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
        let addresses = lock(&self.addresses);
        (0..addresses.len()).find_map(|next| addresses[(place + next) % addresses.len()])
    }

    /// Returns the faults so far.
    pub(crate) fn faults(&self) -> Vec<Fault> {
        lock(&self.faults).clone()
    }

    async fn spawn(&self, place: usize) -> Result<Child> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("server").arg(serde_json::to_string(&self.settings)?);
        command.stdout(Stdio::piped()).kill_on_drop(true).env_remove("ANTIPHON_MUTANT");
        if let Some(mutant) = &self.mutant {
            command.env("ANTIPHON_MUTANT", mutant);
        }
        let mut child = command.spawn()?;
        let mut lines = BufReader::new(child.stdout.take().ok_or("a server has no output")?).lines();
        let address = lines.next_line().await?.ok_or("a server did not start")?.parse()?;
        lock(&self.addresses)[place] = Some((address, child.id().unwrap_or_default()));
        Ok(child)
    }

    /// Does something to the process in a place, and starts another one where it ended.
    pub(crate) async fn fault(&self, place: usize, kind: FaultKind, pause: Duration) -> Result<()> {
        let mut held = self.places[place].lock().await;
        let Some(child) = held.as_mut() else { return Ok(()) };
        let process = child.id().unwrap_or_default();
        let index = {
            let mut faults = lock(&self.faults);
            faults.push(Fault { kind, process, from: micros(), until: u64::MAX });
            faults.len() - 1
        };
        match kind {
            FaultKind::Kill => {
                child.kill().await?;
                lock(&self.addresses)[place] = None;
                *held = Some(self.spawn(place).await?);
            }
            FaultKind::Pause => {
                signal(process, "-STOP").await?;
                tokio::time::sleep(pause).await;
                lock(&self.faults)[index].until = micros();
                signal(process, "-CONT").await?;
                return Ok(());
            }
            FaultKind::Terminate => {
                // The proxy sends it nothing more, as a balancer that was told of the drain.
                lock(&self.addresses)[place] = None;
                signal(process, "-TERM").await?;
                child.wait().await?;
                *held = Some(self.spawn(place).await?);
            }
        }
        lock(&self.faults)[index].until = micros();
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
