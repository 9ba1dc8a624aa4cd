-- name: session-id
SELECT pg_backend_pid()::bigint

-- name: session-ids
-- Every user sees those of all.
SELECT pid::bigint FROM pg_stat_activity WHERE pid IS NOT NULL

-- name: late-lease
-- Replaces @late for a key that one owner holds.
r.expires_at <= clock_timestamp()

-- name: late-any
-- Replaces @late for an operator, who waits for a transaction whatever the lease.
1 = 1

-- name: await-expired
-- key. The statement waits for at most lock_timeout, and only for a row that is expired.
SELECT 1 FROM rowlock AS r
  WHERE r.key = $1 AND r.placement = @placement AND r.owner IS NOT NULL AND @late FOR UPDATE OF r

-- name: evict
-- key, waiter's session, least age in µs. One statement, so that a session has the row locked when
-- the statement ends it. A waiter waits for the transaction that has the row, or (locktype tuple)
-- behind the first waiter, which does, and which must not be ended. The row's xmax would name a
-- number of several lockers as if it were a transaction. A prepared transaction has no session.
WITH late AS MATERIALIZED (
  SELECT 1 FROM rowlock AS r WHERE r.key = $1 AND r.placement = @placement AND r.owner IS NOT NULL AND @late
), locks AS MATERIALIZED (
  SELECT pid, transactionid, granted FROM pg_locks WHERE locktype = 'transactionid'
), first AS MATERIALIZED (
  SELECT $2::int AS pid UNION ALL SELECT unnest(pg_blocking_pids(pid)) FROM pg_locks
    WHERE pid = $2::int AND locktype = 'tuple' AND NOT granted
), blockers AS MATERIALIZED (
  SELECT a.pid, COALESCE(a.usename, p.owner) AS usename, p.gid,
    COALESCE(a.usename = session_user, false) AS own, host(a.client_addr) || ':' || a.client_port AS peer,
    COALESCE(extract(epoch FROM clock_timestamp() - COALESCE(a.xact_start, p.prepared)) * 1000000, -1)::bigint AS age
  FROM first JOIN locks AS w ON w.pid = first.pid AND NOT w.granted
  JOIN locks AS h ON h.transactionid = w.transactionid AND h.granted
  LEFT JOIN pg_stat_activity AS a ON a.pid = h.pid
  LEFT JOIN pg_prepared_xacts AS p ON h.pid IS NULL AND p.transaction = h.transactionid
  WHERE EXISTS (SELECT FROM late) AND (a.pid IS NOT NULL OR p.gid IS NOT NULL)
)
SELECT COALESCE(pid, 0)::bigint, COALESCE(usename::text, ''), COALESCE(peer, ''), age, own,
  CASE WHEN own AND age >= $3::bigint THEN pg_terminate_backend(pid) ELSE false END,
  CASE WHEN gid IS NULL THEN '' ELSE 'ROLLBACK PREPARED ' || quote_literal(gid) END
FROM blockers
