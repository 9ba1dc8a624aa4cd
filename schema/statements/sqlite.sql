-- Statements around a migration, for SQLite. The section names are the same in every dialect.

-- name: exists
-- schema, table
SELECT ?1 = 'main' AND EXISTS (SELECT 1 FROM main.sqlite_schema
  WHERE type = 'table' AND name = ?2 COLLATE NOCASE)

-- name: patience
-- The limit in ms, to read and to set.
PRAGMA busy_timeout

-- name: begin
-- A plain BEGIN would not lock before the first write, and then fail for a transaction that has
-- read meanwhile.
BEGIN IMMEDIATE

-- name: lock
-- Nothing, because the beginning of the transaction has locked.
SELECT true

-- name: guard-leases
-- The row of a key that readers hold never expires: see guard-members.
SELECT count(*) FROM rowlock
WHERE owner IS NOT NULL AND expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER) AND expires_at < 253370764800000

-- name: guard-keys
-- -1 are rows of forupdate, whose locks the transaction excludes. The last token would exhaust a floor.
SELECT count(*) FROM rowlock
WHERE placement NOT IN (0, -1) OR token NOT BETWEEN 0 AND 9223372036853727230

-- name: guard-members
SELECT count(*) FROM rowlock_member WHERE expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER) AND reader_group <> x'00000000000000000000000000000000'

-- name: guard-once
SELECT count(*) FROM rowlock_once WHERE expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)

-- name: guard-latches
SELECT count(*) FROM rowlock_latch WHERE expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)

-- name: waiters
SELECT count(*) FROM rowlock_queue WHERE alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER)

-- name: keep-tokens
-- All buckets have the largest token of any key: only Go finds the bucket of a key.
UPDATE rowlock_floor SET floor = max(floor, (SELECT coalesce(max(token), 0) FROM rowlock))

-- name: forget-version
DELETE FROM rowlock_meta
WHERE substr(name, 1, 14) = 'schema_version' OR substr(name, 1, 15) = 'compatible_from'

-- name: commit
COMMIT

-- name: rollback
ROLLBACK

-- name: unlock
SELECT true
