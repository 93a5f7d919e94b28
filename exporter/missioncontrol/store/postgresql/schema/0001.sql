-- Version 1. Every table has the number of its tenant, which row-level security compares with that of the transaction:
-- `current_setting` fails while none is set. The owner of the tables is exempt, and receivers never work as the owner.
-- Texts compare by their bytes, as in SQLite. A session's events are in one partition, by the number of the session.

CREATE TABLE tenants (n integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE, created text NOT NULL);
CREATE SEQUENCE session_numbers;
-- A receiver takes numbers for events in blocks, each as large as the largest batch that is stored.
CREATE SEQUENCE event_numbers INCREMENT BY 10000;

CREATE TABLE sessions (
    tenant integer NOT NULL DEFAULT current_setting('exporter.tenant')::integer,
    n bigint PRIMARY KEY, id text COLLATE "C" NOT NULL, task_id text NOT NULL, registered text COLLATE "C" NOT NULL,
    stored_at text COLLATE "C", count integer NOT NULL, digest bytea NOT NULL, last_event_id text, summary text NOT NULL,
    report text, reported_at text, masked integer NOT NULL,
    revision integer NOT NULL, state text NOT NULL, last_activity text COLLATE "C" NOT NULL,
    haystack text COLLATE "C" NOT NULL, chained integer NOT NULL DEFAULT 1, owner text,
    event_bytes bigint NOT NULL DEFAULT 0,
    UNIQUE (tenant, id)) WITH (fillfactor = 70);
CREATE INDEX sessions_by_activity ON sessions (tenant, last_activity, id);

CREATE TABLE events (
    tenant integer NOT NULL DEFAULT current_setting('exporter.tenant')::integer,
    n bigint NOT NULL, session bigint NOT NULL, hidden integer NOT NULL, key bigint NOT NULL,
    id text COLLATE "C" NOT NULL, type text COLLATE "C" NOT NULL, timestamp text COLLATE "C" NOT NULL,
    agent_id text COLLATE "C", sha256 bytea NOT NULL, body bytea NOT NULL, place bigint NOT NULL DEFAULT 0, parent bigint,
    cuts bytea, sender bigint) PARTITION BY RANGE (session);
-- The lock of the session keeps an event from being stored twice; this index is there in case that fails.
CREATE UNIQUE INDEX events_by_key ON events (session, key, id);
CREATE INDEX events_by_place ON events (session, place);
CREATE INDEX events_by_number ON events (n);
-- Bodies are read whole and soon after they were written: no time is spent to compress them.
ALTER TABLE events ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE TABLE orphans (
    tenant integer NOT NULL DEFAULT current_setting('exporter.tenant')::integer,
    session bigint NOT NULL, key bigint NOT NULL, PRIMARY KEY (session, key));
CREATE TABLE rewinds (
    tenant integer NOT NULL DEFAULT current_setting('exporter.tenant')::integer,
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, session bigint NOT NULL, id text COLLATE "C" NOT NULL,
    rewound_at text NOT NULL);
CREATE INDEX rewinds_by_session ON rewinds (session);
CREATE TABLE exporters (
    tenant integer NOT NULL DEFAULT current_setting('exporter.tenant')::integer,
    id text COLLATE "C" NOT NULL, report text NOT NULL, reported_at text COLLATE "C" NOT NULL, PRIMARY KEY (tenant, id));
CREATE TABLE deleted_sessions (
    tenant integer NOT NULL DEFAULT current_setting('exporter.tenant')::integer,
    id text COLLATE "C" NOT NULL, deleted_at text NOT NULL, reason text NOT NULL DEFAULT 'deleted', owner text,
    PRIMARY KEY (tenant, id));
CREATE TABLE notices (
    tenant integer NOT NULL DEFAULT current_setting('exporter.tenant')::integer,
    event bigint PRIMARY KEY, session bigint NOT NULL, category text COLLATE "C" NOT NULL, type text COLLATE "C" NOT NULL,
    status text COLLATE "C", timestamp text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL, agent text COLLATE "C",
    text text NOT NULL, request text COLLATE "C");
CREATE INDEX notices_in_time ON notices (tenant, timestamp, event);
CREATE INDEX notices_by_session ON notices (session);
CREATE INDEX notices_waiting ON notices (session) WHERE status = 'waiting';
CREATE TABLE redactions (
    tenant integer NOT NULL DEFAULT current_setting('exporter.tenant')::integer,
    session bigint NOT NULL, day text COLLATE "C" NOT NULL, rule text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL, count bigint NOT NULL, PRIMARY KEY (session, day, rule, source));
CREATE TABLE tokens (
    tenant integer NOT NULL DEFAULT current_setting('exporter.tenant')::integer,
    name text COLLATE "C" NOT NULL, hash bytea NOT NULL UNIQUE, scope text NOT NULL, created text COLLATE "C" NOT NULL,
    last_used text, revoked text, PRIMARY KEY (tenant, name));
CREATE TABLE secrets (
    tenant integer NOT NULL DEFAULT current_setting('exporter.tenant')::integer,
    name text NOT NULL, value bytea NOT NULL, PRIMARY KEY (tenant, name));
CREATE TABLE blobs (
    tenant integer NOT NULL DEFAULT current_setting('exporter.tenant')::integer,
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, sha256 bytea NOT NULL, body bytea NOT NULL, UNIQUE (tenant, sha256));
ALTER TABLE blobs ALTER COLUMN body SET STORAGE EXTERNAL;
-- The reference is checked at the commit: of two transactions that delete a large string and use it again, one begins
-- again.
CREATE TABLE blob_uses (
    tenant integer NOT NULL DEFAULT current_setting('exporter.tenant')::integer,
    session bigint NOT NULL, blob bigint NOT NULL REFERENCES blobs DEFERRABLE INITIALLY DEFERRED, PRIMARY KEY (session, blob));
CREATE INDEX uses_of_blob ON blob_uses (blob);
CREATE TABLE families (
    tenant integer NOT NULL DEFAULT current_setting('exporter.tenant')::integer, session bigint PRIMARY KEY, state bytea NOT NULL);
-- `identity` and `epoch` of the store.
CREATE TABLE counters (
    tenant integer NOT NULL DEFAULT current_setting('exporter.tenant')::integer,
    name text NOT NULL, value bigint NOT NULL, PRIMARY KEY (tenant, name));
-- The count of accepted changes is a sum, so that transactions do not wait for each other at one row.
CREATE TABLE changes (
    tenant integer NOT NULL DEFAULT current_setting('exporter.tenant')::integer,
    part integer NOT NULL, value bigint NOT NULL, PRIMARY KEY (tenant, part)) WITH (fillfactor = 20);
-- What receivers tell each other, for a minute. It is gone after a crash of the server, and nothing depends on it.
CREATE UNLOGGED TABLE notes (
    tenant integer NOT NULL DEFAULT current_setting('exporter.tenant')::integer,
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, told_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    origin bytea NOT NULL, note bytea NOT NULL);
ALTER TABLE notes ALTER COLUMN note SET STORAGE EXTERNAL;
CREATE INDEX notes_in_time ON notes (told_at);

DO $$
DECLARE name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['sessions', 'events', 'orphans', 'rewinds', 'exporters', 'deleted_sessions', 'notices',
        'redactions', 'tokens', 'secrets', 'blobs', 'blob_uses', 'families', 'counters', 'changes', 'notes'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY own_tenant ON %I USING (tenant = (SELECT current_setting(''exporter.tenant'')::integer))', name);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO exporter_receiver', name);
    END LOOP;
END $$;
REVOKE INSERT, DELETE ON secrets, counters FROM exporter_receiver;
GRANT USAGE ON SCHEMA mission_control TO exporter_receiver;
GRANT SELECT ON tenants, schema_version TO exporter_receiver;
GRANT USAGE ON SEQUENCE session_numbers, event_numbers TO exporter_receiver;

-- Receivers may not change the schema; these two are what they need of it.
CREATE FUNCTION add_partition(session bigint) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = mission_control, pg_temp AS $$
DECLARE
    part bigint := session / 2048;
    name text := 'events_' || part;
BEGIN
    IF to_regclass('mission_control.' || name) IS NOT NULL THEN RETURN; END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended('mission_control.add_partition', 0));
    IF to_regclass('mission_control.' || name) IS NOT NULL THEN RETURN; END IF;
    EXECUTE format('CREATE TABLE %I (LIKE events INCLUDING ALL) WITH (toast_tuple_target = 8160)', name);
    EXECUTE format('ALTER TABLE events ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)', name, part * 2048, (part + 1) * 2048);
END $$;
-- Drops the partitions in which no session is left, but none of those that are being filled.
CREATE FUNCTION drop_empty_partitions() RETURNS integer LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = mission_control, pg_temp AS $$
DECLARE
    newest bigint := (SELECT last_value / 2048 FROM session_numbers);
    part bigint;
    dropped integer := 0;
BEGIN
    FOR part IN SELECT substr(relname, 8)::bigint FROM pg_inherits JOIN pg_class ON oid = inhrelid
        WHERE inhparent = 'events'::regclass ORDER BY 1 LOOP
        IF part < newest - 1 AND NOT EXISTS (SELECT 1 FROM sessions WHERE n / 2048 = part) THEN
            EXECUTE format('DROP TABLE %I', 'events_' || part);
            dropped := dropped + 1;
        END IF;
    END LOOP;
    RETURN dropped;
END $$;
REVOKE ALL ON FUNCTION add_partition(bigint), drop_empty_partitions() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION add_partition(bigint), drop_empty_partitions() TO exporter_receiver;
SELECT add_partition(0), add_partition(2048);

-- A tenant with its secrets; random bytes as the server makes them for keys.
CREATE FUNCTION add_tenant(tenant_name text) RETURNS integer LANGUAGE plpgsql
    SET search_path = mission_control, pg_temp AS $$
DECLARE number integer;
BEGIN
    INSERT INTO tenants (name, created) VALUES (tenant_name, to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
        RETURNING n INTO number;
    INSERT INTO secrets (tenant, name, value) VALUES
        (number, 'tokens', uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()));
    INSERT INTO counters (tenant, name, value)
        SELECT number, name, ('x' || encode(substr(uuid_send(gen_random_uuid()), 9, 8), 'hex'))::bit(64)::bigint & 4611686018427387903
        FROM (VALUES ('identity'), ('epoch')) AS named (name);
    RETURN number;
END $$;
REVOKE ALL ON FUNCTION add_tenant(text) FROM PUBLIC;
SELECT add_tenant('default');
