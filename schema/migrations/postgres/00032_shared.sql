-- +goose Up

-- The members of a group that shares a key, each with a lease of its own: the row of the key names
-- the group as its owner and never expires. Only its own member changes a row here. The group of 16
-- zero bytes has those that wait for such a key exclusively.
CREATE TABLE rowlock_member (
    key          bytea        NOT NULL CHECK (octet_length(key) BETWEEN 1 AND 255),
    reader_group bytea        NOT NULL CHECK (octet_length(reader_group) = 16),
    owner        bytea        NOT NULL CHECK (octet_length(owner) = 16),
    note         varchar(384) NOT NULL DEFAULT '',
    joined_at    timestamptz  NOT NULL,
    expires_at   timestamptz  NOT NULL,
    PRIMARY KEY (key, reader_group, owner)
) WITH (
    fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off
);

-- Limits of semaphores. Their slots are rows of rowlock under the name, a slash and three digits.
-- peak is the largest number of slots that there ever was. A statement that grants slots locks the
-- row to be read, and names the generation that its count was read in.
CREATE TABLE rowlock_limit (
    name       bytea   NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 251),
    slots      integer NOT NULL CHECK (slots > 0),
    peak       integer NOT NULL,
    generation bigint  NOT NULL,
    PRIMARY KEY (name)
) WITH (
    fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off
);

INSERT INTO rowlock_meta (name, value) VALUES ('compatible_from/shared', '3');

INSERT INTO rowlock_meta (name, value) VALUES ('schema_version/shared', '3');

-- +goose Down

-- A key whose readers are all dead is freed, because only their rows say so.
DO $$ BEGIN IF to_regclass('rowlock_member') IS NOT NULL THEN
  LOCK TABLE rowlock, rowlock_member, rowlock_limit
  ; IF EXISTS (SELECT 1 FROM rowlock_member
      WHERE expires_at > clock_timestamp() AND reader_group <> decode('00000000000000000000000000000000', 'hex'))
    OR EXISTS (SELECT 1 FROM rowlock AS r JOIN rowlock_limit AS l
      ON substr(r.key, 1, octet_length(l.name)) = l.name AND octet_length(r.key) = octet_length(l.name) + 4
      WHERE r.owner IS NOT NULL AND r.expires_at > clock_timestamp()) THEN
    RAISE EXCEPTION 'the tables stay: readers hold keys, or slots of limits are held'; END IF
  ; DELETE FROM rowlock_meta WHERE name IN ('schema_version/shared', 'compatible_from/shared')
  ; DROP TABLE rowlock_limit, rowlock_member
  ; UPDATE rowlock SET owner = NULL, note = '', expires_at = clock_timestamp()
    WHERE placement = 0 AND owner IS NOT NULL AND expires_at = '9999-01-01 00:00:00+00'
; END IF; END $$;
