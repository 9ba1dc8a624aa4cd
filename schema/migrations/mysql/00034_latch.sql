-- +goose Up

-- Latches and barriers: a row for each, whose id names its generation and no other. state and ended
-- say how far this generation and the one before it have come. Only a reset, a barrier's steps and
-- the retention change a row.
CREATE TABLE IF NOT EXISTS rowlock_latch (
    kind       SMALLINT       NOT NULL,
    `key`      VARBINARY(255) NOT NULL CHECK (LENGTH(`key`) BETWEEN 1 AND 255),
    id         BINARY(16)     NOT NULL UNIQUE,
    generation BIGINT         NOT NULL CHECK (generation > 0),
    parties    INT            NOT NULL CHECK (parties > 0),
    state      SMALLINT       NOT NULL DEFAULT 0,
    ended      SMALLINT       NOT NULL DEFAULT 0,
    made_at    DATETIME(6)    NOT NULL,
    expires_at DATETIME(6)    NOT NULL,
    PRIMARY KEY (kind, `key`)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- The parties of a generation that have counted down or entered (phase 0) or left (phase 1), a row
-- each, so that none waits for another.
CREATE TABLE IF NOT EXISTS rowlock_party (
    id          BINARY(16)     NOT NULL,
    phase       SMALLINT       NOT NULL,
    party       VARBINARY(255) NOT NULL CHECK (LENGTH(party) BETWEEN 1 AND 255),
    counted_at  DATETIME(6)    NOT NULL,
    alive_until DATETIME(6)    NULL,
    PRIMARY KEY (id, phase, party)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

INSERT IGNORE INTO rowlock_meta (name, value) VALUES ('compatible_from/latch', '3');

INSERT IGNORE INTO rowlock_meta (name, value) VALUES ('schema_version/latch', '3');

-- +goose Down

CREATE TABLE IF NOT EXISTS rowlock_latch (expires_at DATETIME(6) PRIMARY KEY, generation INT);
INSERT INTO rowlock_meta (name) SELECT 'the tables stay: latches or barriers have not expired'
FROM (SELECT 1 UNION ALL SELECT 2) AS twice WHERE EXISTS (SELECT 1 FROM rowlock_latch WHERE expires_at > UTC_TIMESTAMP(6));
DELETE FROM rowlock_meta WHERE name IN ('schema_version/latch', 'compatible_from/latch');
DROP TABLE IF EXISTS rowlock_party, rowlock_latch;
