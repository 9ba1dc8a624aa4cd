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

-- name: stand-in
-- For a way down after rowlock_meta was lost: each migration writes its version there.
CREATE TABLE IF NOT EXISTS rowlock_meta (name TEXT PRIMARY KEY, value TEXT)

-- name: commit
COMMIT

-- name: rollback
ROLLBACK

-- name: unlock
SELECT true
