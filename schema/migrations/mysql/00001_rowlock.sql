-- +goose Up

-- MySQL cannot roll back a CREATE TABLE: each statement here may find its work done, and leaves it as it is.
--
-- A row for each key that was locked and has not been reaped since. All text is bytes: in a character set, keys that differ
-- in case or in blanks at the end can be one. There is no index but the primary key, or every renewal would write it too.
-- Times are UTC.
CREATE TABLE IF NOT EXISTS rowlock (
    `key`       VARBINARY(255) NOT NULL PRIMARY KEY CHECK (LENGTH(`key`) BETWEEN 1 AND 255),
    owner       BINARY(16)     NULL,
    note        VARBINARY(384) NOT NULL DEFAULT '',
    token       BIGINT         NOT NULL CHECK (token >= 0),
    acquired_at DATETIME(6)    NOT NULL,
    expires_at  DATETIME(6)    NOT NULL,
    home        SMALLINT       NOT NULL DEFAULT 0
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- The tokens of a key without a row begin above the floor of its bucket, which the reaper raises before it deletes.
CREATE TABLE IF NOT EXISTS rowlock_floor (
    bucket SMALLINT NOT NULL PRIMARY KEY,
    floor  BIGINT   NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

INSERT IGNORE INTO rowlock_floor (bucket, floor)
WITH RECURSIVE buckets (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM buckets WHERE n < 255)
SELECT n, 0 FROM buckets;

-- Who waits: a ticket for each waiter of a fair client, in order of rank and then ticket, and a row without rank for each process
-- that wants to be told when a key comes free. Nothing here is needed for safety: who owns a key stands in rowlock alone.
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

-- A row for each key that forupdate locks, with nothing to say: the lock on the row is the lock.
CREATE TABLE IF NOT EXISTS rowlock_hold (
    `key`   VARBINARY(255) NOT NULL PRIMARY KEY CHECK (LENGTH(`key`) BETWEEN 1 AND 255),
    made_at DATETIME(6)    NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- What was done once, by the key that asked for it: the fingerprint of the request, and the result. It is written in the
-- transaction that does it, so it is there exactly if that was committed.
CREATE TABLE IF NOT EXISTS rowlock_once (
    tenant      VARBINARY(255) NOT NULL DEFAULT '',
    `key`       VARBINARY(255) NOT NULL CHECK (LENGTH(`key`) BETWEEN 1 AND 255),
    fingerprint VARBINARY(32)  NOT NULL DEFAULT '',
    result      LONGBLOB       NULL,
    made_at     DATETIME(6)    NOT NULL,
    expires_at  DATETIME(6)    NOT NULL,
    PRIMARY KEY (tenant, `key`),
    INDEX (expires_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- What waits while it holds something: a row for each lease that a chain holds, and one with token 0 for each key that it waits for,
-- with the token that the key had then. A cycle of such chains waits for ever. Nothing here is needed for safety.
CREATE TABLE IF NOT EXISTS rowlock_wait (
    chain       BINARY(16)     NOT NULL,
    `key`       VARBINARY(255) NOT NULL CHECK (LENGTH(`key`) BETWEEN 1 AND 255),
    token       BIGINT         NOT NULL CHECK (token >= 0),
    awaits      BIGINT         NOT NULL DEFAULT 0,
    process     SMALLINT       NOT NULL,
    note        VARBINARY(384) NOT NULL DEFAULT '',
    since       DATETIME(6)    NOT NULL,
    alive_until DATETIME(6)    NOT NULL,
    PRIMARY KEY (chain, `key`, token),
    INDEX (`key`, token)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

CREATE TABLE IF NOT EXISTS rowlock_meta (
    name  VARBINARY(64)  NOT NULL PRIMARY KEY,
    value VARBINARY(255) NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- The instance tells these tables from any others. The version is written last.
INSERT IGNORE INTO rowlock_meta (name, value) VALUES ('instance', UUID());

INSERT IGNORE INTO rowlock_meta (name, value) VALUES ('schema_version', '1');

-- +goose Down

DROP TABLE IF EXISTS rowlock_meta, rowlock_wait, rowlock_once, rowlock_hold, rowlock_queue, rowlock_floor, rowlock;
