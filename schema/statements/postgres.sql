-- Statements around a migration, for Postgres. The section names are the same in every dialect.

-- name: exists
-- schema, table. The query must read a table, if only pg_class: to_regclass alone locks none,
-- and so answers from a cache that lacks a table which another process has just made.
SELECT EXISTS (SELECT 1 FROM pg_class
WHERE oid = to_regclass(quote_ident($1::text) || '.' || quote_ident($2::text)))

-- name: begin
-- At a higher level the snapshot would be older than the lock, and show the version before another
-- process's migration. A session behind a pooler may begin READ ONLY because of another client;
-- a default of the role or of the database that says so is refused after it.
BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE, NOT DEFERRABLE

-- name: lock
-- "rowlock" in ASCII, as a number.
SELECT true FROM pg_advisory_xact_lock(x'726f776c6f636b'::bigint)

-- name: stand-in
-- For a way down after rowlock_meta was lost: each migration writes its version there.
CREATE TABLE IF NOT EXISTS rowlock_meta (name varchar(64) PRIMARY KEY, value text)

-- name: commit
COMMIT

-- name: rollback
ROLLBACK

-- name: unlock
-- Nothing, because the end of the transaction has unlocked.
SELECT true
