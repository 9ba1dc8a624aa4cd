-- +goose Up

-- A row for each key that was locked and has not been reaped since. A renewal changes expires_at and nothing else, so there
-- is no index but the primary key: with one on a changing column, no update could stay within its page (HOT). Half of each
-- page is left free for the new versions, because one statement renews many rows of a page at once. Measured with 200 rows
-- renewed together 400 times: 97.6 % HOT at fillfactor 100, 99.7 % at 70, 100.0 % at 50, where the table is smallest too.
-- Dead versions are removed by count, for a fraction of a table that has once grown large is never reached. Truncating would
-- lock everybody out for a moment, to give back pages that are needed again at once.
CREATE TABLE rowlock (
    key         bytea       PRIMARY KEY CHECK (octet_length(key) BETWEEN 1 AND 255),
    owner       bytea       CHECK (octet_length(owner) = 16),
    note        text        NOT NULL DEFAULT '',
    token       bigint      NOT NULL CHECK (token >= 0),
    acquired_at timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    home        smallint    NOT NULL DEFAULT 0
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);

-- The tokens of a key without a row begin above the floor of its bucket, which the reaper raises before it deletes.
CREATE TABLE rowlock_floor (
    bucket smallint PRIMARY KEY,
    floor  bigint   NOT NULL
);

INSERT INTO rowlock_floor (bucket, floor)
WITH RECURSIVE buckets (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM buckets WHERE n < 255)
SELECT n, 0 FROM buckets;

-- Who waits: a ticket for each waiter of a fair client, in order of rank and then ticket, and a row without rank for each process
-- that wants to be told when a key comes free. Nothing here is needed for safety: who owns a key stands in rowlock alone.
CREATE TABLE rowlock_queue (
    key         bytea       NOT NULL CHECK (octet_length(key) BETWEEN 1 AND 255),
    waiter      bytea       NOT NULL CHECK (octet_length(waiter) = 16),
    ticket      bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    rank        bigint,
    note        text        NOT NULL DEFAULT '',
    ttl         bigint      NOT NULL DEFAULT 0,
    alive_until timestamptz NOT NULL,
    PRIMARY KEY (key, waiter)
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);

-- A row for each key that forupdate locks, with nothing to say: the lock on the row is the lock. Room is left in each page because
-- a lock is written into the row.
CREATE TABLE rowlock_hold (
    key     bytea       PRIMARY KEY CHECK (octet_length(key) BETWEEN 1 AND 255),
    made_at timestamptz NOT NULL
) WITH (
    fillfactor = 50,
    vacuum_truncate = off
);

-- What was done once, by the key that asked for it: the fingerprint of the request, and the result. It is written in the
-- transaction that does it, so it is there exactly if that was committed.
CREATE TABLE rowlock_once (
    tenant      bytea       NOT NULL DEFAULT '',
    key         bytea       NOT NULL CHECK (octet_length(key) BETWEEN 1 AND 255),
    fingerprint bytea       NOT NULL DEFAULT '' CHECK (octet_length(fingerprint) IN (0, 32)),
    result      bytea,
    made_at     timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    PRIMARY KEY (tenant, key)
);

CREATE INDEX ON rowlock_once (expires_at);

-- What waits while it holds something: a row for each lease that a chain holds, and one with token 0 for each key that it waits for,
-- with the token that the key had then. A cycle of such chains waits for ever. Nothing here is needed for safety.
CREATE TABLE rowlock_wait (
    chain       bytea       NOT NULL CHECK (octet_length(chain) = 16),
    key         bytea       NOT NULL CHECK (octet_length(key) BETWEEN 1 AND 255),
    token       bigint      NOT NULL CHECK (token >= 0),
    awaits      bigint      NOT NULL DEFAULT 0,
    process     smallint    NOT NULL,
    note        text        NOT NULL DEFAULT '',
    since       timestamptz NOT NULL,
    alive_until timestamptz NOT NULL,
    PRIMARY KEY (chain, key, token)
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);

CREATE INDEX ON rowlock_wait (key, token);

CREATE TABLE rowlock_meta (
    name  varchar(64) PRIMARY KEY,
    value text        NOT NULL
);

-- The instance tells these tables from any others. The version is written last.
INSERT INTO rowlock_meta (name, value) VALUES ('instance', CAST(gen_random_uuid() AS text));

INSERT INTO rowlock_meta (name, value) VALUES ('schema_version', '1');

-- +goose Down

DROP TABLE IF EXISTS rowlock_meta, rowlock_wait, rowlock_once, rowlock_hold, rowlock_queue, rowlock_floor, rowlock;
