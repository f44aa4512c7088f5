//! Connections: one statement at a time on each, within the time limit, once more on another connection if one broke.

use super::statements::{
    CREATE_MIGRATIONS, LOCK_MIGRATIONS, MIGRATIONS, Names, PostgresOptions, SCHEMA_EXISTS, SET_VERSION,
    TABLE_EXISTS, VERSION,
};
use crate::error::{StoreError, StoreErrorKind, Written};
use deadpool_postgres::{
    Manager, ManagerConfig, Object, Pool as Connections, PoolError, RecyclingMethod, Runtime,
};
use rustls_platform_verifier::BuilderVerifierExt as _;
use std::{fmt, sync::Arc, time::Duration};
use tokio::time::{Instant, timeout_at};
use tokio_postgres::{
    Client, Config, Connection, Error, Row, Socket, error::SqlState, tls::MakeTlsConnect, types::ToSql,
};
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_rustls::rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject as _},
};

/// The half of a connection that reads and writes.
pub(super) type PostgresConnection =
    Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

/// The rows of a statement.
pub(super) struct Rows {
    pub(super) rows: Vec<Row>,
    /// True if the statement was sent twice, because the first connection broke.
    pub(super) repeated: bool,
}

#[derive(Clone)]
pub(super) struct Pool {
    connections: Connections,
    timeout: Duration,
    /// For connections outside of the pool.
    config: Config,
    tls: MakeRustlsConnect,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.connections.fmt(f)
    }
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
        let tls = connector(options.root_certificates.as_deref())?;
        let manager = Manager::from_config(
            config.clone(),
            tls.clone(),
            ManagerConfig { recycling_method: RecyclingMethod::Fast },
        );
        let connections = Connections::builder(manager)
            .max_size(options.connections)
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| StoreError::read(StoreErrorKind::Invalid, "connect", error))?;
        let pool = Self { connections, timeout: options.timeout, config, tls };
        let mut connection = pool.get("connect", Instant::now() + options.timeout).await?;
        migrate(&mut connection, names, options.migrate).await?;
        Ok(pool)
    }

    /// Returns the maximum time of one operation.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Opens a connection outside of the pool.
    pub(super) async fn connection(&self) -> Result<(Client, PostgresConnection), Error> {
        self.config.connect(self.tls.clone()).await
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

// The versions of the tables: applied in order, by one instance at a time.

/// Creates the missing tables and functions, if `may_change`; otherwise only checks their version.
pub(super) async fn migrate(client: &mut Client, names: &Names, may_change: bool) -> Result<(), StoreError> {
    let fail = |error| of_statement("connect", Written::Unknown, error);
    let newest = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    let mut found = version(client, names).await.map_err(fail)?;
    if found < newest && may_change {
        apply(client, names).await.map_err(fail)?;
        found = version(client, names).await.map_err(fail)?;
    }
    let text = match found {
        _ if found == newest => return Ok(()),
        0 => format!(
            "the tables are not in the schema {}: let a role that may create them connect once with `migrate(true)`",
            names.schema()
        ),
        _ if found < newest => format!(
            "the tables have version {found}, this program needs {newest}: let a role that may change them connect once with `migrate(true)`"
        ),
        _ => format!(
            "the tables have version {found}, this program needs {newest}: a later program changed them"
        ),
    };
    Err(StoreError::read(StoreErrorKind::Version, "connect", text))
}

/// Returns the version of the tables; 0 if there are none.
async fn version(client: &Client, names: &Names) -> Result<i64, Error> {
    let exists: bool = client.query_one(TABLE_EXISTS, &[&names.migrations()]).await?.get(0);
    if !exists {
        return Ok(0);
    }
    Ok(client.query_one(&names.fill(VERSION), &[]).await?.get(0))
}

/// Applies the missing versions in one transaction.
async fn apply(client: &mut Client, names: &Names) -> Result<(), Error> {
    let transaction = client.transaction().await?;
    transaction.query_one(LOCK_MIGRATIONS, &[&names.migrations()]).await?;
    // `IF NOT EXISTS` asks for the right to create a schema even if it is there.
    let exists: bool = transaction.query_one(SCHEMA_EXISTS, &[&names.fill("{schema}")]).await?.get(0);
    if !exists {
        transaction.batch_execute(&names.fill("CREATE SCHEMA {schema}")).await?;
    }
    transaction.batch_execute(&names.fill(CREATE_MIGRATIONS)).await?;
    let found: i64 = transaction.query_one(&names.fill(VERSION), &[]).await?.get(0);
    for (number, migration) in (1_i64..).zip(MIGRATIONS).filter(|(number, _)| *number > found) {
        transaction.batch_execute(&names.fill(migration)).await?;
        transaction.execute(&names.fill(SET_VERSION), &[&number]).await?;
    }
    transaction.commit().await
}

/// Returns a connector that verifies the database's certificate: with these authorities, or with the system's.
fn connector(root_certificates: Option<&[u8]>) -> Result<MakeRustlsConnect, StoreError> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(invalid)?;
    let config = match root_certificates {
        None => builder.with_platform_verifier().map_err(invalid)?.with_no_client_auth(),
        Some(pem) => {
            let mut roots = RootCertStore::empty();
            for certificate in CertificateDer::pem_slice_iter(pem) {
                roots.add(certificate.map_err(invalid)?).map_err(invalid)?;
            }
            if roots.is_empty() {
                return Err(invalid("the root certificates hold no certificate in PEM"));
            }
            builder.with_root_certificates(roots).with_no_client_auth()
        }
    };
    Ok(MakeRustlsConnect::new(config))
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreError {
    StoreError::read(StoreErrorKind::Invalid, "connect", error)
}

/// Returns the error of a statement. `if_lost` is the effect of a statement without a reply.
pub(super) fn of_statement(operation: &'static str, if_lost: Written, error: Error) -> StoreError {
    let (kind, written) = match error.code() {
        Some(code) => of_code(code, if_lost),
        None if is_connection(&error) => (StoreErrorKind::Unreachable, if_lost),
        // A value that does not fit its column, before it was sent or after it was read.
        None => (StoreErrorKind::Corrupt, if_lost),
    };
    StoreError::new(kind, written, operation, error)
}

/// Returns true if the connection broke, so that another connection may work.
pub(super) fn is_connection(error: &Error) -> bool {
    match error.code() {
        Some(code) => is_shutdown(code),
        None => {
            error.is_closed()
                || std::error::Error::source(error).is_some_and(|cause| cause.is::<std::io::Error>())
        }
    }
}

/// Returns the error of a connection that could not be opened: nothing was sent.
fn of_pool(operation: &'static str, error: PoolError) -> StoreError {
    let kind = match &error {
        PoolError::Timeout(_) => StoreErrorKind::Timeout,
        PoolError::Backend(cause) => match cause.code() {
            // A wrong password, a missing role or database.
            Some(code) if code.code().starts_with("28") || *code == SqlState::INVALID_CATALOG_NAME => {
                StoreErrorKind::Invalid
            }
            _ => StoreErrorKind::Unreachable,
        },
        _ => StoreErrorKind::Unreachable,
    };
    StoreError::read(kind, operation, error)
}

/// Returns the kind of a statement that the database refused: its transaction is rolled back.
fn of_code(code: &SqlState, if_lost: Written) -> (StoreErrorKind, Written) {
    if is_shutdown(code) {
        // The session ended. The statement may have been committed just before.
        return (StoreErrorKind::Unreachable, if_lost);
    }
    let kind = match code.code() {
        "57014" => StoreErrorKind::Timeout,
        // The database is a standby now.
        "25006" => StoreErrorKind::Unreachable,
        "42501" => StoreErrorKind::Invalid,
        text => match &text[..2] {
            "53" => StoreErrorKind::Full,
            "40" | "55" => StoreErrorKind::Unreachable,
            // A table or a function is missing, or has other columns.
            "42" => StoreErrorKind::Version,
            "XX" => StoreErrorKind::Corrupt,
            _ => StoreErrorKind::Other,
        },
    };
    (kind, Written::No)
}

fn is_shutdown(code: &SqlState) -> bool {
    matches!(code.code().as_bytes(), [b'0', b'8', ..] | [b'5', b'7', b'P', ..])
}
