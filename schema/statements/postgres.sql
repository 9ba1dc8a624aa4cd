-- Statements around a migration, for Postgres. The section names are the same in every dialect.

-- name: exists
-- schema, table, a column of it or none. The query must read a table: to_regclass alone locks none,
-- and so answers from a cache that lacks a table which another process has just made.
SELECT EXISTS (SELECT 1 FROM pg_attribute WHERE $3::text IN ('', attname)
AND attrelid = to_regclass(quote_ident($1::text) || '.' || quote_ident($2::text)))

-- name: begin
-- At a higher level the snapshot would be older than the lock, and show the version before another
-- process's migration. A session behind a pooler may begin READ ONLY because of another client;
-- a default of the role or of the database that says so is refused after it.
BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE, NOT DEFERRABLE

-- name: lock
-- "rowlock" in ASCII, as a number.
SELECT true FROM pg_advisory_xact_lock(x'726f776c6f636b'::bigint)

-- name: bound
-- Of the waits for tables. Pin has set that for the lock.
SET LOCAL lock_timeout = '200ms'

-- name: blockers
-- schema, table names. One that holds a lock for less than the last attempt has waited may be gone.
SELECT string_agg(blocker, ', ') FROM (
  SELECT format('session %s of %s (%s), in a transaction since %s', a.pid, a.usename,
    coalesce(nullif(a.application_name, ''), 'without a name'),
    coalesce(to_char(a.xact_start, 'YYYY-MM-DD HH24:MI:SS TZ'), 'an unknown time')) AS blocker
  FROM pg_stat_activity AS a
  WHERE a.pid <> pg_backend_pid()
    AND coalesce(a.xact_start < clock_timestamp() - interval '100 ms', true)
    AND EXISTS (SELECT 1 FROM pg_locks AS l LEFT JOIN pg_class AS c ON c.oid = l.relation
      WHERE l.pid = a.pid AND l.granted AND (
        c.relnamespace = to_regnamespace(quote_ident($1::text)) AND c.relname LIKE $2::text
        OR l.locktype = 'advisory' AND l.objsubid = 1
          AND l.classid::bigint = x'726f77'::bigint AND l.objid::bigint = x'6c6f636b'::bigint))
  ORDER BY a.xact_start NULLS LAST LIMIT 3) AS oldest

-- name: lock-tables
-- Nothing is granted between a look at the tables and their end.
LOCK TABLE @tables

-- name: guard-members
SELECT count(*) FROM rowlock_member WHERE expires_at > clock_timestamp() AND reader_group <> decode('00000000000000000000000000000000', 'hex')

-- name: keep-tokens
-- All buckets have the largest token of any key: only Go finds the bucket of a key.
UPDATE rowlock_floor SET floor = greatest(floor, (SELECT max(token) FROM rowlock))

-- name: sessions
-- Of the sessions of other users the kind may be hidden.
SELECT count(*) FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND datname = current_database()
  AND coalesce(backend_type, 'client backend') = 'client backend'

-- name: commit
COMMIT

-- name: rollback
ROLLBACK

-- name: unlock
-- Nothing, because the end of the transaction has unlocked.
SELECT true
