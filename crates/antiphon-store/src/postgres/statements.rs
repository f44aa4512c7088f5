//! The options of a PostgreSQL store, and its statements, with the names of the tables filled in once.

use crate::{
    clock::StoreClock,
    error::{StoreError, StoreErrorKind},
};
use std::time::Duration;

/// The tables and functions of each version.
pub(super) const MIGRATIONS: [&str; 1] = [include_str!("schema_1.sql")];

/// The table of versions that were applied.
pub(super) const CREATE_MIGRATIONS: &str = "
    CREATE TABLE IF NOT EXISTS {migrations} (
        version bigint NOT NULL PRIMARY KEY,
        applied_at timestamptz NOT NULL DEFAULT now()
    )";

/// Returns the latest version that was applied.
pub(super) const VERSION: &str = "SELECT coalesce(max(version), 0) FROM {migrations}";

/// Records a version.
pub(super) const SET_VERSION: &str = "INSERT INTO {migrations} (version) VALUES ($1)";

/// One migration at a time, until the end of the transaction. `$1` is the name of the table of migrations.
pub(super) const LOCK_MIGRATIONS: &str =
    "SELECT pg_advisory_xact_lock(hashtextextended('antiphon ' || $1, 0))";

/// Returns true if the schema is there.
pub(super) const SCHEMA_EXISTS: &str = "SELECT to_regnamespace($1) IS NOT NULL";

/// Returns true if the table is there.
pub(super) const TABLE_EXISTS: &str = "SELECT to_regclass($1) IS NOT NULL";

/// The statements of the operations. `$1` is the time of a test, or null.
#[derive(Debug)]
pub(super) struct Statements {
    pub(super) claim: String,
    pub(super) renew: String,
    pub(super) append: String,
    pub(super) commit: String,
    pub(super) release: String,
    pub(super) load: String,
    pub(super) put: String,
    pub(super) get: String,
    pub(super) sweep_calls: String,
    pub(super) sweep_blobs: String,
    pub(super) begin: String,
    pub(super) append_in_transaction: String,
}

/// Asks to run a leg.
const CLAIM: &str = "
    SELECT result, fence, rest, outcome, unknown_leg, step, attempt
    FROM {claim()}($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";

/// Extends the lease.
const RENEW: &str = "SELECT {renew()}($1, $2, $3, $4)";

/// Appends a step's record.
const APPEND: &str = "SELECT written, existing FROM {append()}($1, $2, $3, $4, $5, $6)";

/// Stores the outcome.
const COMMIT: &str = "SELECT {commit()}($1, $2, $3, $4)";

/// Gives the leg back.
const RELEASE: &str = "SELECT {release()}($1, $2, $3)";

/// Returns the steps of a call whose row has not expired.
const LOAD: &str = "
    SELECT s.step, s.event, s.value FROM {steps} AS s JOIN {calls} AS c ON c.call = s.call
    WHERE c.call = $2 AND c.expires_at > {now()}($1) ORDER BY s.number";

/// Stores a blob, or extends its time. The bytes of a blob never change.
const PUT: &str = "
    INSERT INTO {blobs} AS b (digest, value, keep_until) VALUES ($2, $3, {now()}($1) + $4)
    ON CONFLICT (digest) DO UPDATE SET keep_until = greatest(b.keep_until, excluded.keep_until)";

/// Returns a blob whose time is not over.
const GET: &str = "SELECT value FROM {blobs} WHERE digest = $2 AND keep_until > {now()}($1)";

/// Removes the calls that expired first, and their steps. Rows that another instance has locked are left for later.
const SWEEP_CALLS: &str = "
    WITH removed AS (
        DELETE FROM {calls} WHERE call IN (
            SELECT call FROM {calls} WHERE expires_at <= {now()}($1)
            ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED
        ) RETURNING 1
    ) SELECT count(*) FROM removed";

/// Removes the blobs that expired first.
const SWEEP_BLOBS: &str = "
    WITH removed AS (
        DELETE FROM {blobs} WHERE digest IN (
            SELECT digest FROM {blobs} WHERE keep_until <= {now()}($1)
            ORDER BY keep_until LIMIT $2 FOR UPDATE SKIP LOCKED
        ) RETURNING 1
    ) SELECT count(*) FROM removed";

/// Begins a transaction with writes of the program. If the program is stopped in it, the database ends it after the time limit.
/// The setting `antiphon.transaction` ends with the transaction.
const BEGIN: &str = "
    BEGIN;
    SET LOCAL idle_in_transaction_session_timeout = {timeout};
    SET LOCAL antiphon.transaction = 'open'";

/// Appends a step's record in such a transaction. The row of the call stays locked until the end of the transaction. `is_open` is
/// false if the program has ended the transaction itself.
const APPEND_IN_TRANSACTION: &str = "
    SELECT coalesce(current_setting('antiphon.transaction', true), '') = 'open' AS is_open, written, existing
    FROM {append()}($1, $2, $3, $4, $5, $6)";

impl Statements {
    pub(super) fn new(names: &Names, timeout: Duration) -> Self {
        Self {
            claim: names.fill(CLAIM),
            renew: names.fill(RENEW),
            append: names.fill(APPEND),
            commit: names.fill(COMMIT),
            release: names.fill(RELEASE),
            load: names.fill(LOAD),
            put: names.fill(PUT),
            get: names.fill(GET),
            sweep_calls: names.fill(SWEEP_CALLS),
            sweep_blobs: names.fill(SWEEP_BLOBS),
            begin: BEGIN.replace("{timeout}", &timeout.as_millis().max(1).to_string()),
            append_in_transaction: names.fill(APPEND_IN_TRANSACTION),
        }
    }
}

/// The maximum length of the schema's name and of the prefix: PostgreSQL cuts names to 63 bytes.
const MAX_NAME: usize = 40;

/// The schema and the prefix, checked: lowercase letters, digits and underscores.
#[derive(Clone, Debug)]
pub(super) struct Names {
    schema: String,
    prefix: String,
}

impl Names {
    pub(super) fn new(options: &PostgresOptions) -> Result<Self, StoreError> {
        let plain = |name: &str| {
            name.len() <= MAX_NAME
                && !name.starts_with(|first: char| first.is_ascii_digit())
                && name.chars().all(|char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '_')
        };
        for (what, name, may_be_empty) in
            [("schema", &options.schema, false), ("table prefix", &options.table_prefix, true)]
        {
            if !plain(name) || (name.is_empty() && !may_be_empty) {
                let text = format!(
                    "the {what} {name:?} has other characters than a-z, 0-9 and _, begins with a digit, or is longer than {MAX_NAME}"
                );
                return Err(StoreError::read(StoreErrorKind::Invalid, "connect", text));
            }
        }
        Ok(Self { schema: options.schema.clone(), prefix: options.table_prefix.clone() })
    }

    pub(super) fn schema(&self) -> &str {
        &self.schema
    }

    /// Returns the name of the table of migrations.
    pub(super) fn migrations(&self) -> String {
        self.fill("{migrations}")
    }

    /// Returns a statement with the names in the places of `{name}`. The names are checked, so quotes are enough.
    pub(super) fn fill(&self, statement: &str) -> String {
        const NAMES: [&str; 10] =
            ["migrations", "calls", "steps", "blobs", "now", "claim", "renew", "append", "commit", "release"];
        let mut filled = statement.replace("{schema}", &format!("\"{}\"", self.schema));
        for name in NAMES {
            let qualified = format!("\"{}\".\"{}{name}\"", self.schema, self.prefix);
            filled = filled.replace(&format!("{{{name}}}"), &qualified);
            let function = format!("\"{}\".\"{}{name}_v1\"", self.schema, self.prefix);
            filled = filled.replace(&format!("{{{name}()}}"), &function);
            filled = filled.replace(&format!("{{{name}:}}"), &format!("\"{}{name}\"", self.prefix));
        }
        filled
    }
}

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

    /// Sets the clock of a test, so that it need not wait, and can compare moments. Every instance on the same tables must have the same
    /// one.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn test_clock(mut self, clock: StoreClock) -> Self {
        self.test_clock = Some(clock);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_and_filled() {
        let names = |schema: &str, prefix: &str| {
            Names::new(&PostgresOptions::default().schema(schema).table_prefix(prefix))
                .map_err(|error| error.kind())
        };
        assert_eq!(
            names("mine", "mcp_").unwrap().fill("{claim()} {calls}"),
            r#""mine"."mcp_claim_v1" "mine"."mcp_calls""#
        );
        for (schema, prefix) in
            [("", ""), ("a\"b", ""), ("A", ""), ("1a", ""), ("a", "x;"), ("a", "2"), (&"a".repeat(41), "")]
        {
            assert_eq!(
                names(schema, prefix).map(drop),
                Err(StoreErrorKind::Invalid),
                "{schema:?} {prefix:?}"
            );
        }
    }
}
