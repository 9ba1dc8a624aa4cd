-- What Postgres is told around a migration. The section names are the same in every dialect.

-- name: exists
-- schema, table. Looks where the lock statements will: a table further down the search_path is used, not shadowed by a new
-- one, or those who run already and those who come would lock in different tables. A table must be in it, if only pg_class:
-- to_regclass alone locks none, and so answers from a cache in which a table that another process has just made is missing.
SELECT EXISTS (SELECT 1 FROM pg_class
WHERE oid = to_regclass(concat_ws('.', quote_ident(nullif($1::text, '')), quote_ident($2::text))))

-- name: begin
-- At a higher level the snapshot would be older than the lock, and show the version before somebody else's migration.
BEGIN ISOLATION LEVEL READ COMMITTED

-- name: lock
-- "rowlock" in ASCII, as a number.
SELECT true FROM pg_advisory_xact_lock(x'726f776c6f636b'::bigint)

-- name: commit
COMMIT

-- name: rollback
ROLLBACK

-- name: unlock
-- The end of the transaction has done it.
SELECT true
