-- What MySQL and MariaDB are told around a migration. The section names are the same in every dialect.

-- name: exists
-- schema, table
SELECT EXISTS (SELECT 1 FROM information_schema.tables
WHERE table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND table_name = ?)

-- name: begin
-- A CREATE TABLE commits by itself; this is for the statements between them, where autocommit is off.
START TRANSACTION

-- name: lock
SELECT GET_LOCK('rowlock_migrate', 60) <=> 1

-- name: commit
COMMIT

-- name: rollback
ROLLBACK

-- name: unlock
SELECT RELEASE_LOCK('rowlock_migrate') <=> 1
