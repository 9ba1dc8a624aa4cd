-- +goose Up

-- A row for each key that was locked and has not been reaped since. STRICT, because otherwise a token that overflows
-- becomes a floating-point number in silence. WITHOUT ROWID: one tree to search and one page to write instead of two.
-- Times are milliseconds since 1970, UTC. No CHECK: each write of a row would pay for it. Statements that grant ask
-- for a token that is not negative, and a reader of a row proves the rest.
CREATE TABLE rowlock (
    key         BLOB    NOT NULL PRIMARY KEY,
    owner       BLOB,
    note        TEXT    NOT NULL DEFAULT '',
    token       INTEGER NOT NULL,
    acquired_at INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    placement   INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- The tokens of a key without a row begin above the floor of its bucket, which the reaper raises before it deletes.
CREATE TABLE IF NOT EXISTS rowlock_floor (
    bucket INTEGER NOT NULL PRIMARY KEY,
    floor  INTEGER NOT NULL
) STRICT;

INSERT OR IGNORE INTO rowlock_floor (bucket, floor)
WITH RECURSIVE buckets (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM buckets WHERE n < 255)
SELECT n, 0 FROM buckets;

-- Who waits: a ticket for each waiter of a fair client, in order of rank and then ticket, and a row
-- without rank for each process that wants to be told when a key comes free. Nothing here is needed
-- for safety: who owns a key stands in rowlock alone.
CREATE TABLE rowlock_queue (
    ticket      INTEGER PRIMARY KEY AUTOINCREMENT,
    key         BLOB    NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
    waiter      BLOB    NOT NULL CHECK (length(waiter) = 16),
    rank        INTEGER,
    note        TEXT    NOT NULL DEFAULT '' CHECK (length(note) <= 384),
    ttl         INTEGER NOT NULL DEFAULT 0,
    alive_until INTEGER NOT NULL,
    UNIQUE (key, waiter)
) STRICT;

-- What waits while it holds something: a row for each lease that a caller holds, and one with token
-- 0 for each key that it waits for, with the token that the key had then. A cycle of such callers
-- waits for ever. Nothing here is needed for safety.
CREATE TABLE rowlock_wait (
    caller      BLOB    NOT NULL CHECK (length(caller) = 16),
    key         BLOB    NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
    token       INTEGER NOT NULL CHECK (token >= 0),
    awaits      INTEGER NOT NULL DEFAULT 0,
    process     INTEGER NOT NULL,
    note        TEXT    NOT NULL DEFAULT '' CHECK (length(note) <= 384),
    since       INTEGER NOT NULL,
    alive_until INTEGER NOT NULL,
    PRIMARY KEY (caller, key, token)
) STRICT, WITHOUT ROWID;

CREATE INDEX rowlock_wait_key ON rowlock_wait (key, token);

-- Leases that an operator took away, each with who did it and why. raised is the token of the key
-- afterwards.
CREATE TABLE rowlock_forced (
    key     BLOB    NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
    at      INTEGER NOT NULL,
    id      BLOB    NOT NULL CHECK (length(id) = 16),
    actor   TEXT    NOT NULL CHECK (length(actor) <= 512),
    reason  TEXT    NOT NULL CHECK (length(reason) <= 1000),
    asked   INTEGER NOT NULL,
    owner   BLOB    NOT NULL CHECK (length(owner) = 16),
    token   INTEGER NOT NULL,
    note    TEXT    NOT NULL CHECK (length(note) <= 384),
    raised  INTEGER NOT NULL,
    PRIMARY KEY (key, at, id),
    UNIQUE (at, id)
) STRICT, WITHOUT ROWID;

-- Settings, and the eras of these tables: a row for each incarnation of the file that a client has
-- met, named era/ and the incarnation, with the token that every token of the era is above and the
-- time when it began. The row eras is none of them: a client locks it to begin an era, before
-- anything is granted by an incarnation that is not here.
CREATE TABLE IF NOT EXISTS rowlock_meta (
    name  TEXT NOT NULL PRIMARY KEY CHECK (length(name) <= 255),
    value TEXT NOT NULL DEFAULT '' CHECK (length(value) <= 255),
    start INTEGER CHECK (start >= 0),
    since INTEGER
) STRICT, WITHOUT ROWID;

-- The instance tells these tables from any others: a UUID of random bytes. The version is written last.
INSERT OR IGNORE INTO rowlock_meta (name, value) VALUES ('instance', lower(printf('%s-%s-4%s-%s%s-%s',
    hex(randomblob(4)), hex(randomblob(2)), substr(hex(randomblob(2)), 2),
    substr('89AB', 1 + (random() & 3), 1), substr(hex(randomblob(2)), 2), hex(randomblob(6)))));

-- In ms: unixepoch('subsec') is NULL in a tool with an SQLite before 3.42, and no guard below would refuse.
INSERT OR IGNORE INTO rowlock_meta (name, start, since)
VALUES ('eras', 0, CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER));

INSERT OR IGNORE INTO rowlock_meta (name, value) VALUES ('compatible_from', '3');

INSERT OR IGNORE INTO rowlock_meta (name, value) VALUES ('schema_version', '3');

-- +goose Down

-- rowlock_floor and rowlock_meta stay, so that tokens go on above those that were granted. Only a
-- trigger could raise an error: a constraint refuses. schema.Down has left no table of locks.
CREATE TABLE IF NOT EXISTS rowlock (owner BLOB, token INTEGER, acquired_at, expires_at INTEGER, placement INTEGER);
CREATE TABLE rowlock_down (guards INTEGER CONSTRAINT "the tables stay: keys are locked, in a cluster or out of tokens" CHECK (guards = 0));
INSERT INTO rowlock_down SELECT EXISTS (SELECT 1 FROM rowlock
  WHERE owner IS NOT NULL AND expires_at > CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)
    OR placement NOT IN (0, -1) OR token NOT BETWEEN 0 AND 9223372036853727230);
DROP TABLE rowlock_down;
UPDATE rowlock_floor SET floor = max(floor, (SELECT coalesce(max(token), 0) FROM rowlock));
DELETE FROM rowlock_meta WHERE name IN ('schema_version', 'compatible_from');
DROP TABLE IF EXISTS rowlock_forced;
DROP TABLE IF EXISTS rowlock_wait;
DROP TABLE IF EXISTS rowlock_queue;
DROP TABLE rowlock;
