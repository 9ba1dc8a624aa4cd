-- The tables of schema version 3 on mariadb, and rows that the code of that version has written.
-- Written by: go test ./internal/upgrade -run TestDump -dump

-- MySQL cannot roll back a CREATE TABLE: each statement here may find its work done, and leaves it as it is.
--
-- A row for each key that was locked and has not been reaped since. All text is bytes: in a character set, keys that
-- differ in case or in blanks at the end can be one. There is no index but the primary key, or every renewal would
-- write it too. Times are UTC. No CHECK: each write of a row would pay for it. Statements that grant ask for a token
-- that is not negative, and a reader of a row proves the rest.
-- fenced_by is the session that fenced last, and fenced_token under which token: for protected tables.
CREATE TABLE IF NOT EXISTS `rowlock` (
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
CREATE TABLE IF NOT EXISTS `rowlock_floor` (
    bucket SMALLINT NOT NULL PRIMARY KEY,
    floor  BIGINT   NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

INSERT IGNORE INTO `rowlock_floor` (bucket, floor)
WITH RECURSIVE buckets (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM buckets WHERE n < 255)
SELECT n, 0 FROM buckets;

-- Who waits: a ticket for each waiter of a fair client, in order of rank and then ticket, and a row
-- without rank for each process that wants to be told when a key comes free. Nothing here is needed
-- for safety: who owns a key stands in `rowlock` alone.
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

-- What waits while it holds something: a row for each lease that a caller holds, and one with token
-- 0 for each key that it waits for, with the token that the key had then. A cycle of such callers
-- waits for ever. Nothing here is needed for safety.
CREATE TABLE IF NOT EXISTS `rowlock_wait` (
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
CREATE TABLE IF NOT EXISTS `rowlock_forced` (
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
CREATE TABLE IF NOT EXISTS `rowlock_meta` (
    name  VARBINARY(255) NOT NULL PRIMARY KEY,
    value VARBINARY(255) NOT NULL DEFAULT '',
    start BIGINT         NULL CHECK (start >= 0),
    since DATETIME(6)    NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- The instance tells these tables from any others. The version is written last.
INSERT IGNORE INTO `rowlock_meta` (name, value) VALUES ('instance', UUID());

INSERT IGNORE INTO `rowlock_meta` (name, start, since) VALUES ('eras', 0, UTC_TIMESTAMP(6));

INSERT IGNORE INTO `rowlock_meta` (name, value) VALUES ('compatible_from', '3');

INSERT IGNORE INTO `rowlock_meta` (name, value) VALUES ('schema_version', '3');

-- The members of a group that shares a key, each with a lease of its own: the row of the key names
-- the group as its owner and never expires. Only its own member changes a row here. The group of 16
-- zero bytes has those that wait for such a key exclusively.
CREATE TABLE IF NOT EXISTS `rowlock_member` (
    `key`        VARBINARY(255) NOT NULL CHECK (LENGTH(`key`) BETWEEN 1 AND 255),
    reader_group BINARY(16)     NOT NULL,
    owner        BINARY(16)     NOT NULL,
    note         VARBINARY(384) NOT NULL DEFAULT '',
    joined_at    DATETIME(6)    NOT NULL,
    expires_at   DATETIME(6)    NOT NULL,
    PRIMARY KEY (`key`, reader_group, owner)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- Limits of semaphores. Their slots are rows of `rowlock` under the name, a slash and three digits.
-- peak is the largest number of slots that there ever was. A statement that grants slots locks the
-- row to be read, and names the generation that its count was read in.
CREATE TABLE IF NOT EXISTS `rowlock_limit` (
    name       VARBINARY(251) NOT NULL CHECK (LENGTH(name) BETWEEN 1 AND 251),
    slots      INT            NOT NULL CHECK (slots > 0),
    peak       INT            NOT NULL,
    generation BIGINT         NOT NULL,
    PRIMARY KEY (name)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

INSERT IGNORE INTO `rowlock_meta` (name, value) VALUES ('compatible_from/shared', '3');

INSERT IGNORE INTO `rowlock_meta` (name, value) VALUES ('schema_version/shared', '3');

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

INSERT IGNORE INTO `rowlock_meta` (name, value) VALUES ('compatible_from/once', '3');

INSERT IGNORE INTO `rowlock_meta` (name, value) VALUES ('schema_version/once', '3');

-- Latches and barriers: a row for each, whose id names its generation and no other. state and ended
-- say how far this generation and the one before it have come. Only a reset, a barrier's steps and
-- the retention change a row.
CREATE TABLE IF NOT EXISTS `rowlock_latch` (
    kind       SMALLINT       NOT NULL,
    `key`      VARBINARY(255) NOT NULL CHECK (LENGTH(`key`) BETWEEN 1 AND 255),
    id         BINARY(16)     NOT NULL UNIQUE,
    generation BIGINT         NOT NULL CHECK (generation > 0),
    parties    INT            NOT NULL CHECK (parties > 0),
    state      SMALLINT       NOT NULL DEFAULT 0,
    ended      SMALLINT       NOT NULL DEFAULT 0,
    made_at    DATETIME(6)    NOT NULL,
    expires_at DATETIME(6)    NOT NULL,
    PRIMARY KEY (kind, `key`)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- The parties of a generation that have counted down or entered (phase 0) or left (phase 1), a row
-- each, so that none waits for another.
CREATE TABLE IF NOT EXISTS `rowlock_party` (
    id          BINARY(16)     NOT NULL,
    phase       SMALLINT       NOT NULL,
    party       VARBINARY(255) NOT NULL CHECK (LENGTH(party) BETWEEN 1 AND 255),
    counted_at  DATETIME(6)    NOT NULL,
    alive_until DATETIME(6)    NULL,
    PRIMARY KEY (id, phase, party)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

INSERT IGNORE INTO `rowlock_meta` (name, value) VALUES ('compatible_from/latch', '3');

INSERT IGNORE INTO `rowlock_meta` (name, value) VALUES ('schema_version/latch', '3');

-- A row for each key that forupdate locks, with nothing to say: the lock on the row is the lock.
CREATE TABLE IF NOT EXISTS `rowlock_hold` (
    `key`   VARBINARY(255) NOT NULL PRIMARY KEY CHECK (LENGTH(`key`) BETWEEN 1 AND 255),
    made_at DATETIME(6)    NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

INSERT IGNORE INTO `rowlock_meta` (name, value) VALUES ('compatible_from/forupdate', '3');

INSERT IGNORE INTO `rowlock_meta` (name, value) VALUES ('schema_version/forupdate', '3');

-- What became of keys, for clients with Config.Trace: removed after their retention, and read by no
-- lock. number is µs, or how many events were dropped. A key of no bytes has what concerns no key.
CREATE TABLE IF NOT EXISTS `rowlock_trace` (
    `at`    DATETIME(6)     NOT NULL,
    id      BIGINT          NOT NULL,
    `key`   VARBINARY(255)  NOT NULL,
    event   VARBINARY(16)   NOT NULL,
    token   BIGINT          NOT NULL,
    owner   BINARY(16)      NOT NULL,
    note    VARBINARY(384)  NOT NULL,
    number  BIGINT          NOT NULL,
    detail  VARBINARY(255)  NOT NULL,
    PRIMARY KEY (`at`, id),
    UNIQUE (`key`, `at`, id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

INSERT IGNORE INTO `rowlock_meta` (name, value) VALUES ('compatible_from/trace', '3');

INSERT IGNORE INTO `rowlock_meta` (name, value) VALUES ('schema_version/trace', '3');


UPDATE rowlock_meta SET value = '54a59484-e9ba-11f1-927a-02fc00000001' WHERE name = 'instance';
UPDATE rowlock_floor SET floor = 5001 WHERE bucket = 218;
INSERT INTO rowlock (`key`, `owner`, `note`, `token`, `acquired_at`, `expires_at`, `placement`, `fenced_by`, `fenced_token`) VALUES (X'00ff', X'06eb7d6a69ee19e5fbdf749018d3d2ab', X'686f737420372f343731312f6f726465727309636166c3a920e29895', 1, '2026-11-26 16:56:32.479903', '2076-11-13 16:56:32.479903', 0, 0, 0);
INSERT INTO rowlock (`key`, `owner`, `note`, `token`, `acquired_at`, `expires_at`, `placement`, `fenced_by`, `fenced_token`) VALUES (X'61', NULL, X'', 1, '2026-11-26 16:56:32.493834', '2026-11-26 16:56:32.495458', 0, 0, 0);
INSERT INTO rowlock (`key`, `owner`, `note`, `token`, `acquired_at`, `expires_at`, `placement`, `fenced_by`, `fenced_token`) VALUES (X'6120', X'6583dcd6056fd32aadd0d2d0be920de9', X'686f737420372f343731312f6f726465727309636166c3a920e29895', 1, '2026-11-26 16:56:32.479212', '2076-11-13 16:56:32.479212', 0, 0, 0);
INSERT INTO rowlock (`key`, `owner`, `note`, `token`, `acquired_at`, `expires_at`, `placement`, `fenced_by`, `fenced_token`) VALUES (X'6261636b', NULL, X'', 2199023255552, '2026-11-26 16:56:32.519276', '2026-11-26 16:56:32.535518', 0, 0, 0);
INSERT INTO rowlock (`key`, `owner`, `note`, `token`, `acquired_at`, `expires_at`, `placement`, `fenced_by`, `fenced_token`) VALUES (X'6279207472616e73616374696f6e', X'51b9ca7b38b58494d81ef214ddb46faa', X'686f737420372f343731312f6f726465727309636166c3a920e29895', 1, '2026-11-26 16:56:32.659658', '2076-11-13 16:56:32.659658', -1, 0, 0);
INSERT INTO rowlock (`key`, `owner`, `note`, `token`, `acquired_at`, `expires_at`, `placement`, `fenced_by`, `fenced_token`) VALUES (X'65787069726564', X'fa64ea1e82e1206f828ab2a02917c7e9', X'686f737420372f343731312f6f726465727309636166c3a920e29895', 1, '2026-11-26 16:56:32.510136', '2026-11-26 16:56:32.511136', 0, 0, 0);
INSERT INTO rowlock (`key`, `owner`, `note`, `token`, `acquired_at`, `expires_at`, `placement`, `fenced_by`, `fenced_token`) VALUES (X'66616972', X'1869c9d2a11e8ecde889aa06a8114033', X'686f737420372f343731312f6f726465727309636166c3a920e29895', 1, '2026-11-26 16:56:32.547596', '2076-11-13 16:56:32.547596', 0, 0, 0);
INSERT INTO rowlock (`key`, `owner`, `note`, `token`, `acquired_at`, `expires_at`, `placement`, `fenced_by`, `fenced_token`) VALUES (X'66726565', NULL, X'', 1, '2026-11-26 16:56:32.489539', '2026-11-26 16:56:32.490079', 0, 0, 0);
INSERT INTO rowlock (`key`, `owner`, `note`, `token`, `acquired_at`, `expires_at`, `placement`, `fenced_by`, `fenced_token`) VALUES (X'68656c64', X'c20dea4d876b5b8fb0a1814b43017030', X'686f737420372f343731312f6f726465727309636166c3a920e29895', 1, '2026-11-26 16:56:32.477612', '2076-11-13 16:56:32.478054', 0, 0, 0);
INSERT INTO rowlock (`key`, `owner`, `note`, `token`, `acquired_at`, `expires_at`, `placement`, `fenced_by`, `fenced_token`) VALUES (X'6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b', X'767527047c4621915da44b8a2aa3165e', X'686f737420372f343731312f6f726465727309636166c3a920e29895', 1, '2026-11-26 16:56:32.480557', '2076-11-13 16:56:32.480557', 0, 0, 0);
INSERT INTO rowlock (`key`, `owner`, `note`, `token`, `acquired_at`, `expires_at`, `placement`, `fenced_by`, `fenced_token`) VALUES (X'6d6f766564', NULL, X'', 1099511627776, '2026-11-26 16:56:32.511352', '2026-11-26 16:56:32.518678', 1, 0, 0);
INSERT INTO rowlock (`key`, `owner`, `note`, `token`, `acquired_at`, `expires_at`, `placement`, `fenced_by`, `fenced_token`) VALUES (X'73656d6170686f72652f7265706f7274732f303032', X'41d6d5322a9b546a16bdf2213c7e4b01', X'686f737420372f343731312f6f726465727309636166c3a920e29895', 1, '2026-11-26 16:56:32.631120', '2076-11-13 16:56:32.631120', 0, 0, 0);
INSERT INTO rowlock (`key`, `owner`, `note`, `token`, `acquired_at`, `expires_at`, `placement`, `fenced_by`, `fenced_token`) VALUES (X'736861726564', X'726f776c6f636b540000000000000001', X'686f737420372f343731312f6f726465727309636166c3a920e29895', 1, '2026-11-26 16:56:32.588817', '9999-01-01 00:00:00.000000', 0, 0, 0);
INSERT INTO rowlock (`key`, `owner`, `note`, `token`, `acquired_at`, `expires_at`, `placement`, `fenced_by`, `fenced_token`) VALUES (X'7370656e74', NULL, X'', 9223372036853727231, '2026-11-26 16:56:32.543275', '2026-11-26 16:56:32.544753', 0, 0, 0);
INSERT INTO rowlock (`key`, `owner`, `note`, `token`, `acquired_at`, `expires_at`, `placement`, `fenced_by`, `fenced_token`) VALUES (X'74616b656e2061776179', NULL, X'', 2, '2026-11-26 16:56:32.637143', '2026-11-26 16:56:32.642443', 0, 0, 0);
INSERT INTO rowlock_queue (`key`, `waiter`, `ticket`, `rank`, `note`, `ttl`, `alive_until`) VALUES (X'66616972', X'19ed40bf62c399b8492efda5b9a9184b', 12, NULL, X'', 0, '2076-11-13 16:56:32.557419');
INSERT INTO rowlock_queue (`key`, `waiter`, `ticket`, `rank`, `note`, `ttl`, `alive_until`) VALUES (X'66616972', X'28a3a5e81d1e89f0efc70b63bf717b92', 11, 1795712142552693, X'686f737420372f343731312f6f72646572730964656164', 1000, '2026-11-26 16:56:32.553693');
INSERT INTO rowlock_queue (`key`, `waiter`, `ticket`, `rank`, `note`, `ttl`, `alive_until`) VALUES (X'66616972', X'a7937b64b8caa58f03721bb6bacf5c78', 9, 1795712182548576, X'686f737420372f343731312f6f7264657273096669727374', 1576800000000000, '2076-11-13 16:56:32.548576');
INSERT INTO rowlock_queue (`key`, `waiter`, `ticket`, `rank`, `note`, `ttl`, `alive_until`) VALUES (X'66616972', X'f9d37c23fcc0f03c15a86aba71dce01d', 10, 1795712092549320, X'686f737420372f343731312f6f726465727309757267656e74', 1576800000000000, '2076-11-13 16:56:32.549320');
INSERT INTO rowlock_queue (`key`, `waiter`, `ticket`, `rank`, `note`, `ttl`, `alive_until`) VALUES (X'68656c64', X'19ed40bf62c399b8492efda5b9a9184b', 13, NULL, X'', 0, '2076-11-13 16:56:32.557419');
INSERT INTO rowlock_hold (`key`, `made_at`) VALUES (X'6279207472616e73616374696f6e', '2026-11-26 16:56:32.658228');
INSERT INTO rowlock_once (`tenant`, `key`, `fingerprint`, `result`, `made_at`, `expires_at`) VALUES (X'', X'6368617267652f37', X'd3522d1c8693efc06b97dffd9aa7e5d96e5e9a211c458825de71fd2a1d37f845', X'00ff646f6e6520e29895', '2026-11-26 16:56:32.558926', '2076-11-13 16:56:32.558926');
INSERT INTO rowlock_once (`tenant`, `key`, `fingerprint`, `result`, `made_at`, `expires_at`) VALUES (X'61636d65', X'6368617267652f37', X'', NULL, '2026-11-26 16:56:32.563068', '2076-11-13 16:56:32.563067');
INSERT INTO rowlock_once (`tenant`, `key`, `fingerprint`, `result`, `made_at`, `expires_at`) VALUES (X'', X'65787069726564', X'', X'6f6c64', '2026-11-26 16:56:32.568906', '2026-11-26 16:56:31.583889');
INSERT INTO rowlock_member (`key`, `reader_group`, `owner`, `note`, `joined_at`, `expires_at`) VALUES (X'736861726564', X'00000000000000000000000000000000', X'b93006774cbdd4b299389a03ac3d88c3', X'', '2026-11-26 16:56:32.591213', '2076-11-13 16:56:32.591213');
INSERT INTO rowlock_member (`key`, `reader_group`, `owner`, `note`, `joined_at`, `expires_at`) VALUES (X'736861726564', X'726f776c6f636b540000000000000001', X'16367aacb67a4a017c8da8ab95682ccb', X'686f737420372f343731312f6f726465727309636166c3a920e29895', '2026-11-26 16:56:32.590542', '2076-11-13 16:56:32.590542');
INSERT INTO rowlock_member (`key`, `reader_group`, `owner`, `note`, `joined_at`, `expires_at`) VALUES (X'736861726564', X'726f776c6f636b540000000000000001', X'a4d26868017c0ccffe2efe50944ef421', X'686f737420372f343731312f6f726465727309636166c3a920e29895', '2026-11-26 16:56:32.589909', '2076-11-13 16:56:32.589909');
INSERT INTO rowlock_latch (`kind`, `key`, `id`, `generation`, `parties`, `state`, `ended`, `made_at`, `expires_at`) VALUES (0, X'696d706f7274', X'be75f3a23600658debb7d40fc61885d1', 1, 3, 0, 0, '2026-11-26 16:56:32.615651', '2076-11-13 16:56:32.616410');
INSERT INTO rowlock_party (`id`, `phase`, `party`, `counted_at`, `alive_until`) VALUES (X'be75f3a23600658debb7d40fc61885d1', 0, X'73686172642d31', '2026-11-26 16:56:32.616889', NULL);
INSERT INTO rowlock_limit (`name`, `slots`, `peak`, `generation`) VALUES (X'73656d6170686f72652f7265706f727473', 2, 3, 2);
INSERT INTO rowlock_forced (`key`, `at`, `id`, `actor`, `reason`, `asked`, `owner`, `token`, `note`, `raised`) VALUES (X'74616b656e2061776179', '2026-11-26 16:56:32.646747', X'1f58b9145b24d108d7ac38887338b3ea', X'616461406f707309726f6f74403132372e302e302e31', X'737475636b2073696e636520467269646179', 0, X'9c05ce79d0bfe037953b11f168069e5a', 1, X'686f737420372f343731312f6f726465727309636166c3a920e29895', 2);
INSERT INTO rowlock_trace (`at`, `id`, `key`, `event`, `token`, `owner`, `note`, `number`, `detail`) VALUES ('2026-11-26 16:56:32.649478', 1, X'7472616365642000ff', X'6772616e746564', 7, X'd84973128c82104ddb9b0b207288b07b', X'686f73742f312f74657374096279206e69676874', 3000000, X'');
INSERT INTO rowlock_trace (`at`, `id`, `key`, `event`, `token`, `owner`, `note`, `number`, `detail`) VALUES ('2026-11-26 16:56:32.649478', 2, X'7472616365642000ff', X'6c6f7374', 7, X'd84973128c82104ddb9b0b207288b07b', X'686f73742f312f7465737409', 0, X'726f776c6f636b3a206c6f636b206c6f7374');
INSERT INTO rowlock_trace (`at`, `id`, `key`, `event`, `token`, `owner`, `note`, `number`, `detail`) VALUES ('2026-11-26 16:56:32.649478', 3, X'', X'64726f70706564', 0, X'00000000000000000000000000000000', X'', 12, X'');
INSERT INTO rowlock_meta (name, start, since) SELECT 'era/of the writer', 0, since FROM rowlock_meta WHERE name = 'eras';
