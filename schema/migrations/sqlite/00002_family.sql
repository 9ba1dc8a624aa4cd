-- +goose Up

-- The members of a group that shares a key, each with a lease of its own: the row of the key names
-- the group as its owner and never expires. Only its own member changes a row here. The group of 16
-- zero bytes has those that wait for such a key exclusively.
CREATE TABLE rowlock_member (
    key        BLOB    NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
    team       BLOB    NOT NULL CHECK (length(team) = 16),
    owner      BLOB    NOT NULL CHECK (length(owner) = 16),
    note       TEXT    NOT NULL DEFAULT '',
    joined_at  INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (key, team, owner)
) STRICT, WITHOUT ROWID;

-- Latches and barriers: a row for each, whose id names its generation and no other. state and ended
-- say how far this generation and the one before it have come. Only a reset, a barrier's steps and
-- the retention change a row.
CREATE TABLE rowlock_latch (
    kind       INTEGER NOT NULL,
    key        BLOB    NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
    id         BLOB    NOT NULL UNIQUE CHECK (length(id) = 16),
    generation INTEGER NOT NULL CHECK (generation > 0),
    parties    INTEGER NOT NULL CHECK (parties > 0),
    state      INTEGER NOT NULL DEFAULT 0,
    ended      INTEGER NOT NULL DEFAULT 0,
    made_at    INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (kind, key)
) STRICT;

-- The parties of a generation that have counted down or entered (phase 0) or left (phase 1), a row
-- each, so that none waits for another.
CREATE TABLE rowlock_party (
    id          BLOB    NOT NULL CHECK (length(id) = 16),
    phase       INTEGER NOT NULL,
    party       BLOB    NOT NULL CHECK (length(party) BETWEEN 1 AND 255),
    counted_at  INTEGER NOT NULL,
    alive_until INTEGER,
    PRIMARY KEY (id, phase, party)
) STRICT, WITHOUT ROWID;

-- Limits of semaphores. Their slots are rows of rowlock under the name, a slash and three digits.
-- peak is the largest number of slots that there ever was. A transaction that grants slots reads
-- the generation that its count was read in.
CREATE TABLE rowlock_limit (
    name       BLOB    NOT NULL CHECK (length(name) BETWEEN 1 AND 251),
    slots      INTEGER NOT NULL CHECK (slots > 0),
    peak       INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    PRIMARY KEY (name)
) STRICT, WITHOUT ROWID;

-- Leases that an operator took away, each with who did it and why. raised is the token of the key
-- afterwards.
CREATE TABLE rowlock_forced (
    key     BLOB    NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
    at      INTEGER NOT NULL,
    id      BLOB    NOT NULL CHECK (length(id) = 16),
    actor   TEXT    NOT NULL,
    reason  TEXT    NOT NULL,
    asked   INTEGER NOT NULL,
    owner   BLOB    NOT NULL CHECK (length(owner) = 16),
    token   INTEGER NOT NULL,
    note    TEXT    NOT NULL,
    raised  INTEGER NOT NULL,
    PRIMARY KEY (key, at, id),
    UNIQUE (at, id)
) STRICT, WITHOUT ROWID;

-- What became of keys, for clients with Config.Trace: removed after their retention, and read by no
-- lock. number is µs, or how many events were dropped. A key of no bytes has what concerns no key.
CREATE TABLE rowlock_trace (
    at      INTEGER NOT NULL,
    id      INTEGER NOT NULL,
    key     BLOB    NOT NULL CHECK (length(key) <= 255),
    event   TEXT    NOT NULL,
    token   INTEGER NOT NULL,
    owner   BLOB    NOT NULL CHECK (length(owner) = 16),
    note    TEXT    NOT NULL,
    number  INTEGER NOT NULL,
    detail  TEXT    NOT NULL,
    PRIMARY KEY (at, id),
    UNIQUE (key, at, id)
) STRICT, WITHOUT ROWID;

-- The eras of this table: an era for each history of the file that a client has met, with the
-- token that every token of the era is above, and a first row without a history. A client that
-- meets a history which is not here begins an era before anything is granted.
CREATE TABLE rowlock_era (
    history TEXT    NOT NULL PRIMARY KEY,
    start   INTEGER NOT NULL CHECK (start >= 0),
    since   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO rowlock_era (history, start, since)
VALUES ('', 0, CAST(unixepoch('subsec') * 1000 AS INTEGER));

-- The tenant that a ticket is for, and the ticket of another tenant that it goes right behind, of
-- which it has the rank. A process of version 1 neither writes nor reads them.
ALTER TABLE rowlock_queue ADD COLUMN tenant BLOB NOT NULL DEFAULT x'' CHECK (length(tenant) <= 255);

ALTER TABLE rowlock_queue ADD COLUMN beside INTEGER;

UPDATE rowlock_meta SET value = '2' WHERE name = 'schema_version';

-- +goose Down

-- The version first: MySQL does not undo a DROP TABLE, and a version never says more than there is.
UPDATE rowlock_meta SET value = '1' WHERE name = 'schema_version';

DROP TABLE IF EXISTS rowlock_era;

DROP TABLE IF EXISTS rowlock_trace;

DROP TABLE IF EXISTS rowlock_forced;

-- SQLite has no DROP COLUMN IF EXISTS. Waiters whose tickets are gone join again.
DROP TABLE IF EXISTS rowlock_queue;

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

DROP TABLE IF EXISTS rowlock_limit;

DROP TABLE IF EXISTS rowlock_party;

DROP TABLE IF EXISTS rowlock_latch;

DROP TABLE IF EXISTS rowlock_member;
