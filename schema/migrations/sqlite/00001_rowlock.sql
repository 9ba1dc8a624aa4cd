-- +goose Up

-- A row for each key that was locked and has not been reaped since. STRICT, because otherwise a token that overflows becomes
-- a floating-point number in silence. WITHOUT ROWID: one tree to search and one page to write instead of two. Times are
-- milliseconds since 1970, UTC.
CREATE TABLE rowlock (
    key         BLOB    NOT NULL PRIMARY KEY CHECK (length(key) BETWEEN 1 AND 255),
    owner       BLOB    CHECK (length(owner) = 16),
    note        TEXT    NOT NULL DEFAULT '',
    token       INTEGER NOT NULL CHECK (token >= 0),
    acquired_at INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    home        INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- The tokens of a key without a row begin above the floor of its bucket, which the reaper raises before it deletes.
CREATE TABLE rowlock_floor (
    bucket INTEGER NOT NULL PRIMARY KEY,
    floor  INTEGER NOT NULL
) STRICT;

INSERT INTO rowlock_floor (bucket, floor)
WITH RECURSIVE buckets (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM buckets WHERE n < 255)
SELECT n, 0 FROM buckets;

-- Who waits: a ticket for each waiter of a fair client, in order of rank and then ticket, and a row without rank for each process
-- that wants to be told when a key comes free. Nothing here is needed for safety: who owns a key stands in rowlock alone.
CREATE TABLE rowlock_queue (
    ticket      INTEGER PRIMARY KEY AUTOINCREMENT,
    key         BLOB    NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
    waiter      BLOB    NOT NULL CHECK (length(waiter) = 16),
    rank        INTEGER,
    note        TEXT    NOT NULL DEFAULT '',
    ttl         INTEGER NOT NULL DEFAULT 0,
    alive_until INTEGER NOT NULL,
    UNIQUE (key, waiter)
) STRICT;

-- A row for each key that forupdate locks, with nothing to say: the lock on the row is the lock. In SQLite the file's write lock
-- is, and this stays empty.
CREATE TABLE rowlock_hold (
    key     BLOB    NOT NULL PRIMARY KEY CHECK (length(key) BETWEEN 1 AND 255),
    made_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What was done once, by the key that asked for it: the fingerprint of the request, and the result. It is written in the
-- transaction that does it, so it is there exactly if that was committed.
CREATE TABLE rowlock_once (
    tenant      BLOB    NOT NULL DEFAULT x'',
    key         BLOB    NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
    fingerprint BLOB    NOT NULL DEFAULT x'' CHECK (length(fingerprint) IN (0, 32)),
    result      BLOB,
    made_at     INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
) STRICT;

CREATE INDEX rowlock_once_expiry ON rowlock_once (expires_at);

-- What waits while it holds something: a row for each lease that a chain holds, and one with token 0 for each key that it waits for,
-- with the token that the key had then. A cycle of such chains waits for ever. Nothing here is needed for safety.
CREATE TABLE rowlock_wait (
    chain       BLOB    NOT NULL CHECK (length(chain) = 16),
    key         BLOB    NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
    token       INTEGER NOT NULL CHECK (token >= 0),
    awaits      INTEGER NOT NULL DEFAULT 0,
    process     INTEGER NOT NULL,
    note        TEXT    NOT NULL DEFAULT '',
    since       INTEGER NOT NULL,
    alive_until INTEGER NOT NULL,
    PRIMARY KEY (chain, key, token)
) STRICT, WITHOUT ROWID;

CREATE INDEX rowlock_wait_key ON rowlock_wait (key, token);

CREATE TABLE rowlock_meta (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The instance tells these tables from any others: a UUID of random bytes. The version is written last.
INSERT INTO rowlock_meta (name, value) VALUES ('instance', lower(printf('%s-%s-4%s-%s%s-%s',
    hex(randomblob(4)), hex(randomblob(2)), substr(hex(randomblob(2)), 2),
    substr('89AB', 1 + (random() & 3), 1), substr(hex(randomblob(2)), 2), hex(randomblob(6)))));

INSERT INTO rowlock_meta (name, value) VALUES ('schema_version', '1');

-- +goose Down

DROP TABLE IF EXISTS rowlock_meta;

DROP TABLE IF EXISTS rowlock_wait;

DROP TABLE IF EXISTS rowlock_once;

DROP TABLE IF EXISTS rowlock_hold;

DROP TABLE IF EXISTS rowlock_queue;

DROP TABLE IF EXISTS rowlock_floor;

DROP TABLE IF EXISTS rowlock;
