-- name: session-id
SELECT pg_backend_pid()::bigint

-- name: session-runs
-- session. Every user sees the ids of all.
SELECT COUNT(*) FROM pg_stat_activity WHERE pid = $1

-- name: await-expired
-- key. The statement waits for at most lock_timeout, and only for a row that is expired.
SELECT 1 FROM rowlock
  WHERE key = $1 AND home = @home AND owner IS NOT NULL
  AND expires_at <= clock_timestamp() FOR UPDATE

-- name: evict
-- key, waiter's session, least age in µs. One statement, so that a session has the row locked when
-- the statement ends it. A waiter waits for the transaction that has the row, or (locktype tuple)
-- behind another waiter, which must not be ended. The row's xmax would name the transaction too,
-- but a number of several lockers there looks like one of a transaction.
WITH late AS MATERIALIZED (
  SELECT 1 FROM rowlock
    WHERE key = $1 AND home = @home AND owner IS NOT NULL AND expires_at <= clock_timestamp()
), locks AS MATERIALIZED (
  SELECT pid, transactionid, granted FROM pg_locks WHERE locktype = 'transactionid'
), blockers AS MATERIALIZED (
  SELECT a.pid, a.usename, a.usename = session_user AS own,
         COALESCE(a.xact_start <= clock_timestamp() - $3::bigint * interval '1 microsecond',
           false) AS old
  FROM locks AS w JOIN locks AS h ON h.transactionid = w.transactionid AND h.granted
  JOIN pg_stat_activity AS a ON a.pid = h.pid
  WHERE w.pid = $2::int AND NOT w.granted AND EXISTS (SELECT FROM late)
)
SELECT pid::bigint, COALESCE(usename::text, ''), own, old,
  CASE WHEN own AND old THEN pg_terminate_backend(pid) ELSE false END
FROM blockers
