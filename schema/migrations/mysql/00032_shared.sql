-- +goose Up

-- The members of a group that shares a key, each with a lease of its own: the row of the key names
-- the group as its owner and never expires. Only its own member changes a row here. The group of 16
-- zero bytes has those that wait for such a key exclusively.
CREATE TABLE IF NOT EXISTS rowlock_member (
    `key`        VARBINARY(255) NOT NULL CHECK (LENGTH(`key`) BETWEEN 1 AND 255),
    reader_group BINARY(16)     NOT NULL,
    owner        BINARY(16)     NOT NULL,
    note         VARBINARY(384) NOT NULL DEFAULT '',
    joined_at    DATETIME(6)    NOT NULL,
    expires_at   DATETIME(6)    NOT NULL,
    PRIMARY KEY (`key`, reader_group, owner)
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

INSERT IGNORE INTO rowlock_meta (name, value) VALUES ('compatible_from/shared', '3');

INSERT IGNORE INTO rowlock_meta (name, value) VALUES ('schema_version/shared', '3');

-- +goose Down

-- A key whose readers are all dead is freed, because only their rows say so. See core for the rest.
CREATE TABLE IF NOT EXISTS rowlock (`key` VARBINARY(255) PRIMARY KEY, owner BINARY(16), note VARBINARY(384), token BIGINT, acquired_at INT, expires_at DATETIME(6), placement SMALLINT);
CREATE TABLE IF NOT EXISTS rowlock_member (reader_group BINARY(16) PRIMARY KEY, joined_at INT, expires_at DATETIME(6));
CREATE TABLE IF NOT EXISTS rowlock_limit (name VARBINARY(251) PRIMARY KEY, peak INT);
INSERT INTO rowlock_meta (name) SELECT 'the tables stay: readers hold keys, or slots of limits are held'
FROM (SELECT 1 UNION ALL SELECT 2) AS twice WHERE EXISTS (SELECT 1 FROM rowlock_member
  WHERE expires_at > UTC_TIMESTAMP(6) AND reader_group <> x'00000000000000000000000000000000')
OR EXISTS (SELECT 1 FROM rowlock AS r JOIN rowlock_limit AS l
  ON LEFT(r.`key`, LENGTH(l.name)) = l.name AND LENGTH(r.`key`) = LENGTH(l.name) + 4
  WHERE r.owner IS NOT NULL AND r.expires_at > UTC_TIMESTAMP(6));
DELETE FROM rowlock_meta WHERE name IN ('schema_version/shared', 'compatible_from/shared');
DROP TABLE rowlock_limit, rowlock_member;
UPDATE rowlock SET owner = NULL, note = '', expires_at = UTC_TIMESTAMP(6)
WHERE placement = 0 AND owner IS NOT NULL AND expires_at = '9999-01-01 00:00:00';
