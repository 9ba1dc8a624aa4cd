-- Effects by key, for Postgres. The statements run in the caller's transaction, whose isolation is
-- the caller's.

-- name: once-claim
-- $1 tenant, $2 key, $3 fingerprint, $4 how long to keep it in µs, $5 how long to wait in ms, as
-- text. It always returns one row. 1: the row is made. 2 or 3: the row that was there when the
-- statement began, live or expired. 0: the row was made meanwhile, which a snapshot does not show.
--
-- ON CONFLICT waits for a transaction that has the key and has not ended. The statement sets the
-- bound on that wait and restores it, because the server reads it when the wait begins, and the
-- caller's own statements must keep theirs.
WITH bound AS MATERIALIZED (
  SELECT current_setting('lock_timeout') AS before,
    set_config('lock_timeout', $5::text, true) AS now
), made AS (
  INSERT INTO rowlock_once AS o (tenant, key, fingerprint, made_at, expires_at)
  SELECT $1::bytea, $2::bytea, $3::bytea, clock_timestamp(),
    clock_timestamp() + $4::bigint * interval '1 microsecond'
  FROM bound WHERE bound.now IS NOT NULL
  ON CONFLICT (tenant, key) DO NOTHING
  RETURNING 1
)
SELECT CASE WHEN m.n > 0 THEN 1 WHEN o.key IS NULL THEN 0 WHEN o.expires_at > clock_timestamp()
  THEN 2 WHEN o.expires_at IS NOT NULL THEN 3 ELSE 5 END AS state,
  o.fingerprint, o.result, set_config('lock_timeout', (SELECT before FROM bound), true) AS again
FROM (SELECT count(*) AS n FROM made) AS m
LEFT JOIN rowlock_once AS o ON m.n = 0 AND o.tenant = $1::bytea AND o.key = $2::bytea

-- name: once-look
-- $1 tenant, $2 key. 5: the row has no expiry, so that nothing could take it.
SELECT CASE WHEN o.expires_at > clock_timestamp() THEN 2 WHEN o.expires_at IS NOT NULL THEN 3
  ELSE 5 END AS state, o.fingerprint, o.result
FROM rowlock_once AS o WHERE o.tenant = $1 AND o.key = $2

-- name: once-take
-- $1 fingerprint, $2 how long to keep it in µs, $3 tenant, $4 key. A row that another taker has is
-- left to the next claim, whose wait is bounded.
UPDATE rowlock_once
SET fingerprint = $1, result = NULL, made_at = clock_timestamp(),
  expires_at = clock_timestamp() + $2::bigint * interval '1 microsecond'
WHERE tenant = $3 AND key = (SELECT key FROM rowlock_once WHERE tenant = $3 AND key = $4
  AND expires_at <= clock_timestamp() FOR NO KEY UPDATE SKIP LOCKED)

-- name: once-store
-- $1 result, $2 tenant, $3 key. expires_at stays: its index would need a new entry.
UPDATE rowlock_once SET result = $1 WHERE tenant = $2 AND key = $3

-- name: once-confirm
-- $1 tenant, $2 key. The row was read as committed, and a read proves nothing about durability: see
-- confirm. made_at has no index.
UPDATE rowlock_once SET made_at = made_at + interval '1 microsecond' WHERE tenant = $1 AND key = $2

-- name: once-count
-- $1 tenant, limit: how many rows the tenant has, up to the limit
SELECT count(*) FROM (SELECT 1 FROM rowlock_once WHERE tenant = $1 LIMIT $2::bigint) AS t

-- name: once-sweep
-- $1 limit. An index can serve statement_timestamp(), and not clock_timestamp(). The statement is a
-- transaction of its own.
DELETE FROM rowlock_once AS o
USING (SELECT tenant, key FROM rowlock_once WHERE expires_at <= statement_timestamp()
       ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED) AS dead
WHERE o.tenant = dead.tenant AND o.key = dead.key
