-- The tables of schema version 1 on mysql, and rows that the code of that version has written.
-- Written by: go test ./internal/upgrade -run TestDump -dump

-- MySQL cannot roll back a CREATE TABLE: each statement here may find its work done, and leaves it as it is.
--
-- A row for each key that was locked and has not been reaped since. All text is bytes: in a character set, keys that differ
-- in case or in blanks at the end can be one. There is no index but the primary key, or every renewal would write it too.
-- Times are UTC.
CREATE TABLE IF NOT EXISTS `rowlock` (
    `key`       VARBINARY(255) NOT NULL PRIMARY KEY CHECK (LENGTH(`key`) BETWEEN 1 AND 255),
    owner       BINARY(16)     NULL,
    note        VARBINARY(384) NOT NULL DEFAULT '',
    token       BIGINT         NOT NULL CHECK (token >= 0),
    acquired_at DATETIME(6)    NOT NULL,
    expires_at  DATETIME(6)    NOT NULL,
    home        SMALLINT       NOT NULL DEFAULT 0
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- The tokens of a key without a row begin above the floor of its bucket, which the reaper raises before it deletes.
CREATE TABLE IF NOT EXISTS `rowlock_floor` (
    bucket SMALLINT NOT NULL PRIMARY KEY,
    floor  BIGINT   NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

INSERT IGNORE INTO `rowlock_floor` (bucket, floor)
WITH RECURSIVE buckets (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM buckets WHERE n < 255)
SELECT n, 0 FROM buckets;

-- Who waits: a ticket for each waiter of a fair client, in order of rank and then ticket, and a row without rank for each process
-- that wants to be told when a key comes free. Nothing here is needed for safety: who owns a key stands in `rowlock` alone.
CREATE TABLE IF NOT EXISTS `rowlock_queue` (
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
CREATE TABLE IF NOT EXISTS `rowlock_hold` (
    `key`   VARBINARY(255) NOT NULL PRIMARY KEY CHECK (LENGTH(`key`) BETWEEN 1 AND 255),
    made_at DATETIME(6)    NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- What was done once, by the key that asked for it: the fingerprint of the request, and the result. It is written in the
-- transaction that does it, so it is there exactly if that was committed.
CREATE TABLE IF NOT EXISTS `rowlock_once` (
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
CREATE TABLE IF NOT EXISTS `rowlock_wait` (
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

CREATE TABLE IF NOT EXISTS `rowlock_meta` (
    name  VARBINARY(64)  NOT NULL PRIMARY KEY,
    value VARBINARY(255) NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- The instance tells these tables from any others. The version is written last.
INSERT IGNORE INTO `rowlock_meta` (name, value) VALUES ('instance', UUID());

INSERT IGNORE INTO `rowlock_meta` (name, value) VALUES ('schema_version', '1');


UPDATE rowlock_meta SET value = 'af445984-e671-11f1-86d4-02fc00000001' WHERE name = 'instance';
UPDATE rowlock_floor SET floor = 5001 WHERE bucket = 218;
INSERT INTO rowlock (`key`, `owner`, `note`, `token`, `acquired_at`, `expires_at`, `home`) VALUES (X'00ff', X'06eb7d6a69ee19e5fbdf749018d3d2ab', X'686f737420372f343731312f6f726465727309636166c3a920e29895', 1, '2026-11-22 12:38:57.264350', '2076-11-09 12:38:57.264350', 0);
INSERT INTO rowlock (`key`, `owner`, `note`, `token`, `acquired_at`, `expires_at`, `home`) VALUES (X'61', NULL, X'', 1, '2026-11-22 12:38:57.267132', '2026-11-22 12:38:57.267580', 0);
INSERT INTO rowlock (`key`, `owner`, `note`, `token`, `acquired_at`, `expires_at`, `home`) VALUES (X'6120', X'6583dcd6056fd32aadd0d2d0be920de9', X'686f737420372f343731312f6f726465727309636166c3a920e29895', 1, '2026-11-22 12:38:57.263577', '2076-11-09 12:38:57.263577', 0);
INSERT INTO rowlock (`key`, `owner`, `note`, `token`, `acquired_at`, `expires_at`, `home`) VALUES (X'6261636b', NULL, X'', 2199023255552, '2026-11-22 12:38:57.270519', '2026-11-22 12:38:57.271681', 0);
INSERT INTO rowlock (`key`, `owner`, `note`, `token`, `acquired_at`, `expires_at`, `home`) VALUES (X'6279207472616e73616374696f6e', X'51b9ca7b38b58494d81ef214ddb46faa', X'686f737420372f343731312f6f726465727309636166c3a920e29895', 1, '2026-11-22 12:38:57.284309', '2076-11-09 12:38:57.284309', -1);
INSERT INTO rowlock (`key`, `owner`, `note`, `token`, `acquired_at`, `expires_at`, `home`) VALUES (X'65787069726564', X'fa64ea1e82e1206f828ab2a02917c7e9', X'686f737420372f343731312f6f726465727309636166c3a920e29895', 1, '2026-11-22 12:38:57.268399', '2026-11-22 12:38:57.269399', 0);
INSERT INTO rowlock (`key`, `owner`, `note`, `token`, `acquired_at`, `expires_at`, `home`) VALUES (X'66616972', X'1869c9d2a11e8ecde889aa06a8114033', X'686f737420372f343731312f6f726465727309636166c3a920e29895', 1, '2026-11-22 12:38:57.275527', '2076-11-09 12:38:57.275527', 0);
INSERT INTO rowlock (`key`, `owner`, `note`, `token`, `acquired_at`, `expires_at`, `home`) VALUES (X'66726565', NULL, X'', 1, '2026-11-22 12:38:57.265863', '2026-11-22 12:38:57.266310', 0);
INSERT INTO rowlock (`key`, `owner`, `note`, `token`, `acquired_at`, `expires_at`, `home`) VALUES (X'68656c64', X'c20dea4d876b5b8fb0a1814b43017030', X'686f737420372f343731312f6f726465727309636166c3a920e29895', 1, '2026-11-22 12:38:57.261925', '2076-11-09 12:38:57.262492', 0);
INSERT INTO rowlock (`key`, `owner`, `note`, `token`, `acquired_at`, `expires_at`, `home`) VALUES (X'6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b', X'767527047c4621915da44b8a2aa3165e', X'686f737420372f343731312f6f726465727309636166c3a920e29895', 1, '2026-11-22 12:38:57.265136', '2076-11-09 12:38:57.265136', 0);
INSERT INTO rowlock (`key`, `owner`, `note`, `token`, `acquired_at`, `expires_at`, `home`) VALUES (X'6d6f766564', NULL, X'', 1099511627776, '2026-11-22 12:38:57.269159', '2026-11-22 12:38:57.269827', 1);
INSERT INTO rowlock (`key`, `owner`, `note`, `token`, `acquired_at`, `expires_at`, `home`) VALUES (X'7370656e74', NULL, X'', 9223372036853727231, '2026-11-22 12:38:57.274231', '2026-11-22 12:38:57.274736', 0);
INSERT INTO rowlock_queue (`key`, `waiter`, `ticket`, `rank`, `note`, `ttl`, `alive_until`) VALUES (X'66616972', X'19ed40bf62c399b8492efda5b9a9184b', 12, NULL, X'', 0, '2076-11-09 12:38:57.278695');
INSERT INTO rowlock_queue (`key`, `waiter`, `ticket`, `rank`, `note`, `ttl`, `alive_until`) VALUES (X'66616972', X'28a3a5e81d1e89f0efc70b63bf717b92', 11, 1795351087278060, X'686f737420372f343731312f6f72646572730964656164', 1000, '2026-11-22 12:38:57.279060');
INSERT INTO rowlock_queue (`key`, `waiter`, `ticket`, `rank`, `note`, `ttl`, `alive_until`) VALUES (X'66616972', X'a7937b64b8caa58f03721bb6bacf5c78', 9, 1795351127276333, X'686f737420372f343731312f6f7264657273096669727374', 1576800000000000, '2076-11-09 12:38:57.276333');
INSERT INTO rowlock_queue (`key`, `waiter`, `ticket`, `rank`, `note`, `ttl`, `alive_until`) VALUES (X'66616972', X'f9d37c23fcc0f03c15a86aba71dce01d', 10, 1795351037277242, X'686f737420372f343731312f6f726465727309757267656e74', 1576800000000000, '2076-11-09 12:38:57.277242');
INSERT INTO rowlock_queue (`key`, `waiter`, `ticket`, `rank`, `note`, `ttl`, `alive_until`) VALUES (X'68656c64', X'19ed40bf62c399b8492efda5b9a9184b', 13, NULL, X'', 0, '2076-11-09 12:38:57.278695');
INSERT INTO rowlock_hold (`key`, `made_at`) VALUES (X'6279207472616e73616374696f6e', '2026-11-22 12:38:57.283458');
INSERT INTO rowlock_once (`tenant`, `key`, `fingerprint`, `result`, `made_at`, `expires_at`) VALUES (X'', X'6368617267652f37', X'd3522d1c8693efc06b97dffd9aa7e5d96e5e9a211c458825de71fd2a1d37f845', X'00ff646f6e6520e29895', '2026-11-22 12:38:57.279531', '2076-11-09 12:38:57.279531');
INSERT INTO rowlock_once (`tenant`, `key`, `fingerprint`, `result`, `made_at`, `expires_at`) VALUES (X'61636d65', X'6368617267652f37', X'', NULL, '2026-11-22 12:38:57.281438', '2076-11-09 12:38:57.281438');
INSERT INTO rowlock_once (`tenant`, `key`, `fingerprint`, `result`, `made_at`, `expires_at`) VALUES (X'', X'65787069726564', X'', X'6f6c64', '2026-11-22 12:38:57.282076', '2026-11-22 12:38:56.282816');
