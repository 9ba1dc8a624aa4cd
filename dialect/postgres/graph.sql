-- What waits while it holds something, for Postgres. The section names are the same in every
-- dialect.
--
-- Safety needs nothing of this, so no commit waits for the disk: see register.

-- name: wait-note
-- $1 1 for a process, $2 note, $3 life in µs, and of each row, as arrays: $4 key, $5 caller, $6 token, or 0
-- for a key that is waited for and -1 for one that is to be shared, $7 how long it has waited in µs. Of the latter,
-- the token awaited is negative. All rows of a caller are of one moment, because its rank among the others is when it
-- began to wait. A late statement extends them no further than if it had been in time.
WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
INSERT INTO rowlock_wait AS e (caller, key, token, awaits, process, note, since, alive_until)
SELECT w.caller, w.key, greatest(w.token, 0),
  CASE WHEN w.token > 0 THEN 0 ELSE coalesce((SELECT CASE w.token WHEN 0 THEN r.token ELSE -r.token END
    FROM rowlock AS r WHERE r.key = w.key), 0) END, $1::smallint, $2::text,
  statement_timestamp() - w.waited * interval '1 microsecond',
  statement_timestamp() + $3::bigint * interval '1 microsecond'
FROM quick, unnest($4::bytea[], $5::bytea[], $6::bigint[], $7::bigint[])
  AS w (key, caller, token, waited)
ON CONFLICT (caller, key, token) DO UPDATE SET awaits = excluded.awaits,
  alive_until = least(excluded.alive_until, e.since + (excluded.alive_until - excluded.since))

-- name: wait-erase
-- The rows, as arrays: $1 key, $2 caller, $3 token, $4 nothing
WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
DELETE FROM rowlock_wait AS e
USING quick, unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::bigint[])
  AS w (key, caller, token, nothing)
WHERE e.caller = w.caller AND e.key = w.key AND e.token = greatest(w.token, 0)

-- name: wait-edges
-- $1 callers as an array, $2 1 for processes, $3 limit. It follows the waits: from a caller
-- to the keys that it waits for, from each to the caller that holds it with the token that its row
-- has now and had when the wait was recorded. A record leads nowhere once the lease has changed
-- hands: the one that waited may have had the key since. Neither does one of a key that is to be
-- shared while others share it. UNION ends at a caller that was reached before.
WITH RECURSIVE edges AS NOT MATERIALIZED (
  SELECT w.caller, w.key, w.note, w.since, w.alive_until, r.token, h.caller AS holder
  FROM rowlock_wait AS w
  JOIN rowlock AS r ON r.key = w.key AND r.placement = @placement AND r.owner IS NOT NULL
    AND r.expires_at > clock_timestamp() AND (r.token = w.awaits
      OR r.token = -w.awaits AND r.expires_at < '9999-01-01 00:00:00+00')
  JOIN rowlock_wait AS h ON h.key = r.key AND h.token = r.token AND h.process = w.process
    AND h.alive_until > clock_timestamp()
  WHERE w.token = 0 AND w.process = $2::smallint AND w.alive_until > clock_timestamp()
), reached (caller) AS (
  SELECT c FROM unnest($1::bytea[]) AS f (c)
  UNION
  SELECT e.holder FROM reached AS f JOIN edges AS e ON e.caller = f.caller
)
SELECT e.caller, e.holder, e.key, e.token, left(e.note, 384),
  CASE WHEN e.since BETWEEN '0001-01-01' AND '9999-12-31'
         THEN (extract(epoch FROM e.since) * 1000000)::bigint END AS since,
  CASE WHEN e.alive_until BETWEEN '0001-01-01' AND '9999-12-31'
         THEN (extract(epoch FROM e.alive_until) * 1000000)::bigint END AS expires,
  CASE WHEN isfinite(e.since)
         THEN (extract(epoch FROM clock_timestamp() - e.since) * 1000000)::bigint END AS waited
FROM reached AS f JOIN edges AS e ON e.caller = f.caller LIMIT $3::bigint

-- name: wait-dead
-- $1 retention in µs: whether a process that has died has left rows
SELECT EXISTS (SELECT 1 FROM rowlock_wait
  WHERE alive_until <= clock_timestamp() - $1::bigint * interval '1 microsecond')

-- name: wait-reap
-- $1 retention in µs
DELETE FROM rowlock_wait
WHERE alive_until <= clock_timestamp() - $1::bigint * interval '1 microsecond'
