-- +goose Up

-- A row for each key that forupdate locks, with nothing to say: the lock on the row is the lock. Room is left in each page because
-- a lock is written into the row.
CREATE TABLE rowlock_hold (
    key     bytea       PRIMARY KEY CHECK (octet_length(key) BETWEEN 1 AND 255),
    made_at timestamptz NOT NULL
) WITH (
    fillfactor = 50,
    vacuum_truncate = off
);

INSERT INTO rowlock_meta (name, value) VALUES ('compatible_from/forupdate', '3');

INSERT INTO rowlock_meta (name, value) VALUES ('schema_version/forupdate', '3');

-- +goose Down

DELETE FROM rowlock_meta WHERE name IN ('schema_version/forupdate', 'compatible_from/forupdate');
DROP TABLE IF EXISTS rowlock_hold;
