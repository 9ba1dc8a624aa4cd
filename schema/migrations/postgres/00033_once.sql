-- +goose Up

-- What was done once, by the key that asked for it: the fingerprint of the request, and the result. It is written in the
-- transaction that does it, so it is there exactly if that was committed.
CREATE TABLE rowlock_once (
    tenant      bytea       NOT NULL DEFAULT '' CHECK (octet_length(tenant) <= 255),
    key         bytea       NOT NULL CHECK (octet_length(key) BETWEEN 1 AND 255),
    fingerprint bytea       NOT NULL DEFAULT '' CHECK (octet_length(fingerprint) IN (0, 32)),
    result      bytea       ,
    made_at     timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    PRIMARY KEY (tenant, key)
);

CREATE INDEX ON rowlock_once (expires_at);

INSERT INTO rowlock_meta (name, value) VALUES ('compatible_from/once', '3');

INSERT INTO rowlock_meta (name, value) VALUES ('schema_version/once', '3');

-- +goose Down

DO $$ BEGIN IF to_regclass('rowlock_once') IS NOT NULL THEN
  LOCK TABLE rowlock_once; IF EXISTS (SELECT 1 FROM rowlock_once WHERE expires_at > clock_timestamp()) THEN
    RAISE EXCEPTION 'the tables stay: results of once have not expired'; END IF
  ; DELETE FROM rowlock_meta WHERE name IN ('schema_version/once', 'compatible_from/once')
  ; DROP TABLE rowlock_once
; END IF; END $$;
