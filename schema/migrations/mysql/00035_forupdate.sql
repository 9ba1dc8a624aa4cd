-- +goose Up

-- A row for each key that forupdate locks, with nothing to say: the lock on the row is the lock.
CREATE TABLE IF NOT EXISTS rowlock_hold (
    `key`   VARBINARY(255) NOT NULL PRIMARY KEY CHECK (LENGTH(`key`) BETWEEN 1 AND 255),
    made_at DATETIME(6)    NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

INSERT IGNORE INTO rowlock_meta (name, value) VALUES ('compatible_from/forupdate', '3');

INSERT IGNORE INTO rowlock_meta (name, value) VALUES ('schema_version/forupdate', '3');

-- +goose Down

DELETE FROM rowlock_meta WHERE name IN ('schema_version/forupdate', 'compatible_from/forupdate');
DROP TABLE IF EXISTS rowlock_hold;
