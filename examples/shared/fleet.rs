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

/// A fleet of replicas, at first two: A and B. Dropping the fleet kills them.
pub struct Fleet {
    key: String,
    backend: SocketAddr,
    state: Mutex<State>,
}

/// The options of a fleet.
#[derive(Clone, Copy, Debug, Default)]
pub struct FleetOptions {
    /// The build of the replicas.
    pub build: Build,
    /// The portion of `load_shedding` before which the replica that requested it is drained and replaced.
    pub drain_at: Option<u32>,
}

#[derive(Default)]
struct State {
    replicas: Vec<Arc<Replica>>,
    /// The number of replicas ever started, from which the next name is made.
    started: u8,
    next: usize,
    latest_replica: String,
}

impl Fleet {
    /// Starts a backend and two replicas, and waits until they listen.
    ///
    /// # Errors
    /// If a process cannot be started.
    pub async fn start(options: FleetOptions) -> Result<Arc<Self>> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let backend = listener.local_addr()?;
        let key = SecretKey::random()?.to_base64url().to_string();
        // The payment page of the backend verifies references that the replicas sealed, so it has their key.
        let server = antiphon_demo::builder(Backend::at(backend), options.build)
            .keys(KeyRing::parse_list(&key)?)
            .build()?;
        let fleet = Arc::new(Self { key, backend, state: Mutex::default() });
        let hook = drain_hook(options, Arc::downgrade(&fleet));
        tokio::spawn(backend::serve(listener, hook, Arc::new(OnceLock::from(server))));
        for _ in 0..2 {
            let replica = fleet.start_replica(options.build).await?;
            fleet.state().replicas.push(replica);
        }
        Ok(fleet)
    }

    /// Returns the address of the backend.
    pub fn backend(&self) -> SocketAddr {
        self.backend
    }

    /// Returns the effects on the backend so far, of all replicas.
    ///
    /// # Errors
    /// If the backend cannot be reached.
    pub async fn effects(&self) -> Result<EffectCounts> {
        Backend::at(self.backend).send(Operation::Count).await.map_err(|error| error.to_string().into())
    }

    /// Describes each replica: its name, its process id, its address.
    pub fn describe_replicas(&self) -> Vec<String> {
        let describe =
            |one: &Arc<Replica>| format!("replica {}: process {}, {}", one.name, one.process, one.address);
        self.state().replicas.iter().map(describe).collect()
    }

    /// Returns the URL of each replica, for clients that bypass the proxy and keep a session with one replica.
    pub fn urls(&self) -> Vec<String> {
        self.state().replicas.iter().map(|replica| format!("http://{}/mcp", replica.address)).collect()
    }

    /// Returns the names of the replicas. No name is used twice.
    pub fn names(&self) -> Vec<String> {
        self.state().replicas.iter().map(|replica| replica.name.clone()).collect()
    }

    /// Returns the name of the replica of the latest connection.
    pub fn latest_replica(&self) -> String {
        self.state().latest_replica.clone()
    }

    /// Kills a replica with SIGKILL, and waits until the process has ended.
    ///
    /// # Errors
    /// If the process cannot be killed.
    pub async fn kill(&self, name: &str) -> Result<()> {
        match self.find_replica(name) {
            Some(replica) => replica.kill().await,
            None => Ok(()),
        }
    }

    /// Starts another replica, then drains this one, which ends when its requests have ended.
    ///
    /// # Errors
    /// If the new replica cannot be started.
    pub async fn replace(&self, name: &str, build: Build) -> Result<()> {
        let Some(old) = self.find_replica(name) else { return Ok(()) };
        let new = self.start_replica(build).await?;
        {
            let mut state = self.state();
            state.replicas.retain(|replica| !Arc::ptr_eq(replica, &old));
            state.replicas.push(new);
        }
        old.drain().await?;
        tokio::spawn(async move { old.wait().await });
        Ok(())
    }

    /// Replaces every replica by one of this build, one after the other.
    ///
    /// # Errors
    /// If a replica cannot be started.
    pub async fn deploy(&self, build: Build) -> Result<()> {
        for name in self.names() {
            self.replace(&name, build).await?;
        }
        Ok(())
    }

    /// Drains all replicas, and waits until they have ended.
    ///
    /// # Errors
    /// If a process cannot be waited for.
    pub async fn stop(&self) -> Result<()> {
        let replicas = std::mem::take(&mut self.state().replicas);
        for replica in replicas {
            replica.drain().await?;
            replica.wait().await?;
        }
        Ok(())
    }

    /// Connects to the next reachable replica. Returns its name and the connection.
    pub(crate) async fn connect(&self) -> Option<(String, TcpStream)> {
        let tries = self.state().replicas.len();
        for _ in 0..tries {
            let replica = {
                let mut state = self.state();
                state.next += 1;
                let index = (state.next - 1) % state.replicas.len();
                Arc::clone(&state.replicas[index])
            };
            if let Ok(stream) = TcpStream::connect(replica.address).await {
                self.state().latest_replica.clone_from(&replica.name);
                return Some((replica.name.clone(), stream));
            }
        }
        None
    }

    async fn start_replica(&self, build: Build) -> Result<Arc<Replica>> {
        let number = {
            let mut state = self.state();
            state.started += 1;
            state.started - 1
        };
        // The names are A to Z, then AA, BA, and so on.
        let letter = char::from(b'A' + number % 26);
        let name = format!("{letter}{}", "A".repeat(usize::from(number / 26)));
        Ok(Arc::new(Replica::start(name, build, &self.key, self.backend).await?))
    }

    fn find_replica(&self, name: &str) -> Option<Arc<Replica>> {
        self.state().replicas.iter().find(|replica| replica.name == name).cloned()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the hook that drains the replica at the portion of the options.
fn drain_hook(options: FleetOptions, fleet: Weak<Fleet>) -> ComputeHook {
    ComputeHook::new(move |portion| {
        let fleet = fleet.upgrade().filter(|_| options.drain_at == Some(portion));
        async move {
            if let Some(fleet) = fleet {
                let name = fleet.latest_replica();
                if let Err(error) = fleet.replace(&name, options.build).await {
                    eprintln!("replica {name} was not replaced: {error}");
                }
            }
        }
    })
}
