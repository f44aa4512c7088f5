//! The store of a run: its address, and the process behind it.

use crate::{Result, clock::ClockSteps, store_server::StoreServer, wire::Wire};
use antiphon::store::{
    CallStore, MemoryStore, Micros, PostgresOptions, PostgresStore, RedisOptions, RedisStore, SqliteOptions,
    SqliteStore, StoreClock,
};
use serde::{Deserialize, Serialize};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

/// The address of a store.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) enum Address {
    Memory,
    Sqlite(PathBuf),
    Postgres(String),
    Redis(String),
}

impl Address {
    /// Opens the store. A SQLite file has the clock of the host, with its steps; the other stores have clocks of their own.
    pub(crate) async fn open(&self, clocks: &ClockSteps) -> Result<Arc<dyn CallStore>> {
        Ok(match self {
            Self::Memory => Arc::new(MemoryStore::new()),
            Self::Sqlite(file) => {
                let clocks = clocks.clone();
                let clock = StoreClock::from_fn(move || moment(clocks.host()));
                Arc::new(SqliteStore::open(file, SqliteOptions::default().clock(clock)).await?)
            }
            Self::Postgres(url) => Arc::new(PostgresStore::connect(url, PostgresOptions::default()).await?),
            Self::Redis(url) => Arc::new(RedisStore::connect(url, RedisOptions::default()).await?),
        })
    }

    /// Returns true for a store that a process has for itself.
    pub(crate) fn is_memory(&self) -> bool {
        matches!(self, Self::Memory)
    }
}

/// Returns a moment of a store's clock.
pub(crate) fn moment(time: SystemTime) -> Micros {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Micros::new(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// The store of a run.
#[derive(Debug)]
pub(crate) struct Store {
    /// The address for the servers: of the wire, if the store has a server.
    pub(crate) address: Address,
    /// The address for the driver.
    pub(crate) direct: Address,
    /// The server of the store, and the path of its socket. Dropping it ends the server.
    pub(crate) server: Option<(StoreServer, PathBuf)>,
    /// The path of the socket between the servers and the store.
    pub(crate) wire: PathBuf,
}

impl Store {
    /// Starts a store of this kind in a folder. The servers reach it through [`wire`](Self::wire).
    pub(crate) fn start(kind: &str, folder: &Path) -> Result<Self> {
        let own = |address: Address| Self {
            address: address.clone(),
            direct: address,
            server: None,
            wire: PathBuf::new(),
        };
        match kind {
            "memory" => return Ok(own(Address::Memory)),
            "sqlite" => return Ok(own(Address::Sqlite(folder.join("calls.db")))),
            _ => (),
        }
        let between = folder.join("wire");
        std::fs::create_dir_all(&between)?;
        let (server, folder) = match kind {
            "postgres" => StoreServer::start_postgres(folder)?,
            "redis" => StoreServer::start_redis(folder)?,
            other => return Err(format!("unknown store {other}").into()),
        };
        let (name, address): (_, fn(&Path) -> Address) = match kind {
            "postgres" => (".s.PGSQL.5432", |folder| {
                let folder = folder.display();
                Address::Postgres(format!("host={folder} port=5432 user=postgres dbname=postgres"))
            }),
            _ => ("redis.socket", |folder| {
                Address::Redis(format!("redis+unix://{}", folder.join("redis.socket").display()))
            }),
        };
        Ok(Self {
            address: address(&between),
            direct: address(&folder),
            server: Some((server, folder.join(name))),
            wire: between.join(name),
        })
    }

    /// Begins to carry bytes between the servers and the store, if the store has a server.
    pub(crate) fn carry(&self, faults: Arc<crate::fault::Faults>) -> Result<Option<Arc<Wire>>> {
        let Some((_, socket)) = &self.server else { return Ok(None) };
        Ok(Some(Wire::start(&self.wire, socket.clone(), faults)?))
    }
}
