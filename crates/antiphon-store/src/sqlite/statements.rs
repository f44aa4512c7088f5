//! The statements. Times are microseconds since 1970.

/// The tables of version 1, which has no tasks. `phase` is 0 while a leg runs, 1 when it has an outcome, 2 when it was released. `event` of a step is
/// the number of an attempt that started, or 0 for its end. `seen` is the latest time of any write.
pub(super) const CREATE_TABLES: &str = "
    CREATE TABLE antiphon_calls (
        call BLOB NOT NULL PRIMARY KEY,
        leg INTEGER NOT NULL,
        fingerprint BLOB NOT NULL,
        runner BLOB NOT NULL,
        fence INTEGER NOT NULL,
        phase INTEGER NOT NULL,
        lease_until INTEGER NOT NULL,
        outcome BLOB NOT NULL,
        keep_until INTEGER NOT NULL,
        expires_at INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX antiphon_calls_expiry ON antiphon_calls (expires_at);
    CREATE TABLE antiphon_steps (
        call BLOB NOT NULL REFERENCES antiphon_calls (call) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        leg INTEGER NOT NULL,
        step TEXT NOT NULL,
        event INTEGER NOT NULL,
        value BLOB NOT NULL,
        PRIMARY KEY (call, step, event)
    ) STRICT;
    CREATE TABLE antiphon_blobs (
        digest BLOB NOT NULL PRIMARY KEY,
        value BLOB NOT NULL,
        keep_until INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX antiphon_blobs_expiry ON antiphon_blobs (keep_until);
    CREATE TABLE antiphon_store (
        id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
        version INTEGER NOT NULL,
        seen INTEGER NOT NULL
    ) STRICT;
    INSERT INTO antiphon_store (id, version, seen) VALUES (1, 1, 0);
";

/// Returns a row if the tables exist.
pub(super) const TABLES_EXIST: &str =
    "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'antiphon_store'";

/// Returns the version of the tables.
pub(super) const VERSION: &str = "SELECT version FROM antiphon_store WHERE id = 1";

/// Returns the latest time of any write.
pub(super) const SEEN: &str = "SELECT seen FROM antiphon_store WHERE id = 1";

/// Sets the latest time of any write.
pub(super) const SET_SEEN: &str = "UPDATE antiphon_store SET seen = ?1 WHERE id = 1 AND seen < ?1";

/// Returns the row of a call.
pub(super) const FIND_CALL: &str = "
    SELECT leg, fingerprint, runner, fence, phase, lease_until, outcome, keep_until
    FROM antiphon_calls WHERE call = ?1";

/// Removes the row of a call and its steps.
pub(super) const DELETE_CALL: &str = "DELETE FROM antiphon_calls WHERE call = ?1";

/// Creates the row of a call, or replaces its columns. Its steps stay.
pub(super) const WRITE_CALL: &str = "
    INSERT INTO antiphon_calls
        (call, leg, fingerprint, runner, fence, phase, lease_until, outcome, keep_until, expires_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
    ON CONFLICT (call) DO UPDATE SET
        leg = excluded.leg, fingerprint = excluded.fingerprint, runner = excluded.runner, fence = excluded.fence,
        phase = excluded.phase, lease_until = excluded.lease_until, outcome = excluded.outcome,
        keep_until = excluded.keep_until, expires_at = excluded.expires_at";

/// Returns the steps of a call without their values, in the order in which they were appended.
pub(super) const FIND_MARKS: &str =
    "SELECT leg, step, event FROM antiphon_steps WHERE call = ?1 ORDER BY number";

/// Returns the steps of a call whose row has not expired.
pub(super) const LOAD_STEPS: &str = "
    SELECT step, event, value FROM antiphon_steps
    WHERE call = ?1 AND EXISTS (SELECT 1 FROM antiphon_calls WHERE call = ?1 AND expires_at > ?2)
    ORDER BY number";

/// Returns the value of a step's record.
pub(super) const FIND_VALUE: &str =
    "SELECT value FROM antiphon_steps WHERE call = ?1 AND step = ?2 AND event = ?3";

/// Appends a step's record.
pub(super) const WRITE_STEP: &str = "
    INSERT INTO antiphon_steps (call, number, leg, step, event, value)
    VALUES (?1, (SELECT count(*) FROM antiphon_steps WHERE call = ?1), ?2, ?3, ?4, ?5)";

/// Stores a blob, or extends its time. The bytes of a blob never change.
pub(super) const WRITE_BLOB: &str = "
    INSERT INTO antiphon_blobs (digest, value, keep_until) VALUES (?1, ?2, ?3)
    ON CONFLICT (digest) DO UPDATE SET keep_until = max(keep_until, excluded.keep_until)";

/// Returns a blob whose time is not over.
pub(super) const FIND_BLOB: &str = "SELECT value FROM antiphon_blobs WHERE digest = ?1 AND keep_until > ?2";

/// Removes the calls that expired first, and their steps.
pub(super) const SWEEP_CALLS: &str = "
    DELETE FROM antiphon_calls WHERE call IN
        (SELECT call FROM antiphon_calls WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)";

/// Removes the blobs that expired first.
pub(super) const SWEEP_BLOBS: &str = "
    DELETE FROM antiphon_blobs WHERE digest IN
        (SELECT digest FROM antiphon_blobs WHERE keep_until <= ?1 ORDER BY keep_until LIMIT ?2)";
