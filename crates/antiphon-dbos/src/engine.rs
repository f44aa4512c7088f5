//! The engine, as the trait of engines.

use crate::{
    launch,
    options::DbosOptions,
    shared::{self, APPLICATION, Legs, Shared, Stage},
    tables::{Creation, Tables},
    upkeep,
};
use antiphon_store::{
    NewTask, Owner, StoreError, StoreErrorKind, StoreFuture, StoreReach, TaskCreated, TaskEngine, TaskFuture,
    TaskKey, TaskLimits, TaskListener, TaskProgram, TaskRow, TaskSent, TaskSummary,
};
use dbos::sysdb::{
    SystemDatabase as _,
    postgres::{Config, PostgresSystemDatabase, Settings},
    retry::RetryPolicy,
};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, Weak};
use tokio::sync::{Semaphore, watch};

/// An engine of tasks on DBOS Transact and PostgreSQL, for any number of instances.
///
/// Give it to `ServerBuilder::task_engine`, beside a store of calls that all instances share.
#[derive(Debug)]
pub struct DbosTasks(Arc<Shared>);

impl DbosTasks {
    /// Connects to a database, and creates the tables that are missing: those of dbos and those of tasks. `url` is
    /// `postgres://user@host/database`; its parameters `sslmode` and `sslrootcert` set TLS, as for `psql`.
    ///
    /// # Errors
    ///
    /// [`StoreError`], if the database is not reachable, or an option is wrong.
    pub async fn connect(url: &str, options: DbosOptions) -> Result<Self, StoreError> {
        if let Some(fault) = options.fault() {
            return Err(StoreError::read(StoreErrorKind::Invalid, "connect", fault));
        }
        migrate(url, &options.schema).await?;
        let tables = Tables::connect(url, &options).await?;
        let executor = tables.new_executor().await?;
        let settings = Settings {
            schema: &options.schema,
            // Whoever uses it tries again itself, and does not wait here as long as the database is away.
            retry: RetryPolicy { retry_connection_errors: false, ..RetryPolicy::default() },
            executor_id: Some(&executor),
            application_name: Some(APPLICATION),
            ..Settings::default()
        };
        let shared = Arc::new(Shared {
            system: PostgresSystemDatabase::from_pool(tables.pool().clone(), &settings),
            tables,
            url: url.to_owned(),
            places: Semaphore::new(options.running.min(Semaphore::MAX_PERMITS)),
            options,
            executor,
            program: OnceLock::new(),
            launched: OnceLock::new(),
            legs: Arc::new(Legs::new()),
            runs: Arc::default(),
            stage: watch::Sender::new(Stage::Connected),
            listeners: RwLock::default(),
        });
        tokio::spawn(launch::run(Arc::downgrade(&shared)));
        Ok(Self(shared))
    }
}

/// Brings the tables of dbos up to date.
async fn migrate(url: &str, schema: &str) -> Result<(), StoreError> {
    let settings = Settings { schema, ..Settings::default() };
    let config = Config { max_connections: 1, settings, ..Config::new(url) };
    let failed = |error| StoreError::read(StoreErrorKind::Unreachable, "connect", error);
    let system = PostgresSystemDatabase::connect(&config).await.map_err(failed)?;
    system.close().await;
    Ok(())
}

impl Drop for DbosTasks {
    /// Gives the tasks of this instance back, if the runtime still runs.
    fn drop(&mut self) {
        upkeep::begin(&self.0);
    }
}

impl TaskEngine for DbosTasks {
    fn start<'a>(&'a self, task: &'a NewTask, limits: &'a TaskLimits) -> StoreFuture<'a, TaskCreated> {
        Box::pin(async {
            let created = loop {
                match self.0.tables.create(task, limits).await? {
                    Creation::Done(created) => break created,
                    Creation::Expired => upkeep::remove(&self.0, &[task.task]).await?,
                }
            };
            // The task is durable: the request does not wait for its workflow. If that cannot start now, the upkeep of any instance
            // starts it.
            if created == TaskCreated::First {
                let (shared, task) = (Arc::clone(&self.0), task.task);
                tokio::spawn(async move { shared::start(&shared, task).await });
            }
            Ok(created)
        })
    }

    fn get(&self, task: TaskKey) -> StoreFuture<'_, Option<TaskRow>> {
        Box::pin(self.0.tables.get(task))
    }

    fn send<'a>(
        &'a self,
        task: TaskKey,
        message: &'a [u8],
        limits: &'a TaskLimits,
    ) -> StoreFuture<'a, TaskSent> {
        Box::pin(async move {
            let (sent, number) = self.0.tables.send(task, message, limits).await?;
            // The message is durable. If dbos does not get its announcement now, the upkeep of any instance repeats it.
            if sent == TaskSent::Queued {
                let shared = Arc::clone(&self.0);
                tokio::spawn(async move { shared::announce(&shared, task, number).await });
            }
            Ok(sent)
        })
    }

    fn subscribe(&self, listener: TaskListener) {
        self.0.listeners.write().unwrap_or_else(PoisonError::into_inner).push(listener);
    }

    fn list(&self, limit: usize) -> StoreFuture<'_, Vec<TaskSummary>> {
        Box::pin(self.0.tables.list(limit))
    }

    fn list_of_owner(
        &self,
        owner: Owner,
        after: Option<TaskKey>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<TaskKey>> {
        Box::pin(self.0.tables.list_of_owner(owner, after, limit))
    }

    fn begin(&self, program: Weak<dyn TaskProgram>) {
        launch::begin(&self.0, program);
    }

    fn drain(&self) {
        upkeep::begin(&self.0);
    }

    fn idle(&self) -> TaskFuture<'_, ()> {
        Box::pin(async {
            self.0.legs.idle().await;
            if self.0.stage() >= Stage::Draining {
                // The sender is here, so there is no error.
                let _ = self.0.stage.subscribe().wait_for(|stage| *stage == Stage::HandedOver).await;
            }
        })
    }

    fn reach(&self) -> StoreReach {
        StoreReach::Fleet
    }
}
