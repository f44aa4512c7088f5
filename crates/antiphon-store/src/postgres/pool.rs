//! Connections: one statement at a time on each, within the time limit, once more on another connection if one broke.

use std::time::Duration;

use deadpool_postgres::{
    Manager, ManagerConfig, Object, Pool as Connections, PoolError, RecyclingMethod, Runtime,
};
use tokio::time::{Instant, timeout_at};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Config, Row};

use super::error::{is_connection, of_pool, of_statement};
use super::names::Names;
use super::options::PostgresOptions;
use super::{migrate, tls};
use crate::error::{StoreError, StoreErrorKind, Written};

/// The rows of a statement.
pub(super) struct Rows {
    pub(super) rows: Vec<Row>,
    /// True if the statement was sent twice, because the first connection broke.
    pub(super) repeated: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Pool {
    connections: Connections,
    timeout: Duration,
}

impl Pool {
    /// Connects once, and creates or checks the tables.
    pub(super) async fn connect(
        url: &str,
        names: &Names,
        options: &PostgresOptions,
    ) -> Result<Self, StoreError> {
        let mut config: Config =
            url.parse().map_err(|error| StoreError::read(StoreErrorKind::Invalid, "connect", error))?;
        let limit = format!("-c statement_timeout={}", options.timeout.as_millis().max(1));
        config.options(match config.get_options() {
            Some(own) => format!("{limit} {own}"),
            None => limit,
        });
        if config.get_application_name().is_none() {
            config.application_name("antiphon");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(options.timeout);
        }
        let tls = tls::connector(options.root_certificates.as_deref())?;
        let manager =
            Manager::from_config(config, tls, ManagerConfig { recycling_method: RecyclingMethod::Fast });
        let connections = Connections::builder(manager)
            .max_size(options.connections)
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| StoreError::read(StoreErrorKind::Invalid, "connect", error))?;
        let pool = Self { connections, timeout: options.timeout };
        let mut connection = pool.get("connect", Instant::now() + options.timeout).await?;
        migrate::migrate(&mut connection, names, options.migrate).await?;
        Ok(pool)
    }

    /// Returns the maximum time of one operation.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Runs one statement, which is one transaction. `if_lost` is the effect of a statement without a reply.
    pub(super) async fn query(
        &self,
        operation: &'static str,
        if_lost: Written,
        statement: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Rows, StoreError> {
        let deadline = Instant::now() + self.timeout;
        let mut repeated = false;
        loop {
            let connection =
                self.get(operation, deadline).await.map_err(|error| after(repeated, if_lost, error))?;
            let query = async {
                let prepared = connection.prepare_cached(statement).await?;
                connection.query(&prepared, values).await
            };
            let result = timeout_at(deadline, query).await;
            match result {
                Ok(Ok(rows)) => return Ok(Rows { rows, repeated }),
                // Every operation may be repeated, so the caller need not know.
                Ok(Err(error)) if is_connection(&error) && !repeated => {
                    discard(connection);
                    repeated = true;
                }
                Ok(Err(error)) => {
                    let error = of_statement(operation, if_lost, error);
                    return Err(after(repeated, if_lost, error));
                }
                Err(elapsed) => {
                    // The statement may still run on this connection.
                    discard(connection);
                    return Err(StoreError::new(StoreErrorKind::Timeout, if_lost, operation, elapsed));
                }
            }
        }
    }

    pub(super) async fn get(&self, operation: &'static str, deadline: Instant) -> Result<Object, StoreError> {
        match timeout_at(deadline, self.connections.get()).await {
            Ok(connection) => connection.map_err(|error: PoolError| of_pool(operation, error)),
            Err(elapsed) => Err(StoreError::read(StoreErrorKind::Timeout, operation, elapsed)),
        }
    }
}

/// Takes a connection out of the pool and closes it.
pub(super) fn discard(connection: Object) {
    drop(Object::take(connection));
}

/// Returns the error of a second attempt: the first one may have been written.
fn after(repeated: bool, if_lost: Written, error: StoreError) -> StoreError {
    if repeated { error.with_written(if_lost) } else { error }
}
