-- The tables of schema version 1 on postgres, and rows that the code of that version has written.
-- Written by: go test ./internal/upgrade -run TestDump -dump

-- A row for each key that was locked and has not been reaped since. A renewal changes expires_at and nothing else, so there
-- is no index but the primary key: with one on a changing column, no update could stay within its page (HOT). Half of each
-- page is left free for the new versions, because one statement renews many rows of a page at once. Measured with 200 rows
-- renewed together 400 times: 97.6 % HOT at fillfactor 100, 99.7 % at 70, 100.0 % at 50, where the table is smallest too.
-- Dead versions are removed by count, for a fraction of a table that has once grown large is never reached. Truncating would
-- lock everybody out for a moment, to give back pages that are needed again at once.
CREATE TABLE "rowlock" (
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
CREATE TABLE "rowlock_floor" (
    bucket smallint PRIMARY KEY,
    floor  bigint   NOT NULL
);

INSERT INTO "rowlock_floor" (bucket, floor)
WITH RECURSIVE buckets (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM buckets WHERE n < 255)
SELECT n, 0 FROM buckets;

-- Who waits: a ticket for each waiter of a fair client, in order of rank and then ticket, and a row without rank for each process
-- that wants to be told when a key comes free. Nothing here is needed for safety: who owns a key stands in "rowlock" alone.
CREATE TABLE "rowlock_queue" (
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
CREATE TABLE "rowlock_hold" (
    key     bytea       PRIMARY KEY CHECK (octet_length(key) BETWEEN 1 AND 255),
    made_at timestamptz NOT NULL
) WITH (
    fillfactor = 50,
    vacuum_truncate = off
);

-- What was done once, by the key that asked for it: the fingerprint of the request, and the result. It is written in the
-- transaction that does it, so it is there exactly if that was committed.
CREATE TABLE "rowlock_once" (
    tenant      bytea       NOT NULL DEFAULT '',
    key         bytea       NOT NULL CHECK (octet_length(key) BETWEEN 1 AND 255),
    fingerprint bytea       NOT NULL DEFAULT '' CHECK (octet_length(fingerprint) IN (0, 32)),
    result      bytea,
    made_at     timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    PRIMARY KEY (tenant, key)
);

CREATE INDEX ON "rowlock_once" (expires_at);

-- What waits while it holds something: a row for each lease that a chain holds, and one with token 0 for each key that it waits for,
-- with the token that the key had then. A cycle of such chains waits for ever. Nothing here is needed for safety.
CREATE TABLE "rowlock_wait" (
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

CREATE INDEX ON "rowlock_wait" (key, token);

CREATE TABLE "rowlock_meta" (
    name  varchar(64) PRIMARY KEY,
    value text        NOT NULL
);

-- The instance tells these tables from any others. The version is written last.
INSERT INTO "rowlock_meta" (name, value) VALUES ('instance', CAST(gen_random_uuid() AS text));

INSERT INTO "rowlock_meta" (name, value) VALUES ('schema_version', '1');


UPDATE rowlock_meta SET value = '5b631ada-9d53-44be-a6e9-a513c4915ba6' WHERE name = 'instance';
UPDATE rowlock_floor SET floor = 5001 WHERE bucket = 218;
INSERT INTO rowlock ("key", "owner", "note", "token", "acquired_at", "expires_at", "home") VALUES ('\x00ff', '\x06eb7d6a69ee19e5fbdf749018d3d2ab', 'host 7/4711/orders	café ☕', 1, '2026-11-22 12:38:56.905406+00', '2076-11-09 12:38:56.905406+00', 0);
INSERT INTO rowlock ("key", "owner", "note", "token", "acquired_at", "expires_at", "home") VALUES ('\x61', NULL, '', 1, '2026-11-22 12:38:56.906775+00', '2026-11-22 12:38:56.907000+00', 0);
INSERT INTO rowlock ("key", "owner", "note", "token", "acquired_at", "expires_at", "home") VALUES ('\x6120', '\x6583dcd6056fd32aadd0d2d0be920de9', 'host 7/4711/orders	café ☕', 1, '2026-11-22 12:38:56.904998+00', '2076-11-09 12:38:56.904998+00', 0);
INSERT INTO rowlock ("key", "owner", "note", "token", "acquired_at", "expires_at", "home") VALUES ('\x6261636b', NULL, '', 2199023255552, '2026-11-22 12:38:56.909292+00', '2026-11-22 12:38:56.910053+00', 0);
INSERT INTO rowlock ("key", "owner", "note", "token", "acquired_at", "expires_at", "home") VALUES ('\x6279207472616e73616374696f6e', '\x51b9ca7b38b58494d81ef214ddb46faa', 'host 7/4711/orders	café ☕', 1, '2026-11-22 12:38:56.919328+00', '2076-11-09 12:38:56.919328+00', -1);
INSERT INTO rowlock ("key", "owner", "note", "token", "acquired_at", "expires_at", "home") VALUES ('\x65787069726564', '\xfa64ea1e82e1206f828ab2a02917c7e9', 'host 7/4711/orders	café ☕', 1, '2026-11-22 12:38:56.907333+00', '2026-11-22 12:38:56.908333+00', 0);
INSERT INTO rowlock ("key", "owner", "note", "token", "acquired_at", "expires_at", "home") VALUES ('\x66616972', '\x1869c9d2a11e8ecde889aa06a8114033', 'host 7/4711/orders	café ☕', 1, '2026-11-22 12:38:56.911955+00', '2076-11-09 12:38:56.911955+00', 0);
INSERT INTO rowlock ("key", "owner", "note", "token", "acquired_at", "expires_at", "home") VALUES ('\x66726565', NULL, '', 1, '2026-11-22 12:38:56.906205+00', '2026-11-22 12:38:56.906441+00', 0);
INSERT INTO rowlock ("key", "owner", "note", "token", "acquired_at", "expires_at", "home") VALUES ('\x68656c64', '\xc20dea4d876b5b8fb0a1814b43017030', 'host 7/4711/orders	café ☕', 1, '2026-11-22 12:38:56.904056+00', '2076-11-09 12:38:56.904529+00', 0);
INSERT INTO rowlock ("key", "owner", "note", "token", "acquired_at", "expires_at", "home") VALUES ('\x6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b', '\x767527047c4621915da44b8a2aa3165e', 'host 7/4711/orders	café ☕', 1, '2026-11-22 12:38:56.905810+00', '2076-11-09 12:38:56.905810+00', 0);
INSERT INTO rowlock ("key", "owner", "note", "token", "acquired_at", "expires_at", "home") VALUES ('\x6d6f766564', NULL, '', 1099511627776, '2026-11-22 12:38:56.908286+00', '2026-11-22 12:38:56.908878+00', 1);
INSERT INTO rowlock ("key", "owner", "note", "token", "acquired_at", "expires_at", "home") VALUES ('\x7370656e74', NULL, '', 9223372036853727231, '2026-11-22 12:38:56.911383+00', '2026-11-22 12:38:56.911578+00', 0);
INSERT INTO rowlock_queue ("key", "waiter", "ticket", "rank", "note", "ttl", "alive_until") OVERRIDING SYSTEM VALUE VALUES ('\x66616972', '\xa7937b64b8caa58f03721bb6bacf5c78', 7, 1795351126912319, 'host 7/4711/orders	first', 1576800000000000, '2076-11-09 12:38:56.912327+00');
INSERT INTO rowlock_queue ("key", "waiter", "ticket", "rank", "note", "ttl", "alive_until") OVERRIDING SYSTEM VALUE VALUES ('\x66616972', '\xf9d37c23fcc0f03c15a86aba71dce01d', 8, 1795351036912718, 'host 7/4711/orders	urgent', 1576800000000000, '2076-11-09 12:38:56.912721+00');
INSERT INTO rowlock_queue ("key", "waiter", "ticket", "rank", "note", "ttl", "alive_until") OVERRIDING SYSTEM VALUE VALUES ('\x66616972', '\x28a3a5e81d1e89f0efc70b63bf717b92', 9, 1795351086913070, 'host 7/4711/orders	dead', 1000, '2026-11-22 12:38:56.914073+00');
INSERT INTO rowlock_queue ("key", "waiter", "ticket", "rank", "note", "ttl", "alive_until") OVERRIDING SYSTEM VALUE VALUES ('\x66616972', '\x19ed40bf62c399b8492efda5b9a9184b', 10, NULL, '', 0, '2076-11-09 12:38:56.913328+00');
INSERT INTO rowlock_queue ("key", "waiter", "ticket", "rank", "note", "ttl", "alive_until") OVERRIDING SYSTEM VALUE VALUES ('\x68656c64', '\x19ed40bf62c399b8492efda5b9a9184b', 11, NULL, '', 0, '2076-11-09 12:38:56.913363+00');
INSERT INTO rowlock_hold ("key", "made_at") VALUES ('\x6279207472616e73616374696f6e', '2026-11-22 12:38:56.918682+00');
INSERT INTO rowlock_once ("tenant", "key", "fingerprint", "result", "made_at", "expires_at") VALUES ('\x', '\x6368617267652f37', '\xd3522d1c8693efc06b97dffd9aa7e5d96e5e9a211c458825de71fd2a1d37f845', '\x00ff646f6e6520e29895', '2026-11-22 12:38:56.915478+00', '2076-11-09 12:38:56.915478+00');
INSERT INTO rowlock_once ("tenant", "key", "fingerprint", "result", "made_at", "expires_at") VALUES ('\x61636d65', '\x6368617267652f37', '\x', NULL, '2026-11-22 12:38:56.916736+00', '2076-11-09 12:38:56.916736+00');
INSERT INTO rowlock_once ("tenant", "key", "fingerprint", "result", "made_at", "expires_at") VALUES ('\x', '\x65787069726564', '\x', '\x6f6c64', '2026-11-22 12:38:56.917378+00', '2026-11-22 12:38:55.918193+00');
SELECT setval(pg_get_serial_sequence('rowlock_queue', 'ticket'), (SELECT max(ticket) FROM rowlock_queue));
