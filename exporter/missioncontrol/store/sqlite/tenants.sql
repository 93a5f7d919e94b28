-- Version 13: tenants, each of which has a file of its own; what is here of sessions is this file's tenant's.
-- `role` is a scope that `scope` has no word for.

CREATE TABLE tenants (n INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, created TEXT NOT NULL);
INSERT INTO tenants (n, name, created) VALUES (1, 'default', strftime('%Y-%m-%dT%H:%M:%fZ', 'now'));
ALTER TABLE tokens ADD COLUMN role TEXT;
INSERT INTO secrets (name, value) VALUES ('redaction', randomblob(32));
CREATE TABLE audit (
    n INTEGER PRIMARY KEY, at TEXT NOT NULL, who TEXT NOT NULL, action TEXT NOT NULL, session TEXT, detail TEXT);
CREATE TRIGGER audit_is_written_once BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_is_kept BEFORE DELETE ON audit WHEN OLD.at > strftime('%Y-%m-%d', 'now', '-30 days') BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TABLE shares (
    n INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, session TEXT NOT NULL, event TEXT, creator TEXT NOT NULL,
    created TEXT NOT NULL, expires TEXT NOT NULL, revoked TEXT, opened INTEGER NOT NULL DEFAULT 0, last_opened TEXT);
