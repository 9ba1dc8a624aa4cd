-- +goose Up

-- Latches and barriers: a row for each, whose id names its generation and no other. state and ended
-- say how far this generation and the one before it have come. Only a reset, a barrier's steps and
-- the retention change a row.
CREATE TABLE rowlock_latch (
    kind       INTEGER NOT NULL,
    key        BLOB    NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
    id         BLOB    NOT NULL UNIQUE CHECK (length(id) = 16),
    generation INTEGER NOT NULL CHECK (generation > 0),
    parties    INTEGER NOT NULL CHECK (parties > 0),
    state      INTEGER NOT NULL DEFAULT 0,
    ended      INTEGER NOT NULL DEFAULT 0,
    made_at    INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (kind, key)
) STRICT;

-- The parties of a generation that have counted down or entered (phase 0) or left (phase 1), a row
-- each, so that none waits for another.
CREATE TABLE rowlock_party (
    id          BLOB    NOT NULL CHECK (length(id) = 16),
    phase       INTEGER NOT NULL,
    party       BLOB    NOT NULL CHECK (length(party) BETWEEN 1 AND 255),
    counted_at  INTEGER NOT NULL,
    alive_until INTEGER,
    PRIMARY KEY (id, phase, party)
) STRICT, WITHOUT ROWID;

INSERT INTO rowlock_meta (name, value) VALUES ('compatible_from/latch', '3');

INSERT INTO rowlock_meta (name, value) VALUES ('schema_version/latch', '3');

-- +goose Down

CREATE TABLE IF NOT EXISTS rowlock_latch (expires_at INTEGER, generation);
CREATE TABLE rowlock_down (guards INTEGER CONSTRAINT "the tables stay: latches or barriers have not expired" CHECK (guards = 0));
INSERT INTO rowlock_down SELECT EXISTS (SELECT 1 FROM rowlock_latch WHERE expires_at > CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER));
DROP TABLE rowlock_down;
DELETE FROM rowlock_meta WHERE name IN ('schema_version/latch', 'compatible_from/latch');
DROP TABLE IF EXISTS rowlock_party;
DROP TABLE rowlock_latch;
