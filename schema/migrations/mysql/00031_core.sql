-- +goose Up

-- MySQL cannot roll back a CREATE TABLE: each statement here may find its work done, and leaves it as it is.
--
-- A row for each key that was locked and has not been reaped since. All text is bytes: in a character set, keys that
-- differ in case or in blanks at the end can be one. There is no index but the primary key, or every renewal would
-- write it too. Times are UTC. No CHECK: each write of a row would pay for it. Statements that grant ask for a token
-- that is not negative, and a reader of a row proves the rest.
-- fenced_by is the session that fenced last, and fenced_token under which token: for protected tables.
CREATE TABLE IF NOT EXISTS rowlock (
    `key`       VARBINARY(255) NOT NULL PRIMARY KEY,
    owner       BINARY(16)     NULL,
    note        VARBINARY(384) NOT NULL DEFAULT '',
    token       BIGINT         NOT NULL,
    acquired_at DATETIME(6)    NOT NULL,
    expires_at  DATETIME(6)    NOT NULL,
    placement   SMALLINT       NOT NULL DEFAULT 0,
    fenced_by   BIGINT UNSIGNED NOT NULL DEFAULT 0,
    fenced_token BIGINT        NOT NULL DEFAULT 0
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- The tokens of a key without a row begin above the floor of its bucket, which the reaper raises before it deletes.
CREATE TABLE IF NOT EXISTS rowlock_floor (
    bucket SMALLINT NOT NULL PRIMARY KEY,
    floor  BIGINT   NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

INSERT IGNORE INTO rowlock_floor (bucket, floor)
WITH RECURSIVE buckets (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM buckets WHERE n < 255)
SELECT n, 0 FROM buckets;

-- Who waits: a ticket for each waiter of a fair client, in order of rank and then ticket, and a row
-- without rank for each process that wants to be told when a key comes free. Nothing here is needed
-- for safety: who owns a key stands in rowlock alone.
CREATE TABLE IF NOT EXISTS rowlock_queue (
    `key`       VARBINARY(255) NOT NULL CHECK (LENGTH(`key`) BETWEEN 1 AND 255),
    waiter      BINARY(16)     NOT NULL,
    ticket      BIGINT         NOT NULL AUTO_INCREMENT UNIQUE,
    `rank`      BIGINT         NULL,
    note        VARBINARY(384) NOT NULL DEFAULT '',
    ttl         BIGINT         NOT NULL DEFAULT 0,
    alive_until DATETIME(6)    NOT NULL,
    PRIMARY KEY (`key`, waiter)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- What waits while it holds something: a row for each lease that a caller holds, and one with token
-- 0 for each key that it waits for, with the token that the key had then. A cycle of such callers
-- waits for ever. Nothing here is needed for safety.
CREATE TABLE IF NOT EXISTS rowlock_wait (
    caller      BINARY(16)     NOT NULL,
    `key`       VARBINARY(255) NOT NULL CHECK (LENGTH(`key`) BETWEEN 1 AND 255),
    token       BIGINT         NOT NULL CHECK (token >= 0),
    awaits      BIGINT         NOT NULL DEFAULT 0,
    process     SMALLINT       NOT NULL,
    note        VARBINARY(384) NOT NULL DEFAULT '',
    since       DATETIME(6)    NOT NULL,
    alive_until DATETIME(6)    NOT NULL,
    PRIMARY KEY (caller, `key`, token),
    INDEX (`key`, token)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- Leases that an operator took away, each with who did it and why. raised is the token of the key
-- afterwards.
CREATE TABLE IF NOT EXISTS rowlock_forced (
    `key`   VARBINARY(255)  NOT NULL CHECK (LENGTH(`key`) BETWEEN 1 AND 255),
    `at`    DATETIME(6)     NOT NULL,
    id      BINARY(16)      NOT NULL,
    actor   VARBINARY(512)  NOT NULL,
    reason  VARBINARY(1000) NOT NULL,
    asked   BIGINT          NOT NULL,
    owner   BINARY(16)      NOT NULL,
    token   BIGINT          NOT NULL,
    note    VARBINARY(384)  NOT NULL,
    raised  BIGINT          NOT NULL,
    PRIMARY KEY (`key`, `at`, id),
    UNIQUE (`at`, id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- Settings, and the eras of these tables: a row for each server incarnation that a client has met, named era/ and the
-- incarnation, with the token that every token of the era is above and the time when it began. The row eras is none
-- of them: a client locks it to begin an era, before anything is granted by an incarnation that is not here.
CREATE TABLE IF NOT EXISTS rowlock_meta (
    name  VARBINARY(255) NOT NULL PRIMARY KEY,
    value VARBINARY(255) NOT NULL DEFAULT '',
    start BIGINT         NULL CHECK (start >= 0),
    since DATETIME(6)    NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- The instance tells these tables from any others. The version is written last.
INSERT IGNORE INTO rowlock_meta (name, value) VALUES ('instance', UUID());

INSERT IGNORE INTO rowlock_meta (name, start, since) VALUES ('eras', 0, UTC_TIMESTAMP(6));

INSERT IGNORE INTO rowlock_meta (name, value) VALUES ('compatible_from', '3');

INSERT IGNORE INTO rowlock_meta (name, value) VALUES ('schema_version', '3');

-- +goose Down

-- rowlock_floor and rowlock_meta stay: tokens of tables that are made anew go on above those that
-- were granted. Nothing is granted any more in rowlock_down, which a run that was cut short leaves.
CREATE TABLE IF NOT EXISTS rowlock_down (token BIGINT PRIMARY KEY);
UPDATE rowlock_floor SET floor = GREATEST(floor, COALESCE((SELECT MAX(token) FROM rowlock_down), 0));
DROP TABLE rowlock_down;
-- It refuses as a duplicate entry, because only a procedure can raise an error. After schema.Down
-- there is no table of locks. A stand-in has a primary key, which a server may require, and what schema.Uninstall knows.
CREATE TABLE IF NOT EXISTS rowlock (owner BINARY(16), token BIGINT PRIMARY KEY, acquired_at INT, expires_at DATETIME(6), placement SMALLINT);
INSERT INTO rowlock_meta (name) SELECT 'the tables stay: keys are locked, in a cluster or out of tokens'
FROM (SELECT 1 UNION ALL SELECT 2) AS twice WHERE EXISTS (SELECT 1 FROM rowlock
  WHERE owner IS NOT NULL AND expires_at > UTC_TIMESTAMP(6)
    OR placement NOT IN (0, -1) OR token NOT BETWEEN 0 AND 9223372036853727230);
DELETE FROM rowlock_meta WHERE name IN ('schema_version', 'compatible_from');
RENAME TABLE rowlock TO rowlock_down;
UPDATE rowlock_floor SET floor = GREATEST(floor, COALESCE((SELECT MAX(token) FROM rowlock_down), 0));
DROP TABLE IF EXISTS rowlock_forced, rowlock_wait, rowlock_queue, rowlock_down;
