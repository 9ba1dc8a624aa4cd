-- Statements around a migration, for MySQL and MariaDB. The section names are the same in every
-- dialect.

-- name: exists
-- schema, table
SELECT EXISTS (SELECT 1 FROM information_schema.tables
WHERE table_schema = ? AND table_name = ?)

-- name: begin
-- A CREATE TABLE commits by itself, as does every statement, unless autocommit is off: then this
-- ends what came before, whose snapshot would be older than the lock.
START TRANSACTION

-- name: lock
SELECT GET_LOCK('rowlock_migrate', 60) <=> 1

-- name: stand-in
-- For a way down after rowlock_meta was lost: each migration writes its version there. It is as the
-- first migration makes it, in case the way down is cut off here.
CREATE TABLE IF NOT EXISTS rowlock_meta (
    name  VARBINARY(64)  NOT NULL PRIMARY KEY,
    value VARBINARY(255) NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC

-- name: commit
COMMIT

-- name: rollback
ROLLBACK

-- name: unlock
SELECT RELEASE_LOCK('rowlock_migrate') <=> 1
