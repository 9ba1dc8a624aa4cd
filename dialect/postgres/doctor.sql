-- What package doctor counts, for Postgres. The section names are the same in every dialect. Each
-- statement reads no more than a number of rows that it is told, or all rows of a table once.

-- name: doctor-expired
-- $1 limit: keys that their owners have not released in time, and how long ago that was, in µs. A
-- lease with a vertical tab in its note was probably left to run out.
SELECT key, left(note, 384), token,
  CASE WHEN isfinite(expires_at)
         THEN (extract(epoch FROM clock_timestamp() - expires_at) * 1000000)::bigint END AS age
FROM rowlock
WHERE placement = @placement AND owner IS NOT NULL AND expires_at <= clock_timestamp()
  AND position(chr(11) IN note) = 0 LIMIT $1::bigint

-- name: doctor-left
-- $1 retention in µs, $2 limit: rows of @table whose end, @column, is over, those for longer than
-- the retention, and how long the end of the oldest is over, in µs
SELECT count(*), coalesce(sum(CASE WHEN age > $1::bigint THEN 1 ELSE 0 END), 0)::bigint,
  coalesce(max(age), 0)::bigint
FROM (SELECT CASE WHEN isfinite(@column)
         THEN (extract(epoch FROM clock_timestamp() - @column) * 1000000)::bigint END AS age
  FROM @table WHERE @column <= clock_timestamp() LIMIT $2::bigint) AS d

-- name: doctor-waits
-- $1 limit. Of each caller that waits for a key: the caller that holds it, and how long it
-- has waited, in µs. It has the conditions of wait-edges, for all callers.
SELECT w.caller, h.caller AS holder, w.key, left(w.note, 384), w.process,
  CASE WHEN isfinite(w.since)
         THEN (extract(epoch FROM clock_timestamp() - w.since) * 1000000)::bigint END AS waited
FROM rowlock_wait AS w
JOIN rowlock AS r ON r.key = w.key AND r.placement = @placement
  AND r.owner IS NOT NULL AND r.expires_at > clock_timestamp() AND (r.token = w.awaits
    OR r.token = -w.awaits AND r.expires_at < '9999-01-01 00:00:00+00')
JOIN rowlock_wait AS h ON h.key = r.key AND h.token = r.token AND h.process = w.process
  AND h.alive_until > clock_timestamp()
WHERE w.token = 0 AND w.alive_until > clock_timestamp() LIMIT $1::bigint

-- name: doctor-bad
-- limit: rows of @table that rowlock cannot have written: the key, and which column says so. @tests
-- are of the sections below, one for each column.
SELECT @key, what FROM (
  SELECT @key, CASE @tests END AS what FROM @table
) AS b WHERE what IS NOT NULL LIMIT $1::bigint

-- name: doctor-bad-bytes
-- It is there, and not so long
(octet_length(@column) NOT @bounds)

-- name: doctor-bad-number
(@column IS NULL OR @column NOT BETWEEN @bounds)

-- name: doctor-bad-time
(@column IS NULL OR @column NOT BETWEEN '0001-01-01' AND '9999-12-31')

-- name: doctor-bad-note
(@column IS NULL OR octet_length(@column) > 384)

-- name: doctor-bad-far
-- It has a heartbeat, and so a near end
(@column > clock_timestamp() + @bounds * interval '1 day')

-- name: doctor-bad-lease
-- As doctor-bad-far, of a lease: that of readers who share the key has no end of its own
(owner IS NOT NULL AND @column <> '9999-01-01 00:00:00+00' AND @column > clock_timestamp() + @bounds * interval '1 day')
