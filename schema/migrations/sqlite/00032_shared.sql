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

DELETE FROM rowlock_meta WHERE name IN ('schema_version/shared', 'compatible_from/shared');

DROP TABLE IF EXISTS rowlock_limit;

DROP TABLE IF EXISTS rowlock_member;
