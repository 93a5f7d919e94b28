-- Version 2: tenants that people make, the audit log, share links, the key of redaction tags. Receivers of version 1 go
-- on: they ask for none of it. `role` is a scope that `scope` has no word for; to them such a token is for uploading.

ALTER TABLE tokens ADD COLUMN role text;
CREATE TABLE audit (
    tenant integer NOT NULL DEFAULT current_setting('exporter.tenant')::integer,
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, at text COLLATE "C" NOT NULL, who text NOT NULL,
    action text NOT NULL, session text, detail text);
CREATE INDEX audit_in_order ON audit (tenant, n);
CREATE TABLE shares (
    tenant integer NOT NULL DEFAULT current_setting('exporter.tenant')::integer,
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, hash bytea NOT NULL UNIQUE, session text COLLATE "C" NOT NULL,
    event text, creator text NOT NULL, created text NOT NULL, expires text COLLATE "C" NOT NULL, revoked text,
    opened integer NOT NULL DEFAULT 0, last_opened text);
DO $$
DECLARE name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['audit', 'shares'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY own_tenant ON %I USING (tenant = (SELECT current_setting(''exporter.tenant'')::integer))', name);
    END LOOP;
END $$;
GRANT SELECT, INSERT ON audit TO exporter_receiver;
GRANT SELECT, INSERT, UPDATE, DELETE ON shares TO exporter_receiver;

INSERT INTO secrets (tenant, name, value)
    SELECT n, 'redaction', uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) FROM tenants;
CREATE OR REPLACE FUNCTION add_tenant(tenant_name text) RETURNS integer LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = mission_control, pg_temp AS $$
DECLARE number integer;
BEGIN
    INSERT INTO tenants (name, created) VALUES (tenant_name, to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
        RETURNING n INTO number;
    INSERT INTO secrets (tenant, name, value)
        SELECT number, named.name, uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
        FROM (VALUES ('tokens'), ('redaction')) AS named (name);
    INSERT INTO counters (tenant, name, value)
        SELECT number, named.name, ('x' || encode(substr(uuid_send(gen_random_uuid()), 9, 8), 'hex'))::bit(64)::bigint & 4611686018427387903
        FROM (VALUES ('identity'), ('epoch')) AS named (name);
    RETURN number;
END $$;
-- Removes a tenant with every row that is left of it; sessions are forgotten before, one by one.
CREATE FUNCTION remove_tenant(number bigint) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = mission_control, pg_temp AS $$
DECLARE name text;
BEGIN
    IF EXISTS (SELECT 1 FROM tenants WHERE n = number AND tenants.name = 'default') THEN
        RAISE EXCEPTION 'the tenant default stays';
    END IF;
    FOREACH name IN ARRAY ARRAY['tokens', 'shares', 'events', 'orphans', 'rewinds', 'exporters', 'deleted_sessions', 'notices',
        'redactions', 'blob_uses', 'blobs', 'families', 'sessions', 'changes', 'notes', 'audit', 'counters', 'secrets'] LOOP
        EXECUTE format('DELETE FROM %I WHERE tenant = $1', name) USING number;
    END LOOP;
    DELETE FROM tenants WHERE n = number;
END $$;
-- The audit log is append-only for a receiver, but for what is older than sessions are kept, and never the last 30 days.
CREATE FUNCTION trim_audit(before text) RETURNS void LANGUAGE sql SECURITY DEFINER
    SET search_path = mission_control, pg_temp AS $$
    DELETE FROM audit WHERE tenant = current_setting('exporter.tenant')::integer
        AND at < least(before, to_char((now() - interval '30 days') AT TIME ZONE 'UTC', 'YYYY-MM-DD') COLLATE "C")
$$;
REVOKE ALL ON FUNCTION remove_tenant(bigint), trim_audit(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION add_tenant(text), remove_tenant(bigint), trim_audit(text) TO exporter_receiver;
