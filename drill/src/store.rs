//! The store of a run: its address, and the process behind it.

use crate::{clock::ClockSteps, error::Result, store_server::StoreServer, wire::Wire};
use antiphon::store::{
    CallStore, MemoryStore, PostgresOptions, PostgresStore, RedisOptions, RedisStore, SqliteOptions,
    SqliteStore, StoreClock, TaskEngine, calls::Micros,
};
use serde::{Deserialize, Serialize};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// The address of a store.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) enum Address {
    Memory,
    Sqlite(PathBuf),
    Postgres(String),
    Redis(String),
    /// PostgreSQL with the tasks of DBOS: the folder of its socket.
    Dbos(PathBuf),
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
            Self::Dbos(folder) => {
                Arc::new(PostgresStore::connect(&postgres(folder), PostgresOptions::default()).await?)
            }
        })
    }

    /// Connects the engine of tasks, if it is not that of the store.
    pub(crate) async fn engine(&self, lease: Duration) -> Result<Option<Arc<dyn TaskEngine>>> {
        match self {
            Self::Dbos(folder) => dbos(folder, lease).await.map(Some),
            _ => Ok(None),
        }
    }

    /// Returns true for a store that all processes of the fleet have tasks in.
    pub(crate) fn has_tasks(&self) -> bool {
        !matches!(self, Self::Postgres(_) | Self::Redis(_))
    }

    /// Returns true for a store that a process has for itself.
    pub(crate) fn is_memory(&self) -> bool {
        matches!(self, Self::Memory)
    }
}

/// Returns the settings of a connection to PostgreSQL, whose socket is in a folder.
pub(crate) fn postgres(folder: &Path) -> String {
    format!("host={} port=5432 user=postgres dbname=postgres", folder.display())
}

#[cfg(feature = "dbos")]
async fn dbos(folder: &Path, lease: Duration) -> Result<Arc<dyn TaskEngine>> {
    use antiphon_dbos::{DbosOptions, DbosTasks};
    let host = folder.display().to_string().replace('/', "%2F");
    let url = format!("postgres://postgres@{host}:5432/postgres");
    Ok(Arc::new(DbosTasks::connect(&url, DbosOptions::default().lease(lease)).await?))
}

#[cfg(not(feature = "dbos"))]
async fn dbos(_: &Path, _: Duration) -> Result<Arc<dyn TaskEngine>> {
    Err(WITHOUT_DBOS.into())
}

/// The reason why a build without the feature refuses `--store dbos`.
pub(crate) const WITHOUT_DBOS: &str = "this build has no DBOS: it needs the feature dbos, as in drill/run.sh";

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
            "postgres" | "dbos" => StoreServer::start_postgres(folder)?,
            "redis" => StoreServer::start_redis(folder)?,
            other => return Err(format!("unknown store {other}").into()),
        };
        let (name, address): (_, fn(&Path) -> Address) = match kind {
            "postgres" => (".s.PGSQL.5432", |folder| Address::Postgres(postgres(folder))),
            "dbos" => (".s.PGSQL.5432", |folder| Address::Dbos(folder.to_owned())),
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
