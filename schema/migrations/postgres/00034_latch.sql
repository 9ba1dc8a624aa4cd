-- +goose Up

-- Latches and barriers: a row for each, whose id names its generation and no other. state and ended
-- say how far this generation and the one before it have come. Only a reset, a barrier's steps and
-- the retention change a row.
CREATE TABLE rowlock_latch (
    kind       smallint    NOT NULL,
    key        bytea       NOT NULL CHECK (octet_length(key) BETWEEN 1 AND 255),
    id         bytea       NOT NULL UNIQUE CHECK (octet_length(id) = 16),
    generation bigint      NOT NULL CHECK (generation > 0),
    parties    integer     NOT NULL CHECK (parties > 0),
    state      smallint    NOT NULL DEFAULT 0,
    ended      smallint    NOT NULL DEFAULT 0,
    made_at    timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (kind, key)
) WITH (
    fillfactor = 50,
    vacuum_truncate = off
);

-- The parties of a generation that have counted down or entered (phase 0) or left (phase 1), a row
-- each, so that none waits for another.
CREATE TABLE rowlock_party (
    id          bytea       NOT NULL CHECK (octet_length(id) = 16),
    phase       smallint    NOT NULL,
    party       bytea       NOT NULL CHECK (octet_length(party) BETWEEN 1 AND 255),
    counted_at  timestamptz NOT NULL,
    alive_until timestamptz ,
    PRIMARY KEY (id, phase, party)
) WITH (
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_scale_factor = 0,
    vacuum_truncate = off
);

INSERT INTO rowlock_meta (name, value) VALUES ('compatible_from/latch', '3');

INSERT INTO rowlock_meta (name, value) VALUES ('schema_version/latch', '3');

-- +goose Down

DO $$ BEGIN IF to_regclass('rowlock_latch') IS NOT NULL THEN
  LOCK TABLE rowlock_latch; IF EXISTS (SELECT 1 FROM rowlock_latch WHERE expires_at > clock_timestamp()) THEN
    RAISE EXCEPTION 'the tables stay: latches or barriers have not expired'; END IF
  ; DELETE FROM rowlock_meta WHERE name IN ('schema_version/latch', 'compatible_from/latch')
  ; DROP TABLE rowlock_party, rowlock_latch
; END IF; END $$;
