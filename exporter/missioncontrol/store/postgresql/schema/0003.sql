-- Version 3: what index workers follow. A row says that a transaction stored events with these numbers, or with a count of
-- 0 that it deleted the session. `xid` is in the order in which transactions began: what is below the oldest one that runs
-- is all there. Receivers of version 2 go on, and write no row; a worker finds what they did when it compares all sessions.

CREATE TABLE changed (
    tenant integer NOT NULL DEFAULT current_setting('exporter.tenant')::integer,
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(), session bigint NOT NULL, first bigint NOT NULL, count integer NOT NULL);
CREATE INDEX changed_in_order ON changed (xid);
ALTER TABLE changed ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON changed FOR INSERT WITH CHECK (tenant = (SELECT current_setting('exporter.tenant')::integer));
CREATE POLICY of_workers ON changed FOR SELECT TO exporter_index USING (true);
GRANT INSERT ON changed TO exporter_receiver;
-- How far each worker is.
CREATE TABLE index_workers (name text PRIMARY KEY, confirmed xid8 NOT NULL, heard timestamptz NOT NULL DEFAULT now());

-- A worker reads the rows of one tenant at a time, as the policies have it, and writes nothing but how far it is.
GRANT USAGE ON SCHEMA mission_control TO exporter_index;
GRANT SELECT ON tenants, schema_version, counters, sessions, events, blobs, changed TO exporter_index;
GRANT SELECT, INSERT, UPDATE ON index_workers TO exporter_index;

-- Removes what every worker has read; one that was silent for an hour compares all sessions when it comes back.
CREATE FUNCTION trim_changed() RETURNS void LANGUAGE sql SECURITY DEFINER
    SET search_path = mission_control, pg_temp AS $$
    DELETE FROM index_workers WHERE heard < now() - interval '1 hour';
    DELETE FROM changed WHERE xid < coalesce(
        (SELECT min(confirmed) FROM index_workers), pg_snapshot_xmin(pg_current_snapshot()));
$$;
REVOKE ALL ON FUNCTION trim_changed() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION trim_changed() TO exporter_receiver;
