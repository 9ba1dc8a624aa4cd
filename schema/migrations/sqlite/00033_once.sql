-- +goose Up

-- What was done once, by the key that asked for it: the fingerprint of the request, and the result. It is written in the
-- transaction that does it, so it is there exactly if that was committed.
CREATE TABLE rowlock_once (
    tenant      BLOB    NOT NULL DEFAULT x'' CHECK (length(tenant) <= 255),
    key         BLOB    NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
    fingerprint BLOB    NOT NULL DEFAULT x'' CHECK (length(fingerprint) IN (0, 32)),
    result      BLOB,
    made_at     INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
) STRICT;

CREATE INDEX rowlock_once_expiry ON rowlock_once (expires_at);

INSERT INTO rowlock_meta (name, value) VALUES ('compatible_from/once', '3');

INSERT INTO rowlock_meta (name, value) VALUES ('schema_version/once', '3');

-- +goose Down

CREATE TABLE IF NOT EXISTS rowlock_once (expires_at INTEGER, fingerprint);
CREATE TABLE rowlock_down (guards INTEGER CONSTRAINT "the tables stay: results of once have not expired" CHECK (guards = 0));
INSERT INTO rowlock_down SELECT EXISTS (SELECT 1 FROM rowlock_once WHERE expires_at > CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER));
DROP TABLE rowlock_down;
DELETE FROM rowlock_meta WHERE name IN ('schema_version/once', 'compatible_from/once');
DROP TABLE rowlock_once;
