//! Options of a PostgreSQL store.

use std::time::Duration;

use crate::clock::StoreClock;

/// The options of a [`PostgresStore`](super::PostgresStore).
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    pub(super) schema: String,
    pub(super) table_prefix: String,
    pub(super) timeout: Duration,
    pub(super) connections: usize,
    pub(super) migrate: bool,
    pub(super) root_certificates: Option<Vec<u8>>,
    /// A clock of a test, in the place of the database's.
    pub(super) test_clock: Option<StoreClock>,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            schema: "antiphon".to_owned(),
            table_prefix: String::new(),
            timeout: Duration::from_secs(5),
            connections: 16,
            migrate: true,
            root_certificates: None,
            test_clock: None,
        }
    }
}

impl PostgresOptions {
    /// Sets the schema of the tables and functions; `antiphon` by default. A missing schema is created, if the role may do that.
    #[must_use]
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = schema.into();
        self
    }

    /// Sets the beginning of the names of tables and functions, for a schema that others use too; empty by default.
    #[must_use]
    pub fn table_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.table_prefix = prefix.into();
        self
    }

    /// Sets the maximum time of one operation, the wait for a connection included; 5 seconds by default. The database gets the
    /// same limit for each statement (`statement_timeout`).
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the maximum number of connections; 16 by default. An operation has a connection for one statement only.
    #[must_use]
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = connections.max(1);
        self
    }

    /// Sets whether missing tables and functions are created; true by default. Otherwise their version is only checked, and the
    /// role needs no rights but those on the tables and functions.
    #[must_use]
    pub fn migrate(mut self, migrate: bool) -> Self {
        self.migrate = migrate;
        self
    }

    /// Sets the certificate authorities, as PEM, in the place of the system's.
    #[must_use]
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.root_certificates = Some(pem.into());
        self
    }
}
