-- +goose Up

-- What became of keys, for clients with Config.Trace: removed after their retention, and read by no
-- lock. number is µs, or how many events were dropped. A key of no bytes has what concerns no key.
CREATE TABLE rowlock_trace (
    at      INTEGER NOT NULL,
    id      INTEGER NOT NULL,
    key     BLOB    NOT NULL CHECK (length(key) <= 255),
    event   TEXT    NOT NULL CHECK (length(event) <= 16),
    token   INTEGER NOT NULL,
    owner   BLOB    NOT NULL CHECK (length(owner) = 16),
    note    TEXT    NOT NULL CHECK (length(note) <= 384),
    number  INTEGER NOT NULL,
    detail  TEXT    NOT NULL CHECK (length(detail) <= 255),
    PRIMARY KEY (at, id),
    UNIQUE (key, at, id)
) STRICT, WITHOUT ROWID;

INSERT INTO rowlock_meta (name, value) VALUES ('compatible_from/trace', '3');

INSERT INTO rowlock_meta (name, value) VALUES ('schema_version/trace', '3');

-- +goose Down

DELETE FROM rowlock_meta WHERE name IN ('schema_version/trace', 'compatible_from/trace');
DROP TABLE IF EXISTS rowlock_trace;
