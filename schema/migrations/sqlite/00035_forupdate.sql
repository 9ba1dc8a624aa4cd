-- +goose Up

-- A row for each key that forupdate locks, with nothing to say: the lock on the row is the lock. In SQLite the file's write lock
-- is, and this stays empty.
CREATE TABLE rowlock_hold (
    key     BLOB    NOT NULL PRIMARY KEY CHECK (length(key) BETWEEN 1 AND 255),
    made_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO rowlock_meta (name, value) VALUES ('compatible_from/forupdate', '3');

INSERT INTO rowlock_meta (name, value) VALUES ('schema_version/forupdate', '3');

-- +goose Down

DELETE FROM rowlock_meta WHERE name IN ('schema_version/forupdate', 'compatible_from/forupdate');
DROP TABLE IF EXISTS rowlock_hold;
