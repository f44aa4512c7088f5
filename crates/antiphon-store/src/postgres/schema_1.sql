-- Version 1: the tables, and one function for each write on a call. A function locks the row first and reads the clock then,
-- so the time is that of the decision. The rules are those of src/row.rs.
--
-- phase: 0 running, 1 done, 2 released. Event of a step: the number of an attempt that started, 0 for the end.
-- Times are microseconds since 1970.

CREATE TABLE {calls} (
    call bytea NOT NULL PRIMARY KEY,
    leg bigint NOT NULL,
    fingerprint bytea NOT NULL,
    runner bytea NOT NULL,
    fence bigint NOT NULL,
    phase smallint NOT NULL,
    lease_until bigint NOT NULL,
    outcome bytea NOT NULL,
    keep_until bigint NOT NULL,
    expires_at bigint NOT NULL
);
CREATE INDEX ON {calls} (expires_at);

CREATE TABLE {steps} (
    call bytea NOT NULL REFERENCES {calls} (call) ON DELETE CASCADE,
    number bigint NOT NULL,
    leg bigint NOT NULL,
    step text NOT NULL,
    event bigint NOT NULL,
    value bytea NOT NULL,
    PRIMARY KEY (call, step, event)
);

CREATE TABLE {blobs} (
    digest bytea NOT NULL PRIMARY KEY,
    value bytea NOT NULL,
    keep_until bigint NOT NULL
);
CREATE INDEX ON {blobs} (keep_until);

-- The time of the database, or that of a test.
CREATE FUNCTION {now()} (in_now bigint) RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT coalesce(in_now, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
$$;

-- result: 0 fresh, 1 in flight, 2 done, 3 earlier leg, 4 other answers, 5 other predecessor, 6 unknown.
CREATE FUNCTION {claim()} (
    in_now bigint, in_call bytea, in_leg bigint, in_fingerprint bytea, in_runner bytea, in_take_over boolean,
    in_after_leg bigint, in_after_fingerprint bytea, in_lease bigint, in_keep bigint,
    OUT result smallint, OUT fence bigint, OUT rest bigint, OUT outcome bytea,
    OUT unknown_leg bigint, OUT step text, OUT attempt bigint
) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    r {calls}%ROWTYPE;
    t bigint;
    new_fence bigint;
    same_leg boolean;
    same_answers boolean;
    lease_over boolean;
BEGIN
    LOOP
        SELECT * INTO r FROM {calls} AS c WHERE c.call = in_call FOR UPDATE;
        EXIT WHEN FOUND;
        t := {now()}(in_now);
        INSERT INTO {calls} VALUES (in_call, in_leg, in_fingerprint, in_runner, t, 0, t + in_lease, '',
            t + in_keep, greatest(t + in_lease, t + in_keep)) ON CONFLICT DO NOTHING;
        IF FOUND THEN
            result := 0; fence := t;
            RETURN;
        END IF;
    END LOOP;
    t := {now()}(in_now);
    IF r.expires_at <= t THEN
        DELETE FROM {steps} AS s WHERE s.call = in_call;
        new_fence := greatest(t, r.fence + 1);
        UPDATE {calls} AS c SET leg = in_leg, fingerprint = in_fingerprint, runner = in_runner,
            fence = new_fence, phase = 0, lease_until = t + in_lease, outcome = '', keep_until = t + in_keep,
            expires_at = greatest(t + in_lease, t + in_keep) WHERE c.call = in_call;
        result := 0; fence := new_fence;
        RETURN;
    END IF;
    IF in_leg < r.leg THEN
        result := 3;
        RETURN;
    END IF;
    same_leg := in_leg = r.leg;
    same_answers := same_leg AND in_fingerprint = r.fingerprint;
    lease_over := t >= r.lease_until;
    IF same_leg AND NOT same_answers AND
        (r.phase <> 2 OR EXISTS (SELECT 1 FROM {steps} AS s WHERE s.call = in_call AND s.leg = r.leg)) THEN
        result := 4;
        RETURN;
    END IF;
    IF r.phase = 0 AND same_answers AND r.runner = in_runner THEN
        -- The same claim again, because its reply was lost.
        UPDATE {calls} AS c SET lease_until = t + in_lease, keep_until = greatest(c.keep_until, t + in_keep),
            expires_at = greatest(c.keep_until, t + in_keep, t + in_lease) WHERE c.call = in_call;
        result := 0; fence := r.fence;
        RETURN;
    ELSIF r.phase = 0 AND NOT lease_over THEN
        result := 1; rest := r.lease_until - t;
        RETURN;
    ELSIF r.phase = 0 AND NOT (same_answers AND in_take_over) THEN
        -- The attempt that started last, of a step without an end.
        SELECT s.step, s.event INTO step, attempt FROM {steps} AS s
            WHERE s.call = in_call AND s.event > 0
                AND NOT EXISTS (SELECT 1 FROM {steps} AS e WHERE e.call = in_call AND e.step = s.step AND e.event = 0)
            ORDER BY s.number DESC LIMIT 1;
        result := 6; unknown_leg := r.leg;
        RETURN;
    ELSIF r.phase = 1 AND same_answers THEN
        result := 2; outcome := r.outcome;
        RETURN;
    ELSIF NOT same_leg AND in_after_leg IS NOT NULL
        AND (in_after_leg <> r.leg OR in_after_fingerprint <> r.fingerprint) THEN
        result := 5;
        RETURN;
    END IF;
    new_fence := greatest(t, r.fence + 1);
    UPDATE {calls} AS c SET leg = in_leg, fingerprint = in_fingerprint, runner = in_runner, fence = new_fence,
        phase = 0, lease_until = t + in_lease, outcome = '', keep_until = greatest(c.keep_until, t + in_keep),
        expires_at = greatest(c.keep_until, t + in_keep, t + in_lease) WHERE c.call = in_call;
    result := 0; fence := new_fence;
END $$;

-- Returns true if the fence is the row's.
CREATE FUNCTION {renew()} (in_now bigint, in_call bytea, in_fence bigint, in_lease bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    r {calls}%ROWTYPE;
    t bigint;
BEGIN
    SELECT * INTO r FROM {calls} AS c WHERE c.call = in_call AND c.fence = in_fence FOR UPDATE;
    t := {now()}(in_now);
    IF r.call IS NULL OR r.expires_at <= t OR r.phase = 2 THEN
        RETURN false;
    END IF;
    -- A renewal that was sent before the outcome may arrive after it.
    IF r.phase = 0 THEN
        UPDATE {calls} AS c SET lease_until = t + in_lease, expires_at = greatest(c.keep_until, t + in_lease)
            WHERE c.call = in_call;
    END IF;
    RETURN true;
END $$;

-- Returns the value of an earlier record, if there is one. written is null if the fence is not the row's.
CREATE FUNCTION {append()} (
    in_now bigint, in_call bytea, in_fence bigint, in_step text, in_event bigint, in_value bytea,
    OUT written boolean, OUT existing bytea
) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    r {calls}%ROWTYPE;
BEGIN
    SELECT * INTO r FROM {calls} AS c WHERE c.call = in_call AND c.fence = in_fence FOR UPDATE;
    IF r.call IS NULL OR r.expires_at <= {now()}(in_now) OR r.phase <> 0 THEN
        RETURN;
    END IF;
    SELECT s.value INTO existing FROM {steps} AS s
        WHERE s.call = in_call AND s.step = in_step AND s.event = in_event;
    written := NOT FOUND;
    IF written THEN
        INSERT INTO {steps} SELECT in_call, count(*), r.leg, in_step, in_event, in_value
            FROM {steps} AS s WHERE s.call = in_call;
    END IF;
END $$;

-- Returns true if the outcome is stored, now or by the same commit before.
CREATE FUNCTION {commit()} (in_now bigint, in_call bytea, in_fence bigint, in_outcome bytea) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    r {calls}%ROWTYPE;
BEGIN
    SELECT * INTO r FROM {calls} AS c WHERE c.call = in_call AND c.fence = in_fence FOR UPDATE;
    IF r.call IS NULL OR r.expires_at <= {now()}(in_now) OR r.phase = 2 THEN
        RETURN false;
    END IF;
    IF r.phase = 1 THEN
        RETURN r.outcome = in_outcome;
    END IF;
    UPDATE {calls} AS c SET phase = 1, lease_until = 0, outcome = in_outcome, expires_at = c.keep_until
        WHERE c.call = in_call;
    RETURN true;
END $$;

-- Returns true if the leg is released, now or by the same release before.
CREATE FUNCTION {release()} (in_now bigint, in_call bytea, in_fence bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    r {calls}%ROWTYPE;
BEGIN
    SELECT * INTO r FROM {calls} AS c WHERE c.call = in_call AND c.fence = in_fence FOR UPDATE;
    IF r.call IS NULL OR r.expires_at <= {now()}(in_now) OR r.phase = 1 THEN
        RETURN false;
    END IF;
    UPDATE {calls} AS c SET phase = 2, lease_until = 0, expires_at = c.keep_until WHERE c.call = in_call;
    RETURN true;
END $$;
