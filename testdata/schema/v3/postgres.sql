-- The tables of schema version 3 on postgres, and rows that the code of that version has written.
-- Written by: go test ./internal/upgrade -run TestDump -dump

-- A row for each key that was locked and has not been reaped since. A renewal changes expires_at and nothing else, so
-- there is no index but the primary key: with one on a changing column, no update could stay within its page (HOT).
-- Half of each page is left free for the new versions, because one statement renews many rows of a page at once.
-- Measured with 200 rows renewed together 400 times: 97.6 % HOT at fillfactor 100, 99.7 % at 70, 100.0 % at 50, where
-- the table is smallest too. Dead versions are removed by count, for a fraction of a table that has once grown large
-- is never reached. Truncating would lock everybody out for a moment, to give back pages that are needed again at
-- once. No CHECK: each write of a row would pay for it. Statements that grant ask for a token that is not negative,
-- and a reader of a row proves the rest.
CREATE TABLE "rowlock" (
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
CREATE TABLE IF NOT EXISTS "rowlock_floor" (
    bucket smallint PRIMARY KEY,
    floor  bigint   NOT NULL
);

INSERT INTO "rowlock_floor" (bucket, floor)
WITH RECURSIVE buckets (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM buckets WHERE n < 255)
SELECT n, 0 FROM buckets ON CONFLICT (bucket) DO NOTHING;

-- Who waits: a ticket for each waiter of a fair client, in order of rank and then ticket, and a row
-- without rank for each process that wants to be told when a key comes free. Nothing here is needed
-- for safety: who owns a key stands in "rowlock" alone.
CREATE TABLE "rowlock_queue" (
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
CREATE TABLE "rowlock_wait" (
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

CREATE INDEX ON "rowlock_wait" (key, token);

-- Leases that an operator took away, each with who did it and why. raised is the token of the key
-- afterwards.
CREATE TABLE "rowlock_forced" (
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
CREATE TABLE IF NOT EXISTS "rowlock_meta" (
    name  varchar(255) PRIMARY KEY,
    value varchar(255) NOT NULL DEFAULT '',
    start bigint       CHECK (start >= 0),
    since timestamptz
);

-- The instance tells these tables from any others. The version is written last.
INSERT INTO "rowlock_meta" (name, value) VALUES ('instance', CAST(gen_random_uuid() AS text)) ON CONFLICT (name) DO NOTHING;

INSERT INTO "rowlock_meta" (name, start, since) VALUES ('eras', 0, clock_timestamp()) ON CONFLICT (name) DO NOTHING;

INSERT INTO "rowlock_meta" (name, value) VALUES ('compatible_from', '3') ON CONFLICT (name) DO NOTHING;

INSERT INTO "rowlock_meta" (name, value) VALUES ('schema_version', '3') ON CONFLICT (name) DO NOTHING;

-- The members of a group that shares a key, each with a lease of its own: the row of the key names
-- the group as its owner and never expires. Only its own member changes a row here. The group of 16
-- zero bytes has those that wait for such a key exclusively.
CREATE TABLE "rowlock_member" (
    key          bytea        NOT NULL CHECK (octet_length(key) BETWEEN 1 AND 255),
    reader_group bytea        NOT NULL CHECK (octet_length(reader_group) = 16),
    owner        bytea        NOT NULL CHECK (octet_length(owner) = 16),
    note         varchar(384) NOT NULL DEFAULT '',
    joined_at    timestamptz  NOT NULL,
    expires_at   timestamptz  NOT NULL,
    PRIMARY KEY (key, reader_group, owner)
) WITH (
    fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off
);

-- Limits of semaphores. Their slots are rows of "rowlock" under the name, a slash and three digits.
-- peak is the largest number of slots that there ever was. A statement that grants slots locks the
-- row to be read, and names the generation that its count was read in.
CREATE TABLE "rowlock_limit" (
    name       bytea   NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 251),
    slots      integer NOT NULL CHECK (slots > 0),
    peak       integer NOT NULL,
    generation bigint  NOT NULL,
    PRIMARY KEY (name)
) WITH (
    fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off
);

INSERT INTO "rowlock_meta" (name, value) VALUES ('compatible_from/shared', '3');

INSERT INTO "rowlock_meta" (name, value) VALUES ('schema_version/shared', '3');

-- What was done once, by the key that asked for it: the fingerprint of the request, and the result. It is written in the
-- transaction that does it, so it is there exactly if that was committed.
CREATE TABLE "rowlock_once" (
    tenant      bytea       NOT NULL DEFAULT '' CHECK (octet_length(tenant) <= 255),
    key         bytea       NOT NULL CHECK (octet_length(key) BETWEEN 1 AND 255),
    fingerprint bytea       NOT NULL DEFAULT '' CHECK (octet_length(fingerprint) IN (0, 32)),
    result      bytea       ,
    made_at     timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    PRIMARY KEY (tenant, key)
);

CREATE INDEX ON "rowlock_once" (expires_at);

INSERT INTO "rowlock_meta" (name, value) VALUES ('compatible_from/once', '3');

INSERT INTO "rowlock_meta" (name, value) VALUES ('schema_version/once', '3');

-- Latches and barriers: a row for each, whose id names its generation and no other. state and ended
-- say how far this generation and the one before it have come. Only a reset, a barrier's steps and
-- the retention change a row.
CREATE TABLE "rowlock_latch" (
    kind       smallint    NOT NULL,
    key        bytea       NOT NULL CHECK (octet_length(key) BETWEEN 1 AND 255),
    id         bytea       NOT NULL UNIQUE CHECK (octet_length(id) = 16),
    generation bigint      NOT NULL CHECK (generation > 0),
    parties    integer     NOT NULL CHECK (parties > 0),
    state      smallint    NOT NULL DEFAULT 0,
    ended      smallint    NOT NULL DEFAULT 0,
    made_at    timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (kind, key)
) WITH (
    fillfactor = 50,
    vacuum_truncate = off
);

-- The parties of a generation that have counted down or entered (phase 0) or left (phase 1), a row
-- each, so that none waits for another.
CREATE TABLE "rowlock_party" (
    id          bytea       NOT NULL CHECK (octet_length(id) = 16),
    phase       smallint    NOT NULL,
    party       bytea       NOT NULL CHECK (octet_length(party) BETWEEN 1 AND 255),
    counted_at  timestamptz NOT NULL,
    alive_until timestamptz ,
    PRIMARY KEY (id, phase, party)
) WITH (
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_scale_factor = 0,
    vacuum_truncate = off
);

INSERT INTO "rowlock_meta" (name, value) VALUES ('compatible_from/latch', '3');

INSERT INTO "rowlock_meta" (name, value) VALUES ('schema_version/latch', '3');

-- A row for each key that forupdate locks, with nothing to say: the lock on the row is the lock. Room is left in each page because
-- a lock is written into the row.
CREATE TABLE "rowlock_hold" (
    key     bytea       PRIMARY KEY CHECK (octet_length(key) BETWEEN 1 AND 255),
    made_at timestamptz NOT NULL
) WITH (
    fillfactor = 50,
    vacuum_truncate = off
);

INSERT INTO "rowlock_meta" (name, value) VALUES ('compatible_from/forupdate', '3');

INSERT INTO "rowlock_meta" (name, value) VALUES ('schema_version/forupdate', '3');

-- What became of keys, for clients with Config.Trace: removed after their retention, and read by no
-- lock. number is µs, or how many events were dropped. A key of no bytes has what concerns no key.
CREATE TABLE "rowlock_trace" (
    at     timestamptz  NOT NULL,
    id     bigint       NOT NULL,
    key    bytea        NOT NULL CHECK (octet_length(key) <= 255),
    event  varchar(16)  NOT NULL,
    token  bigint       NOT NULL,
    owner  bytea        NOT NULL CHECK (octet_length(owner) = 16),
    note   varchar(384) NOT NULL,
    number bigint       NOT NULL,
    detail varchar(255) NOT NULL,
    PRIMARY KEY (at, id),
    UNIQUE (key, at, id)
) WITH (
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_scale_factor = 0.05,
    vacuum_truncate = off
);

INSERT INTO "rowlock_meta" (name, value) VALUES ('compatible_from/trace', '3');

INSERT INTO "rowlock_meta" (name, value) VALUES ('schema_version/trace', '3');


UPDATE rowlock_meta SET value = '39064955-9d8f-492d-8424-d513c09a834f' WHERE name = 'instance';
UPDATE rowlock_floor SET floor = 5001 WHERE bucket = 218;
INSERT INTO rowlock ("key", "owner", "note", "token", "acquired_at", "expires_at", "placement") VALUES ('\x00ff', '\x06eb7d6a69ee19e5fbdf749018d3d2ab', 'host 7/4711/orders	café ☕', 1, '2026-11-26 16:26:33.768541+00', '2076-11-13 16:26:33.768541+00', 0);
INSERT INTO rowlock ("key", "owner", "note", "token", "acquired_at", "expires_at", "placement") VALUES ('\x61', NULL, '', 1, '2026-11-26 16:26:33.769437+00', '2026-11-26 16:26:33.769612+00', 0);
INSERT INTO rowlock ("key", "owner", "note", "token", "acquired_at", "expires_at", "placement") VALUES ('\x6120', '\x6583dcd6056fd32aadd0d2d0be920de9', 'host 7/4711/orders	café ☕', 1, '2026-11-26 16:26:33.768267+00', '2076-11-13 16:26:33.768267+00', 0);
INSERT INTO rowlock ("key", "owner", "note", "token", "acquired_at", "expires_at", "placement") VALUES ('\x6261636b', NULL, '', 2199023255552, '2026-11-26 16:26:33.771046+00', '2026-11-26 16:26:33.771581+00', 0);
INSERT INTO rowlock ("key", "owner", "note", "token", "acquired_at", "expires_at", "placement") VALUES ('\x6279207472616e73616374696f6e', '\x51b9ca7b38b58494d81ef214ddb46faa', 'host 7/4711/orders	café ☕', 1, '2026-11-26 16:26:33.816134+00', '2076-11-13 16:26:33.816134+00', -1);
INSERT INTO rowlock ("key", "owner", "note", "token", "acquired_at", "expires_at", "placement") VALUES ('\x65787069726564', '\xfa64ea1e82e1206f828ab2a02917c7e9', 'host 7/4711/orders	café ☕', 1, '2026-11-26 16:26:33.769914+00', '2026-11-26 16:26:33.770915+00', 0);
INSERT INTO rowlock ("key", "owner", "note", "token", "acquired_at", "expires_at", "placement") VALUES ('\x66616972', '\x1869c9d2a11e8ecde889aa06a8114033', 'host 7/4711/orders	café ☕', 1, '2026-11-26 16:26:33.772731+00', '2076-11-13 16:26:33.772731+00', 0);
INSERT INTO rowlock ("key", "owner", "note", "token", "acquired_at", "expires_at", "placement") VALUES ('\x66726565', NULL, '', 1, '2026-11-26 16:26:33.769035+00', '2026-11-26 16:26:33.769157+00', 0);
INSERT INTO rowlock ("key", "owner", "note", "token", "acquired_at", "expires_at", "placement") VALUES ('\x68656c64', '\xc20dea4d876b5b8fb0a1814b43017030', 'host 7/4711/orders	café ☕', 1, '2026-11-26 16:26:33.767680+00', '2076-11-13 16:26:33.767939+00', 0);
INSERT INTO rowlock ("key", "owner", "note", "token", "acquired_at", "expires_at", "placement") VALUES ('\x6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b', '\x767527047c4621915da44b8a2aa3165e', 'host 7/4711/orders	café ☕', 1, '2026-11-26 16:26:33.768793+00', '2076-11-13 16:26:33.768793+00', 0);
INSERT INTO rowlock ("key", "owner", "note", "token", "acquired_at", "expires_at", "placement") VALUES ('\x6d6f766564', NULL, '', 1099511627776, '2026-11-26 16:26:33.770259+00', '2026-11-26 16:26:33.770786+00', 1);
INSERT INTO rowlock ("key", "owner", "note", "token", "acquired_at", "expires_at", "placement") VALUES ('\x73656d6170686f72652f7265706f7274732f303032', '\x41d6d5322a9b546a16bdf2213c7e4b01', 'host 7/4711/orders	café ☕', 1, '2026-11-26 16:26:33.807007+00', '2076-11-13 16:26:33.807007+00', 0);
INSERT INTO rowlock ("key", "owner", "note", "token", "acquired_at", "expires_at", "placement") VALUES ('\x736861726564', '\x726f776c6f636b540000000000000001', 'host 7/4711/orders	café ☕', 1, '2026-11-26 16:26:33.777499+00', '9999-01-01 00:00:00.000000+00', 0);
INSERT INTO rowlock ("key", "owner", "note", "token", "acquired_at", "expires_at", "placement") VALUES ('\x7370656e74', NULL, '', 9223372036853727231, '2026-11-26 16:26:33.772343+00', '2026-11-26 16:26:33.772497+00', 0);
INSERT INTO rowlock ("key", "owner", "note", "token", "acquired_at", "expires_at", "placement") VALUES ('\x74616b656e2061776179', NULL, '', 2, '2026-11-26 16:26:33.807634+00', '2026-11-26 16:26:33.809176+00', 0);
INSERT INTO rowlock_queue ("key", "waiter", "ticket", "rank", "note", "ttl", "alive_until") OVERRIDING SYSTEM VALUE VALUES ('\x66616972', '\xa7937b64b8caa58f03721bb6bacf5c78', 7, 1795710383772945, 'host 7/4711/orders	first', 1576800000000000, '2076-11-13 16:26:33.772948+00');
INSERT INTO rowlock_queue ("key", "waiter", "ticket", "rank", "note", "ttl", "alive_until") OVERRIDING SYSTEM VALUE VALUES ('\x66616972', '\xf9d37c23fcc0f03c15a86aba71dce01d', 8, 1795710293773163, 'host 7/4711/orders	urgent', 1576800000000000, '2076-11-13 16:26:33.773165+00');
INSERT INTO rowlock_queue ("key", "waiter", "ticket", "rank", "note", "ttl", "alive_until") OVERRIDING SYSTEM VALUE VALUES ('\x66616972', '\x28a3a5e81d1e89f0efc70b63bf717b92', 9, 1795710343773357, 'host 7/4711/orders	dead', 1000, '2026-11-26 16:26:33.774359+00');
INSERT INTO rowlock_queue ("key", "waiter", "ticket", "rank", "note", "ttl", "alive_until") OVERRIDING SYSTEM VALUE VALUES ('\x66616972', '\x19ed40bf62c399b8492efda5b9a9184b', 10, NULL, '', 0, '2076-11-13 16:26:33.773520+00');
INSERT INTO rowlock_queue ("key", "waiter", "ticket", "rank", "note", "ttl", "alive_until") OVERRIDING SYSTEM VALUE VALUES ('\x68656c64', '\x19ed40bf62c399b8492efda5b9a9184b', 11, NULL, '', 0, '2076-11-13 16:26:33.773548+00');
INSERT INTO rowlock_hold ("key", "made_at") VALUES ('\x6279207472616e73616374696f6e', '2026-11-26 16:26:33.815480+00');
INSERT INTO rowlock_once ("tenant", "key", "fingerprint", "result", "made_at", "expires_at") VALUES ('\x', '\x6368617267652f37', '\xd3522d1c8693efc06b97dffd9aa7e5d96e5e9a211c458825de71fd2a1d37f845', '\x00ff646f6e6520e29895', '2026-11-26 16:26:33.775067+00', '2076-11-13 16:26:33.775067+00');
INSERT INTO rowlock_once ("tenant", "key", "fingerprint", "result", "made_at", "expires_at") VALUES ('\x61636d65', '\x6368617267652f37', '\x', NULL, '2026-11-26 16:26:33.775996+00', '2076-11-13 16:26:33.775996+00');
INSERT INTO rowlock_once ("tenant", "key", "fingerprint", "result", "made_at", "expires_at") VALUES ('\x', '\x65787069726564', '\x', '\x6f6c64', '2026-11-26 16:26:33.776479+00', '2026-11-26 16:26:32.777133+00');
INSERT INTO rowlock_member ("key", "reader_group", "owner", "note", "joined_at", "expires_at") VALUES ('\x736861726564', '\x726f776c6f636b540000000000000001', '\xa4d26868017c0ccffe2efe50944ef421', 'host 7/4711/orders	café ☕', '2026-11-26 16:26:33.778170+00', '2076-11-13 16:26:33.778170+00');
INSERT INTO rowlock_member ("key", "reader_group", "owner", "note", "joined_at", "expires_at") VALUES ('\x736861726564', '\x726f776c6f636b540000000000000001', '\x16367aacb67a4a017c8da8ab95682ccb', 'host 7/4711/orders	café ☕', '2026-11-26 16:26:33.779016+00', '2076-11-13 16:26:33.779016+00');
INSERT INTO rowlock_member ("key", "reader_group", "owner", "note", "joined_at", "expires_at") VALUES ('\x736861726564', '\x00000000000000000000000000000000', '\xb93006774cbdd4b299389a03ac3d88c3', '', '2026-11-26 16:26:33.779360+00', '2076-11-13 16:26:33.779360+00');
INSERT INTO rowlock_latch ("kind", "key", "id", "generation", "parties", "state", "ended", "made_at", "expires_at") VALUES (0, '\x696d706f7274', '\x4b259dc9504444dae394c44d968c30d6', 1, 3, 0, 0, '2026-11-26 16:26:33.801942+00', '2076-11-13 16:26:33.802430+00');
INSERT INTO rowlock_party ("id", "phase", "party", "counted_at", "alive_until") VALUES ('\x4b259dc9504444dae394c44d968c30d6', 0, '\x73686172642d31', '2026-11-26 16:26:33.802594+00', NULL);
INSERT INTO rowlock_limit ("name", "slots", "peak", "generation") VALUES ('\x73656d6170686f72652f7265706f727473', 2, 3, 2);
INSERT INTO rowlock_forced ("key", "at", "id", "actor", "reason", "asked", "owner", "token", "note", "raised") VALUES ('\x74616b656e2061776179', '2026-11-26 16:26:33.809940+00', '\x1f58b9145b24d108d7ac38887338b3ea', 'ada@ops	postgres', 'stuck since Friday', 0, '\x9c05ce79d0bfe037953b11f168069e5a', 1, 'host 7/4711/orders	café ☕', 2);
INSERT INTO rowlock_trace ("at", "id", "key", "event", "token", "owner", "note", "number", "detail") VALUES ('2026-11-26 16:26:33.811108+00', 1, '\x7472616365642000ff', 'granted', 7, '\xd84973128c82104ddb9b0b207288b07b', 'host/1/test	by night', 3000000, '');
INSERT INTO rowlock_trace ("at", "id", "key", "event", "token", "owner", "note", "number", "detail") VALUES ('2026-11-26 16:26:33.811108+00', 2, '\x7472616365642000ff', 'lost', 7, '\xd84973128c82104ddb9b0b207288b07b', 'host/1/test	', 0, 'rowlock: lock lost');
INSERT INTO rowlock_trace ("at", "id", "key", "event", "token", "owner", "note", "number", "detail") VALUES ('2026-11-26 16:26:33.811108+00', 3, '\x', 'dropped', 0, '\x00000000000000000000000000000000', '', 12, '');
INSERT INTO rowlock_meta (name, start, since) SELECT 'era/of the writer', 0, since FROM rowlock_meta WHERE name = 'eras';
SELECT setval(pg_get_serial_sequence('rowlock_queue', 'ticket'), (SELECT max(ticket) FROM rowlock_queue));
