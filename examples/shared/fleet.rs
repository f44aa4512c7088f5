//! The replicas, which share a key and a backend, and the order in which they serve.

use crate::{Result, replica::Replica};
use antiphon::seal::{KeyRing, SecretKey};
use antiphon_demo::{
    Backend, Build,
    backend::{self, ComputeHook, EffectCounts, Operation},
};
use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
};
use tokio::net::{TcpListener, TcpStream};

/// Two replicas, A and B. Dropping them kills them.
pub struct Fleet {
    key: String,
    backend: SocketAddr,
    state: Mutex<State>,
}

/// What a fleet begins as, and what happens to it by itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plan {
    /// Which build its replicas are.
    pub build: Build,
    /// Before this portion of `load_shedding` is computed, the replica that asked for it is drained, and another one takes
    /// its place.
    pub drain_at: Option<u32>,
}

#[derive(Default)]
struct State {
    replicas: Vec<Arc<Replica>>,
    /// How many were ever started: the next one is named after it.
    started: u8,
    turn: usize,
    served_last: String,
}

impl Fleet {
    /// Starts a backend and two replicas, and waits until they listen.
    ///
    /// # Errors
    /// If a process cannot be started.
    pub async fn start(plan: Plan) -> Result<Arc<Self>> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let backend = listener.local_addr()?;
        let key = SecretKey::random()?.to_base64url().to_string();
        // The payment page of the backend verifies references that the replicas sealed, so it has their key.
        let server = antiphon_demo::builder(Backend::at(backend), plan.build)
            .keys(KeyRing::parse_list(&key)?)
            .build()?;
        let fleet = Arc::new(Self { key, backend, state: Mutex::default() });
        let hook = drain_hook(plan, Arc::downgrade(&fleet));
        tokio::spawn(backend::serve(listener, hook, Arc::new(OnceLock::from(server))));
        for _ in 0..2 {
            let replica = fleet.another(plan.build).await?;
            fleet.state().replicas.push(replica);
        }
        Ok(fleet)
    }

    /// Returns the address of the backend.
    pub fn backend(&self) -> SocketAddr {
        self.backend
    }

    /// What was done there so far, by whichever replica.
    ///
    /// # Errors
    /// If it cannot be reached.
    pub async fn done(&self) -> Result<EffectCounts> {
        Backend::at(self.backend).send(Operation::Count).await.map_err(|error| error.to_string().into())
    }

    /// Each replica in words: its name, its process, where it listens.
    pub fn told(&self) -> Vec<String> {
        let told =
            |one: &Arc<Replica>| format!("replica {}: process {}, {}", one.name, one.process, one.address);
        self.state().replicas.iter().map(told).collect()
    }

    /// Where each replica itself is called, past any proxy: as a balancer that keeps a session with its replica would.
    pub fn urls(&self) -> Vec<String> {
        self.state().replicas.iter().map(|replica| format!("http://{}/mcp", replica.address)).collect()
    }

    /// What the replicas are called. No name is used twice.
    pub fn names(&self) -> Vec<String> {
        self.state().replicas.iter().map(|replica| replica.name.clone()).collect()
    }

    /// The replica that was connected to last.
    pub fn served_last(&self) -> String {
        self.state().served_last.clone()
    }

    /// `kill -9`, and waits until the process is gone.
    ///
    /// # Errors
    /// If it cannot be killed.
    pub async fn kill(&self, name: &str) -> Result<()> {
        match self.named(name) {
            Some(replica) => replica.kill().await,
            None => Ok(()),
        }
    }

    /// Drains a replica once another one has taken its place; it ends by itself when its requests have.
    ///
    /// # Errors
    /// If the other one cannot be started.
    pub async fn replace(&self, name: &str, build: Build) -> Result<()> {
        let Some(old) = self.named(name) else { return Ok(()) };
        let new = self.another(build).await?;
        {
            let mut state = self.state();
            state.replicas.retain(|replica| !Arc::ptr_eq(replica, &old));
            state.replicas.push(new);
        }
        old.drain().await?;
        tokio::spawn(async move { old.ended().await });
        Ok(())
    }

    /// Puts this build in the place of every replica, one after the other.
    ///
    /// # Errors
    /// If one cannot be started.
    pub async fn deploy(&self, build: Build) -> Result<()> {
        for name in self.names() {
            self.replace(&name, build).await?;
        }
        Ok(())
    }

    /// Lets those that still run end in peace.
    ///
    /// # Errors
    /// If one cannot be waited for.
    pub async fn stop(&self) -> Result<()> {
        let replicas = std::mem::take(&mut self.state().replicas);
        for replica in replicas {
            replica.drain().await?;
            replica.ended().await?;
        }
        Ok(())
    }

    /// A connection to the next replica that can be reached, and its name.
    pub(crate) async fn connect(&self) -> Option<(String, TcpStream)> {
        let tries = self.state().replicas.len();
        for _ in 0..tries {
            let replica = {
                let mut state = self.state();
                state.turn += 1;
                let turn = (state.turn - 1) % state.replicas.len();
                Arc::clone(&state.replicas[turn])
            };
            if let Ok(stream) = TcpStream::connect(replica.address).await {
                self.state().served_last.clone_from(&replica.name);
                return Some((replica.name.clone(), stream));
            }
        }
        None
    }

    async fn another(&self, build: Build) -> Result<Arc<Replica>> {
        let number = {
            let mut state = self.state();
            state.started += 1;
            state.started - 1
        };
        // A to Z, and from there on AA, BA, ..
        let letter = char::from(b'A' + number % 26);
        let name = format!("{letter}{}", "A".repeat(usize::from(number / 26)));
        Ok(Arc::new(Replica::start(name, build, &self.key, self.backend).await?))
    }

    fn named(&self, name: &str) -> Option<Arc<Replica>> {
        self.state().replicas.iter().find(|replica| replica.name == name).cloned()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What drains the replica that has come to the portion of the plan.
fn drain_hook(plan: Plan, fleet: Weak<Fleet>) -> ComputeHook {
    ComputeHook::new(move |portion| {
        let fleet = fleet.upgrade().filter(|_| plan.drain_at == Some(portion));
        async move {
            if let Some(fleet) = fleet {
                let name = fleet.served_last();
                if let Err(error) = fleet.replace(&name, plan.build).await {
                    eprintln!("replica {name} was not replaced: {error}");
                }
            }
        }
    })
}
