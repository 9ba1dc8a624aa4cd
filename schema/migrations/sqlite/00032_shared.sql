-- +goose Up

-- The members of a group that shares a key, each with a lease of its own: the row of the key names
-- the group as its owner and never expires. Only its own member changes a row here. The group of 16
-- zero bytes has those that wait for such a key exclusively.
CREATE TABLE rowlock_member (
    key          BLOB    NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
    reader_group BLOB    NOT NULL CHECK (length(reader_group) = 16),
    owner        BLOB    NOT NULL CHECK (length(owner) = 16),
    note         TEXT    NOT NULL DEFAULT '' CHECK (length(note) <= 384),
    joined_at    INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    PRIMARY KEY (key, reader_group, owner)
) STRICT, WITHOUT ROWID;

-- Limits of semaphores. Their slots are rows of rowlock under the name, a slash and three digits.
-- peak is the largest number of slots that there ever was. A transaction that grants slots reads
-- the generation that its count was read in.
CREATE TABLE rowlock_limit (
    name       BLOB    NOT NULL CHECK (length(name) BETWEEN 1 AND 251),
    slots      INTEGER NOT NULL CHECK (slots > 0),
    peak       INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    PRIMARY KEY (name)
) STRICT, WITHOUT ROWID;

INSERT INTO rowlock_meta (name, value) VALUES ('compatible_from/shared', '3');

INSERT INTO rowlock_meta (name, value) VALUES ('schema_version/shared', '3');

-- +goose Down

-- A key whose readers are all dead is freed, because only their rows say so. See core for the rest.
CREATE TABLE IF NOT EXISTS rowlock (key BLOB, owner BLOB, note TEXT, token INTEGER, acquired_at, expires_at INTEGER, placement INTEGER);
CREATE TABLE IF NOT EXISTS rowlock_member (reader_group BLOB, joined_at, expires_at INTEGER);
CREATE TABLE IF NOT EXISTS rowlock_limit (name BLOB, peak);
CREATE TABLE rowlock_down (guards INTEGER CONSTRAINT "the tables stay: readers hold keys, or slots of limits are held" CHECK (guards = 0));
INSERT INTO rowlock_down SELECT EXISTS (SELECT 1 FROM rowlock_member
  WHERE expires_at > CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) AND reader_group <> x'00000000000000000000000000000000')
OR EXISTS (SELECT 1 FROM rowlock AS r JOIN rowlock_limit AS l
  ON substr(r.key, 1, length(l.name)) = l.name AND length(r.key) = length(l.name) + 4
  WHERE r.owner IS NOT NULL AND r.expires_at > CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER));
DROP TABLE rowlock_down;
DELETE FROM rowlock_meta WHERE name IN ('schema_version/shared', 'compatible_from/shared');
DROP TABLE rowlock_limit;
DROP TABLE rowlock_member;
UPDATE rowlock SET owner = NULL, note = '', expires_at = CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)
WHERE placement = 0 AND owner IS NOT NULL AND expires_at = 253370764800000;
