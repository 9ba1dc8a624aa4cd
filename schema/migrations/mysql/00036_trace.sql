-- +goose Up

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

INSERT IGNORE INTO rowlock_meta (name, value) VALUES ('compatible_from/trace', '3');

INSERT IGNORE INTO rowlock_meta (name, value) VALUES ('schema_version/trace', '3');

-- +goose Down

DELETE FROM rowlock_meta WHERE name IN ('schema_version/trace', 'compatible_from/trace');
DROP TABLE IF EXISTS rowlock_trace;
