-- The tables of a store. SQLite keeps the text of an index as it stands here.
-- No text of a session is in an index: a row that moves leaves copies in its pages, which `erase` clears in tables only.

CREATE TABLE sessions (
    n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, task_id TEXT NOT NULL, registered TEXT NOT NULL,
    stored_at TEXT, count INTEGER NOT NULL, digest BLOB NOT NULL, last_event_id TEXT, summary TEXT NOT NULL,
    report TEXT, reported_at TEXT, masked INTEGER NOT NULL,
    revision INTEGER NOT NULL, state TEXT NOT NULL, last_activity TEXT NOT NULL, haystack TEXT NOT NULL,
    chained INTEGER NOT NULL DEFAULT 1, owner TEXT);
CREATE INDEX sessions_by_activity ON sessions (last_activity, id);
-- `place` is the order of the file; between equals `n` decides, the order of arrival. `sender` is the installation of
-- the exporter that sent the event first, where it is known.
CREATE TABLE events (
    n INTEGER PRIMARY KEY, session INTEGER NOT NULL, hidden INTEGER NOT NULL, key INTEGER NOT NULL,
    id TEXT NOT NULL, type TEXT NOT NULL, timestamp TEXT NOT NULL, agent_id TEXT, sha256 BLOB NOT NULL,
    body BLOB NOT NULL, place INTEGER NOT NULL DEFAULT 0, parent INTEGER, cuts BLOB, sender INTEGER);
-- By a hash of the id, not the id: a random place in a third of the pages, which halves the cost of a large session.
CREATE INDEX events_by_key ON events (session, key);
CREATE INDEX events_by_place ON events (session, place);
CREATE TABLE orphans (session INTEGER NOT NULL, key INTEGER NOT NULL, PRIMARY KEY (session, key)) WITHOUT ROWID;
CREATE TABLE rewinds (
    n INTEGER PRIMARY KEY, session INTEGER NOT NULL, id TEXT NOT NULL, rewound_at TEXT NOT NULL);
CREATE INDEX rewinds_by_session ON rewinds (session);
CREATE TABLE exporters (id TEXT PRIMARY KEY, report TEXT NOT NULL, reported_at TEXT NOT NULL);
CREATE TABLE deleted_sessions (
    id TEXT PRIMARY KEY, deleted_at TEXT NOT NULL, reason TEXT NOT NULL DEFAULT 'deleted', owner TEXT);
CREATE TABLE notices (
    event INTEGER PRIMARY KEY, session INTEGER NOT NULL, category TEXT NOT NULL, type TEXT NOT NULL, status TEXT,
    timestamp TEXT NOT NULL, id TEXT NOT NULL, agent TEXT, text TEXT NOT NULL, request TEXT);
CREATE INDEX notices_in_time ON notices (timestamp, event);
CREATE INDEX notices_by_session ON notices (session);
CREATE INDEX notices_waiting ON notices (session) WHERE status = 'waiting';
CREATE TABLE redactions (
    session INTEGER NOT NULL, day TEXT NOT NULL, rule TEXT NOT NULL, source TEXT NOT NULL, count INTEGER NOT NULL,
    PRIMARY KEY (session, day, rule, source)) WITHOUT ROWID;
CREATE TABLE tokens (
    name TEXT PRIMARY KEY, hash BLOB NOT NULL UNIQUE, scope TEXT NOT NULL, created TEXT NOT NULL, last_used TEXT,
    revoked TEXT);
CREATE TABLE secrets (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
INSERT INTO secrets (name, value) VALUES ('tokens', randomblob(32));
CREATE TABLE blobs (n INTEGER PRIMARY KEY, sha256 BLOB NOT NULL UNIQUE, body BLOB NOT NULL);
CREATE TABLE blob_uses (
    session INTEGER NOT NULL, blob INTEGER NOT NULL, PRIMARY KEY (session, blob)) WITHOUT ROWID;
CREATE INDEX uses_of_blob ON blob_uses (blob);
CREATE TABLE families (session INTEGER PRIMARY KEY, state BLOB NOT NULL);
-- The row numbers that were allocated, and by `identity` the search index knows whether it belongs to this store. `epoch` is
-- new at every opening; `changes` only grows.
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO counters (name, value) VALUES ('identity', abs(random() / 2));
CREATE TABLE to_clear (
    tree TEXT NOT NULL, row INTEGER NOT NULL, PRIMARY KEY (tree, row)) WITHOUT ROWID;
