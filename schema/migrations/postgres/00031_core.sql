-- +goose Up

-- A row for each key that was locked and has not been reaped since. A renewal changes expires_at and nothing else, so
-- there is no index but the primary key: with one on a changing column, no update could stay within its page (HOT).
-- Half of each page is left free for the new versions, because one statement renews many rows of a page at once.
-- Measured with 200 rows renewed together 400 times: 97.6 % HOT at fillfactor 100, 99.7 % at 70, 100.0 % at 50, where
-- the table is smallest too. Dead versions are removed by count, for a fraction of a table that has once grown large
-- is never reached. Truncating would lock everybody out for a moment, to give back pages that are needed again at
-- once. No CHECK: each write of a row would pay for it. Statements that grant ask for a token that is not negative,
-- and a reader of a row proves the rest.
CREATE TABLE rowlock (
    key         bytea        PRIMARY KEY,
    owner       bytea,
    note        varchar(384) NOT NULL DEFAULT '',
    token       bigint       NOT NULL,
    acquired_at timestamptz  NOT NULL,
    expires_at  timestamptz  NOT NULL,
    placement   smallint     NOT NULL DEFAULT 0
) WITH (
    fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off
);

-- The tokens of a key without a row begin above the floor of its bucket, which the reaper raises before it deletes.
CREATE TABLE IF NOT EXISTS rowlock_floor (
    bucket smallint PRIMARY KEY,
    floor  bigint   NOT NULL
);

INSERT INTO rowlock_floor (bucket, floor)
WITH RECURSIVE buckets (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM buckets WHERE n < 255)
SELECT n, 0 FROM buckets ON CONFLICT (bucket) DO NOTHING;

-- Who waits: a ticket for each waiter of a fair client, in order of rank and then ticket, and a row
-- without rank for each process that wants to be told when a key comes free. Nothing here is needed
-- for safety: who owns a key stands in rowlock alone.
CREATE TABLE rowlock_queue (
    key         bytea        NOT NULL CHECK (octet_length(key) BETWEEN 1 AND 255),
    waiter      bytea        NOT NULL CHECK (octet_length(waiter) = 16),
    ticket      bigint       NOT NULL GENERATED ALWAYS AS IDENTITY,
    rank        bigint,
    note        varchar(384) NOT NULL DEFAULT '',
    ttl         bigint       NOT NULL DEFAULT 0,
    alive_until timestamptz  NOT NULL,
    PRIMARY KEY (key, waiter)
) WITH (
    fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off
);

-- What waits while it holds something: a row for each lease that a caller holds, and one with token
-- 0 for each key that it waits for, with the token that the key had then. A cycle of such callers
-- waits for ever. Nothing here is needed for safety.
CREATE TABLE rowlock_wait (
    caller      bytea        NOT NULL CHECK (octet_length(caller) = 16),
    key         bytea        NOT NULL CHECK (octet_length(key) BETWEEN 1 AND 255),
    token       bigint       NOT NULL CHECK (token >= 0),
    awaits      bigint       NOT NULL DEFAULT 0,
    process     smallint     NOT NULL,
    note        varchar(384) NOT NULL DEFAULT '',
    since       timestamptz  NOT NULL,
    alive_until timestamptz  NOT NULL,
    PRIMARY KEY (caller, key, token)
) WITH (
    fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off
);

CREATE INDEX ON rowlock_wait (key, token);

-- Leases that an operator took away, each with who did it and why. raised is the token of the key
-- afterwards.
CREATE TABLE rowlock_forced (
    key    bytea         NOT NULL CHECK (octet_length(key) BETWEEN 1 AND 255),
    at     timestamptz   NOT NULL,
    id     bytea         NOT NULL CHECK (octet_length(id) = 16),
    actor  varchar(512)  NOT NULL,
    reason varchar(1000) NOT NULL,
    asked  bigint        NOT NULL,
    owner  bytea         NOT NULL CHECK (octet_length(owner) = 16),
    token  bigint        NOT NULL,
    note   varchar(384)  NOT NULL,
    raised bigint        NOT NULL,
    PRIMARY KEY (key, at, id),
    UNIQUE (at, id)
);

-- Settings, and the eras of these tables: a row for each server incarnation that a client has met, named era/ and the
-- incarnation, with the token that every token of the era is above and the time when it began. The row eras is none
-- of them: a client locks it to begin an era, before anything is granted by an incarnation that is not here.
CREATE TABLE IF NOT EXISTS rowlock_meta (
    name  varchar(255) PRIMARY KEY,
    value varchar(255) NOT NULL DEFAULT '',
    start bigint       CHECK (start >= 0),
    since timestamptz
);

-- The instance tells these tables from any others. The version is written last.
INSERT INTO rowlock_meta (name, value) VALUES ('instance', CAST(gen_random_uuid() AS text)) ON CONFLICT (name) DO NOTHING;

INSERT INTO rowlock_meta (name, start, since) VALUES ('eras', 0, clock_timestamp()) ON CONFLICT (name) DO NOTHING;

INSERT INTO rowlock_meta (name, value) VALUES ('compatible_from', '3') ON CONFLICT (name) DO NOTHING;

INSERT INTO rowlock_meta (name, value) VALUES ('schema_version', '3') ON CONFLICT (name) DO NOTHING;

-- +goose Down

-- rowlock_floor and rowlock_meta stay: tokens of tables that are made anew go on above those that
-- were granted. It is one statement, so that no tool drops what the look has refused.
DO $$ BEGIN IF to_regclass('rowlock') IS NOT NULL THEN
  LOCK TABLE rowlock_floor, rowlock_meta, rowlock; IF EXISTS (
      SELECT 1 FROM rowlock WHERE owner IS NOT NULL AND expires_at > clock_timestamp()
      OR placement NOT IN (0, -1) OR token NOT BETWEEN 0 AND 9223372036853727230) THEN
    RAISE EXCEPTION 'the tables stay: keys are locked, in a cluster or out of tokens'; END IF
  ; UPDATE rowlock_floor SET floor = greatest(floor, (SELECT max(token) FROM rowlock))
  ; DELETE FROM rowlock_meta WHERE name IN ('schema_version', 'compatible_from')
  ; DROP TABLE IF EXISTS rowlock_forced, rowlock_wait, rowlock_queue, rowlock
; END IF; END $$;
