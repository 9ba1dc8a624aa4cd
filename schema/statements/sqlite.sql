-- Statements around a migration, for SQLite. The section names are the same in every dialect.

-- name: exists
-- schema, table, a column of it or none
SELECT ?1 = 'main' AND EXISTS (SELECT 1 FROM main.sqlite_schema AS s, pragma_table_info(s.name, 'main') AS c
  WHERE s.type = 'table' AND s.name = ?2 COLLATE NOCASE AND ?3 IN ('', c.name))

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

-- name: guard-members
SELECT count(*) FROM rowlock_member WHERE expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER) AND reader_group <> x'00000000000000000000000000000000'

-- name: keep-tokens
-- All buckets have the largest token of any key: only Go finds the bucket of a key.
UPDATE rowlock_floor SET floor = max(floor, (SELECT coalesce(max(token), 0) FROM rowlock))

-- name: commit
COMMIT

-- name: rollback
ROLLBACK

-- name: unlock
SELECT true
