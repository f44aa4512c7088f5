//! The statements on the tables of tasks. `{s}` stands for the schema.

/// The tables of version 1, whose number is part of their names. `state` is 0 for a task that is about to run, 1 while a leg runs, 2
/// while the task waits, 3 when it is final. `turn` counts the recorded decisions that the row shows: a decision is written once,
/// and a run that fell behind writes nothing. Messages up to `taken` are in the snapshot.
pub(super) const CREATE_TABLES: &str = "
    CREATE TABLE IF NOT EXISTS {s}.antiphon_tasks_1 (
        task bytea NOT NULL PRIMARY KEY,
        owner bytea NOT NULL,
        snapshot bytea NOT NULL,
        version bigint NOT NULL DEFAULT 1,
        numbered bigint NOT NULL DEFAULT 0,
        taken bigint NOT NULL DEFAULT 0,
        turn bigint NOT NULL DEFAULT 0,
        state smallint NOT NULL DEFAULT 0,
        is_started boolean NOT NULL DEFAULT false,
        created_at timestamptz NOT NULL DEFAULT now(),
        changed_at timestamptz NOT NULL DEFAULT now(),
        expires_at timestamptz
    );
    CREATE INDEX IF NOT EXISTS antiphon_tasks_1_of_owner ON {s}.antiphon_tasks_1 (owner, task);
    CREATE INDEX IF NOT EXISTS antiphon_tasks_1_open ON {s}.antiphon_tasks_1 (owner, expires_at) WHERE state < 3;
    CREATE INDEX IF NOT EXISTS antiphon_tasks_1_expiry ON {s}.antiphon_tasks_1 (expires_at) WHERE expires_at IS NOT NULL;
    CREATE INDEX IF NOT EXISTS antiphon_tasks_1_unstarted ON {s}.antiphon_tasks_1 (created_at) WHERE NOT is_started;
    CREATE INDEX IF NOT EXISTS antiphon_tasks_1_age ON {s}.antiphon_tasks_1 (created_at, task);
    CREATE TABLE IF NOT EXISTS {s}.antiphon_messages_1 (
        task bytea NOT NULL REFERENCES {s}.antiphon_tasks_1 (task) ON DELETE CASCADE,
        number bigint NOT NULL,
        body bytea NOT NULL,
        is_announced boolean NOT NULL DEFAULT false,
        sent_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (task, number)
    );
    CREATE INDEX IF NOT EXISTS antiphon_messages_1_unannounced ON {s}.antiphon_messages_1 (sent_at) WHERE NOT is_announced;
    CREATE TABLE IF NOT EXISTS {s}.antiphon_executors_1 (
        executor text NOT NULL PRIMARY KEY,
        seen_at timestamptz NOT NULL DEFAULT now()
    );";

/// Waits for other instances that create tables now.
pub(super) const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtextextended('antiphon tasks ' || $1, 0))";

/// Returns true if a task is there, false if its time is over, nothing if there is none.
pub(super) const EXISTS: &str =
    "SELECT expires_at IS NULL OR expires_at > now() FROM {s}.antiphon_tasks_1 WHERE task = $1";

/// Removes a task, and its messages.
pub(super) const DELETE: &str = "DELETE FROM {s}.antiphon_tasks_1 WHERE task = ANY($1)";

/// Returns the number of tasks that are neither final nor gone, up to a limit: of all owners, or of one.
pub(super) const OPEN: &str = "
    SELECT count(*) FROM (
        SELECT FROM {s}.antiphon_tasks_1
        WHERE state < 3 AND ($1::bytea IS NULL OR owner = $1) AND (expires_at IS NULL OR expires_at > now()) LIMIT $2
    ) AS open";

/// Creates a task, unless it is there.
pub(super) const CREATE: &str = "
    INSERT INTO {s}.antiphon_tasks_1 (task, owner, snapshot, expires_at)
    VALUES ($1, $2, $3, now() + make_interval(secs => $4)) ON CONFLICT (task) DO NOTHING";

/// Notes that dbos has the workflow of a task.
pub(super) const STARTED: &str = "UPDATE {s}.antiphon_tasks_1 SET is_started = true WHERE task = $1";

/// Returns a task with its messages.
pub(super) const GET: &str = "
    SELECT snapshot, version, state,
        ARRAY(SELECT number FROM {s}.antiphon_messages_1 AS m
              WHERE m.task = t.task AND number > taken AND state < 3 ORDER BY number) AS numbers,
        ARRAY(SELECT body FROM {s}.antiphon_messages_1 AS m
              WHERE m.task = t.task AND number > taken AND state < 3 ORDER BY number) AS bodies
    FROM {s}.antiphon_tasks_1 AS t WHERE task = $1 AND (expires_at IS NULL OR expires_at > now())";

/// Locks a task, so that messages get their numbers one after the other.
pub(super) const LOCK_TASK: &str = "
    SELECT state, numbered, taken FROM {s}.antiphon_tasks_1
    WHERE task = $1 AND (expires_at IS NULL OR expires_at > now()) FOR UPDATE";

/// Returns the number and the bytes of the messages that wait.
pub(super) const QUEUE: &str = "
    SELECT count(*), coalesce(sum(octet_length(body)), 0)::bigint FROM {s}.antiphon_messages_1
    WHERE task = $1 AND number > $2";

/// Adds a message, and reports it.
pub(super) const SEND: &str = "
    WITH added AS (INSERT INTO {s}.antiphon_messages_1 (task, number, body) VALUES ($1, $2, $3)),
    noted AS (UPDATE {s}.antiphon_tasks_1 SET numbered = $2, version = version + 1, changed_at = now() WHERE task = $1)
    SELECT pg_notify($4, $5)";

/// Notes that dbos has the announcement of a message.
pub(super) const ANNOUNCED: &str =
    "UPDATE {s}.antiphon_messages_1 SET is_announced = true WHERE task = $1 AND number = $2";

/// Returns the snapshot of a task, if the row shows this turn.
pub(super) const SHOWN: &str = "SELECT snapshot FROM {s}.antiphon_tasks_1 WHERE task = $1 AND turn = $2";

/// Returns the messages above a number, if the task is there.
pub(super) const MESSAGES: &str = "
    SELECT number, body FROM {s}.antiphon_messages_1 WHERE task = $1 AND number > $2 ORDER BY number";

/// Writes a decision into the row of its task, once, and reports the change. The last argument is the time for which a final task
/// is kept.
pub(super) const WRITE: &str = "
    WITH changed AS (
        UPDATE {s}.antiphon_tasks_1 SET
            snapshot = $3, taken = greatest(taken, $4), turn = $2, state = $5, version = version + 1, changed_at = now(),
            expires_at = CASE WHEN $6::double precision IS NULL THEN expires_at
                              ELSE greatest(expires_at, now() + make_interval(secs => $6)) END
        WHERE task = $1 AND turn < $2 AND state < 3 RETURNING task
    ),
    gone AS (
        DELETE FROM {s}.antiphon_messages_1
        WHERE task IN (SELECT task FROM changed) AND (number <= $4 OR $5 = 3)
    )
    SELECT pg_notify($7, $8) FROM changed";

/// Returns true if an instance has the workflow of a task.
pub(super) const IS_OF: &str =
    "SELECT EXISTS (SELECT FROM {s}.workflow_status WHERE workflow_uuid = $1 AND executor_id = $2)";

/// Replaces the snapshot that the row of a running leg shows, and reports the change. The instance has the workflow.
pub(super) const SHOW: &str = "
    WITH changed AS (
        UPDATE {s}.antiphon_tasks_1 SET snapshot = $3, version = version + 1, changed_at = now()
        WHERE task = $1 AND turn = $2 AND state = 1
            AND EXISTS (SELECT FROM {s}.workflow_status WHERE workflow_uuid = $6 AND executor_id = $7)
        RETURNING task
    )
    SELECT pg_notify($4, $5) FROM changed";

/// Returns all tasks, without their content.
pub(super) const LIST: &str = "
    SELECT task, state, octet_length(snapshot)::bigint AS bytes, turn,
        extract(epoch FROM now() - created_at)::double precision AS age,
        extract(epoch FROM now() - changed_at)::double precision AS unchanged,
        extract(epoch FROM expires_at - now())::double precision AS rest,
        (SELECT count(*) FROM {s}.antiphon_messages_1 AS m
         WHERE m.task = t.task AND number > taken AND state < 3) AS messages
    FROM {s}.antiphon_tasks_1 AS t WHERE expires_at IS NULL OR expires_at > now()
    ORDER BY created_at, task LIMIT $1";

/// Returns the tasks of one owner after a key, if there is one.
pub(super) const LIST_OF_OWNER: &str = "
    SELECT task FROM {s}.antiphon_tasks_1
    WHERE owner = $1 AND ($2::bytea IS NULL OR task > $2) AND (expires_at IS NULL OR expires_at > now())
    ORDER BY task LIMIT $3";

/// Notes that an instance is there.
pub(super) const BEAT: &str = "
    INSERT INTO {s}.antiphon_executors_1 (executor) VALUES ($1)
    ON CONFLICT (executor) DO UPDATE SET seen_at = now()";

/// Returns the instances that count as dead after this time.
pub(super) const DEAD: &str =
    "SELECT executor FROM {s}.antiphon_executors_1 WHERE seen_at < now() - make_interval(secs => $1)";

/// Forgets instances that have been dead for long: their tasks went to others at once, and a process that was stopped for so long
/// sends a heartbeat again before its tasks are forgotten.
pub(super) const FORGET: &str =
    "DELETE FROM {s}.antiphon_executors_1 WHERE executor = $1 OR seen_at < now() - make_interval(secs => $2)";

/// Returns the tasks whose workflows an instance has. One without a task is about to be removed.
pub(super) const OWNED: &str = "
    SELECT task FROM {s}.workflow_status JOIN {s}.antiphon_tasks_1 ON workflow_uuid = encode(task, 'hex')
    WHERE status = 'PENDING' AND executor_id = $1";

/// Returns tasks that dbos may not have, also young ones if the second argument is true.
pub(super) const UNSTARTED: &str = "
    SELECT task FROM {s}.antiphon_tasks_1
    WHERE NOT is_started AND ($2 OR created_at < now() - interval '2 seconds') ORDER BY created_at LIMIT $1";

/// Returns messages whose announcement dbos may not have, of tasks that it has.
pub(super) const UNANNOUNCED: &str = "
    SELECT m.task, number FROM {s}.antiphon_messages_1 AS m JOIN {s}.antiphon_tasks_1 AS t USING (task)
    WHERE NOT is_announced AND is_started AND sent_at < now() - interval '2 seconds' ORDER BY sent_at LIMIT $1";

/// Returns tasks whose time is over.
pub(super) const EXPIRED: &str =
    "SELECT task FROM {s}.antiphon_tasks_1 WHERE expires_at <= now() ORDER BY expires_at LIMIT $1";
