//! The statements on tasks. Times are microseconds since 1970.

/// The tables of version 2. A snapshot has a table of its own, so that a lease is renewed without writing the snapshot again. `plan`
/// is 0 while a task is ready, 1 while it waits, 2 when it is final; `plan_at` is the moment of that plan, if it has one. `due_at` is the moment from which the task is due, if there is one.
pub(super) const CREATE_TABLES: &str = "
    CREATE TABLE antiphon_tasks (
        task BLOB NOT NULL PRIMARY KEY,
        owner BLOB NOT NULL,
        version INTEGER NOT NULL,
        numbered INTEGER NOT NULL,
        fence INTEGER NOT NULL,
        runner BLOB,
        lease_until INTEGER,
        plan INTEGER NOT NULL,
        plan_at INTEGER,
        due_at INTEGER,
        expires_at INTEGER,
        created_at INTEGER NOT NULL,
        changed_at INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX antiphon_tasks_due ON antiphon_tasks (due_at) WHERE due_at IS NOT NULL;
    CREATE INDEX antiphon_tasks_expiry ON antiphon_tasks (expires_at) WHERE expires_at IS NOT NULL;
    CREATE INDEX antiphon_tasks_of_owner ON antiphon_tasks (owner, task);
    CREATE INDEX antiphon_tasks_open ON antiphon_tasks (owner, plan, expires_at) WHERE plan < 2;
    CREATE TABLE antiphon_task_snapshots (
        task BLOB NOT NULL PRIMARY KEY REFERENCES antiphon_tasks (task) ON DELETE CASCADE,
        snapshot BLOB NOT NULL
    ) STRICT;
    CREATE TABLE antiphon_task_messages (
        task BLOB NOT NULL REFERENCES antiphon_tasks (task) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY (task, number)
    ) STRICT;
    UPDATE antiphon_store SET version = 2 WHERE id = 1;
";

/// Returns the row of a task, without its snapshot.
pub(super) const FIND: &str = "
    SELECT version, numbered, fence, runner, lease_until, plan, plan_at, expires_at, created_at, changed_at
    FROM antiphon_tasks WHERE task = ?1 AND (expires_at IS NULL OR expires_at > ?2)";

/// Returns the snapshot of a task.
pub(super) const SNAPSHOT: &str = "SELECT snapshot FROM antiphon_task_snapshots WHERE task = ?1";

/// Returns the number of the row that has the snapshot of a task, and its length, which is read without the snapshot.
pub(super) const SNAPSHOT_LENGTH: &str =
    "SELECT rowid, length(snapshot) FROM antiphon_task_snapshots WHERE task = ?1";

/// Returns the messages of a task, in the order of their arrival.
pub(super) const MESSAGES: &str =
    "SELECT number, body FROM antiphon_task_messages WHERE task = ?1 ORDER BY number";

/// Returns the number of messages of a task, and of their bytes.
pub(super) const QUEUE: &str = "SELECT count(*), coalesce(sum(length(body)), 0) FROM antiphon_task_messages WHERE task = ?1 AND number > ?2";

/// Returns the number of tasks that are neither final nor gone: all, and those of one owner.
pub(super) const OPEN: &str =
    "SELECT count(*) FROM antiphon_tasks WHERE plan < 2 AND (expires_at IS NULL OR expires_at > ?1)";
pub(super) const OPEN_OF_OWNER: &str = "
    SELECT count(*) FROM antiphon_tasks
    WHERE plan < 2 AND owner = ?2 AND (expires_at IS NULL OR expires_at > ?1)";

/// Removes the row of a task and its messages.
pub(super) const DELETE: &str = "DELETE FROM antiphon_tasks WHERE task = ?1";

/// Creates the row of a task.
pub(super) const CREATE: &str = "
    INSERT INTO antiphon_tasks (task, owner, version, numbered, fence, plan, created_at, changed_at)
    VALUES (?1, ?2, 0, 0, 0, 0, ?3, ?3)";

/// Replaces the columns of a row, except for its snapshot.
pub(super) const WRITE: &str = "
    UPDATE antiphon_tasks SET
        version = ?2, numbered = ?3, fence = ?4, runner = ?5, lease_until = ?6, plan = ?7, plan_at = ?8, due_at = ?9,
        expires_at = ?10, changed_at = ?11
    WHERE task = ?1";

/// Replaces the snapshot of a row.
pub(super) const WRITE_SNAPSHOT: &str = "
    INSERT INTO antiphon_task_snapshots (task, snapshot) VALUES (?1, ?2)
    ON CONFLICT (task) DO UPDATE SET snapshot = excluded.snapshot";

/// Adds a message.
pub(super) const ADD_MESSAGE: &str =
    "INSERT INTO antiphon_task_messages (task, number, body) VALUES (?1, ?2, ?3)";

/// Removes the messages up to a number.
pub(super) const TAKE_MESSAGES: &str = "DELETE FROM antiphon_task_messages WHERE task = ?1 AND number <= ?2";

/// Returns the tasks that are due.
pub(super) const DUE: &str = "
    SELECT task FROM antiphon_tasks
    WHERE due_at <= ?1 AND (expires_at IS NULL OR expires_at > ?1) ORDER BY due_at, task LIMIT ?2";

/// Returns the rows of all tasks, without their content.
pub(super) const LIST: &str = "
    SELECT version, numbered, fence, runner, lease_until, plan, plan_at, expires_at, created_at, changed_at, task,
        (SELECT length(snapshot) FROM antiphon_task_snapshots AS s WHERE s.task = t.task),
        (SELECT count(*) FROM antiphon_task_messages AS m WHERE m.task = t.task)
    FROM antiphon_tasks AS t WHERE expires_at IS NULL OR expires_at > ?1 ORDER BY created_at, task LIMIT ?2";

/// Returns the tasks of one owner after a key, if there is one.
pub(super) const LIST_OF_OWNER: &str = "
    SELECT task FROM antiphon_tasks
    WHERE owner = ?2 AND task > coalesce(?3, x'') AND (expires_at IS NULL OR expires_at > ?1) ORDER BY task LIMIT ?4";

/// Removes the tasks that expired first and are not held, and their messages.
pub(super) const SWEEP: &str = "
    DELETE FROM antiphon_tasks WHERE task IN
        (SELECT task FROM antiphon_tasks WHERE expires_at <= ?1 AND coalesce(lease_until, 0) <= ?1
         ORDER BY expires_at LIMIT ?2)";

#[cfg(test)]
mod tests {
    use rusqlite::{Connection, params};

    use super::super::statements;
    use super::{CREATE_TABLES, OPEN, OPEN_OF_OWNER};

    fn tables() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(statements::CREATE_TABLES).unwrap();
        connection.execute_batch(CREATE_TABLES).unwrap();
        connection
    }

    /// Each creation counts tasks: it reads the index only, and no row.
    #[test]
    fn open_tasks_are_counted_in_the_index() {
        let connection = tables();
        let plan = |statement: &str, columns: &[&dyn rusqlite::ToSql]| -> String {
            let explain = format!("EXPLAIN QUERY PLAN {statement}");
            connection.query_row(&explain, columns, |row| row.get("detail")).unwrap()
        };
        for plan in [plan(OPEN, params![1]), plan(OPEN_OF_OWNER, params![1, [1_u8; 16]])] {
            assert!(plan.contains("COVERING INDEX antiphon_tasks_open"), "{plan}");
        }
    }
}
