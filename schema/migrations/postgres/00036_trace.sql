-- +goose Up

-- What became of keys, for clients with Config.Trace: removed after their retention, and read by no
-- lock. number is µs, or how many events were dropped. A key of no bytes has what concerns no key.
CREATE TABLE rowlock_trace (
    at     timestamptz  NOT NULL,
    id     bigint       NOT NULL,
    key    bytea        NOT NULL CHECK (octet_length(key) <= 255),
    event  varchar(16)  NOT NULL,
    token  bigint       NOT NULL,
    owner  bytea        NOT NULL CHECK (octet_length(owner) = 16),
    note   varchar(384) NOT NULL,
    number bigint       NOT NULL,
    detail varchar(255) NOT NULL,
    PRIMARY KEY (at, id),
    UNIQUE (key, at, id)
) WITH (
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_scale_factor = 0.05,
    vacuum_truncate = off
);

INSERT INTO rowlock_meta (name, value) VALUES ('compatible_from/trace', '3');

INSERT INTO rowlock_meta (name, value) VALUES ('schema_version/trace', '3');

-- +goose Down

DELETE FROM rowlock_meta WHERE name IN ('schema_version/trace', 'compatible_from/trace');
DROP TABLE IF EXISTS rowlock_trace;
