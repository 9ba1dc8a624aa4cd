-- +goose Up

-- The members of a group that shares a key, each with a lease of its own: the row of the key names
-- the group as its owner and never expires. Only its own member changes a row here. The group of 16
-- zero bytes has those that wait for such a key exclusively.
CREATE TABLE IF NOT EXISTS rowlock_member (
    `key`      VARBINARY(255) NOT NULL CHECK (LENGTH(`key`) BETWEEN 1 AND 255),
    team       BINARY(16)     NOT NULL,
    owner      BINARY(16)     NOT NULL,
    note       VARBINARY(384) NOT NULL DEFAULT '',
    joined_at  DATETIME(6)    NOT NULL,
    expires_at DATETIME(6)    NOT NULL,
    PRIMARY KEY (`key`, team, owner)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- Latches and barriers: a row for each, whose id names its generation and no other. state and ended
-- say how far this generation and the one before it have come. Only a reset, a barrier's steps and
-- the retention change a row.
CREATE TABLE IF NOT EXISTS rowlock_latch (
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
CREATE TABLE IF NOT EXISTS rowlock_party (
    id          BINARY(16)     NOT NULL,
    phase       SMALLINT       NOT NULL,
    party       VARBINARY(255) NOT NULL CHECK (LENGTH(party) BETWEEN 1 AND 255),
    counted_at  DATETIME(6)    NOT NULL,
    alive_until DATETIME(6)    NULL,
    PRIMARY KEY (id, phase, party)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- Limits of semaphores. Their slots are rows of rowlock under the name, a slash and three digits.
-- peak is the largest number of slots that there ever was. A statement that grants slots locks the
-- row to be read, and names the generation that its count was read in.
CREATE TABLE IF NOT EXISTS rowlock_limit (
    name       VARBINARY(251) NOT NULL CHECK (LENGTH(name) BETWEEN 1 AND 251),
    slots      INT            NOT NULL CHECK (slots > 0),
    peak       INT            NOT NULL,
    generation BIGINT         NOT NULL,
    PRIMARY KEY (name)
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

-- What became of keys, for clients with Config.Trace: removed after their retention, and read by no
-- lock. number is µs, or how many events were dropped. A key of no bytes has what concerns no key.
CREATE TABLE IF NOT EXISTS rowlock_trace (
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

-- The eras of this table: an era for each history of the server that a client has met, with the
-- token that every token of the era is above, and a first row without a history. A client that
-- meets a history which is not here begins an era before anything is granted.
CREATE TABLE IF NOT EXISTS rowlock_era (
    history VARBINARY(255) NOT NULL,
    start   BIGINT         NOT NULL CHECK (start >= 0),
    since   DATETIME(6)    NOT NULL,
    PRIMARY KEY (history)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

INSERT IGNORE INTO rowlock_era (history, start, since) VALUES ('', 0, UTC_TIMESTAMP(6));

-- The tenant that a ticket is for, and the ticket of another tenant that it goes right behind, of
-- which it has the rank. A process of version 1 neither writes nor reads them.
-- MySQL has no ADD COLUMN IF NOT EXISTS.
SET @rowlock_change = IF(EXISTS (
    SELECT 1 FROM information_schema.columns AS c WHERE c.column_name = 'beside' AND BINARY 'rowlock_queue' IN (
        BINARY CONCAT(IF(c.table_schema = DATABASE(), '', CONCAT('`', c.table_schema, '`.')), '`', c.table_name, '`'),
        BINARY CONCAT('`', c.table_schema, '`.`', c.table_name, '`'))),
    'DO 0', 'ALTER TABLE rowlock_queue ADD COLUMN tenant VARBINARY(255) NOT NULL DEFAULT '''', ADD COLUMN beside BIGINT NULL');

PREPARE rowlock_change FROM @rowlock_change;

EXECUTE rowlock_change;

DEALLOCATE PREPARE rowlock_change;

UPDATE rowlock_meta SET value = '2' WHERE name = 'schema_version';

-- +goose Down

-- The version first: MySQL does not undo a DROP TABLE, and a version never says more than there is.
UPDATE rowlock_meta SET value = '1' WHERE name = 'schema_version';

DROP TABLE IF EXISTS rowlock_era;

DROP TABLE IF EXISTS rowlock_trace;

DROP TABLE IF EXISTS rowlock_forced;

SET @rowlock_change = IF(EXISTS (
    SELECT 1 FROM information_schema.columns AS c WHERE c.column_name = 'beside' AND BINARY 'rowlock_queue' IN (
        BINARY CONCAT(IF(c.table_schema = DATABASE(), '', CONCAT('`', c.table_schema, '`.')), '`', c.table_name, '`'),
        BINARY CONCAT('`', c.table_schema, '`.`', c.table_name, '`'))),
    'ALTER TABLE rowlock_queue DROP COLUMN beside, DROP COLUMN tenant', 'DO 0');

PREPARE rowlock_change FROM @rowlock_change;

EXECUTE rowlock_change;

DEALLOCATE PREPARE rowlock_change;

DROP TABLE IF EXISTS rowlock_limit;

DROP TABLE IF EXISTS rowlock_party;

DROP TABLE IF EXISTS rowlock_latch;

DROP TABLE IF EXISTS rowlock_member;
