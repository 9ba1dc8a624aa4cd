-- +goose Up

-- The members of a group that shares a key, each with a lease of its own: the row of the key names
-- the group as its owner and never expires. Only its own member changes a row here. The group of 16
-- zero bytes has those that wait for such a key exclusively.
CREATE TABLE "rowlock_member" (
    key         bytea       NOT NULL CHECK (octet_length(key) BETWEEN 1 AND 255),
    team        bytea       NOT NULL CHECK (octet_length(team) = 16),
    owner       bytea       NOT NULL CHECK (octet_length(owner) = 16),
    note        text        NOT NULL DEFAULT '',
    joined_at   timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    PRIMARY KEY (key, team, owner)
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);

-- Latches and barriers: a row for each, whose id names its generation and no other. state and ended
-- say how far this generation and the one before it have come. Only a reset, a barrier's steps and
-- the retention change a row.
CREATE TABLE "rowlock_latch" (
    kind        smallint    NOT NULL,
    key         bytea       NOT NULL CHECK (octet_length(key) BETWEEN 1 AND 255),
    id          bytea       NOT NULL UNIQUE CHECK (octet_length(id) = 16),
    generation  bigint      NOT NULL CHECK (generation > 0),
    parties     integer     NOT NULL CHECK (parties > 0),
    state       smallint    NOT NULL DEFAULT 0,
    ended       smallint    NOT NULL DEFAULT 0,
    made_at     timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
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
    alive_until timestamptz,
    PRIMARY KEY (id, phase, party)
) WITH (
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_scale_factor = 0,
    vacuum_truncate = off
);

-- Limits of semaphores. Their slots are rows of "rowlock" under the name, a slash and three digits.
-- peak is the largest number of slots that there ever was. A statement that grants slots locks the
-- row to be read, and names the generation that its count was read in.
CREATE TABLE "rowlock_limit" (
    name        bytea       NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 251),
    slots       integer     NOT NULL CHECK (slots > 0),
    peak        integer     NOT NULL,
    generation  bigint      NOT NULL,
    PRIMARY KEY (name)
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);

-- Leases that an operator took away, each with who did it and why. raised is the token of the key
-- afterwards.
CREATE TABLE "rowlock_forced" (
    key     bytea       NOT NULL CHECK (octet_length(key) BETWEEN 1 AND 255),
    at      timestamptz NOT NULL,
    id      bytea       NOT NULL CHECK (octet_length(id) = 16),
    actor   text        NOT NULL,
    reason  text        NOT NULL,
    asked   bigint      NOT NULL,
    owner   bytea       NOT NULL CHECK (octet_length(owner) = 16),
    token   bigint      NOT NULL,
    note    text        NOT NULL,
    raised  bigint      NOT NULL,
    PRIMARY KEY (key, at, id),
    UNIQUE (at, id)
);

-- What became of keys, for clients with Config.Trace: removed after their retention, and read by no
-- lock. number is µs, or how many events were dropped. A key of no bytes has what concerns no key.
CREATE TABLE "rowlock_trace" (
    at      timestamptz NOT NULL,
    id      bigint      NOT NULL,
    key     bytea       NOT NULL CHECK (octet_length(key) <= 255),
    event   text        NOT NULL,
    token   bigint      NOT NULL,
    owner   bytea       NOT NULL CHECK (octet_length(owner) = 16),
    note    text        NOT NULL,
    number  bigint      NOT NULL,
    detail  text        NOT NULL,
    PRIMARY KEY (at, id),
    UNIQUE (key, at, id)
) WITH (
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_scale_factor = 0.05,
    vacuum_truncate = off
);

-- The eras of this table: an era for each history of the server that a client has met, with the
-- token that every token of the era is above, and a first row without a history. A client that
-- meets a history which is not here begins an era before anything is granted.
CREATE TABLE "rowlock_era" (
    history text        PRIMARY KEY,
    start   bigint      NOT NULL CHECK (start >= 0),
    since   timestamptz NOT NULL
);

INSERT INTO "rowlock_era" (history, start, since) VALUES ('', 0, clock_timestamp());

-- The tenant that a ticket is for, and the ticket of another tenant that it goes right behind, of
-- which it has the rank. A process of version 1 neither writes nor reads them.
ALTER TABLE "rowlock_queue"
    ADD COLUMN tenant bytea NOT NULL DEFAULT '' CHECK (octet_length(tenant) <= 255),
    ADD COLUMN beside bigint;

UPDATE "rowlock_meta" SET value = '2' WHERE name = 'schema_version';

-- +goose Down

-- The version first: MySQL does not undo a DROP TABLE, and a version never says more than there is.
UPDATE "rowlock_meta" SET value = '1' WHERE name = 'schema_version';

DROP TABLE IF EXISTS "rowlock_era";

DROP TABLE IF EXISTS "rowlock_trace";

DROP TABLE IF EXISTS "rowlock_forced";

ALTER TABLE IF EXISTS "rowlock_queue" DROP COLUMN IF EXISTS beside, DROP COLUMN IF EXISTS tenant;

DROP TABLE IF EXISTS "rowlock_limit";

DROP TABLE IF EXISTS "rowlock_party";

DROP TABLE IF EXISTS "rowlock_latch";

DROP TABLE IF EXISTS "rowlock_member";
