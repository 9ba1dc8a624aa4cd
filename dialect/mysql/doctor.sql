-- What package doctor counts, for MySQL and MariaDB. The section names are the same in every
-- dialect. Each statement reads no more than a number of rows that it is told, or all
-- rows of a table once.

-- name: doctor-expired
-- limit: keys that their owners have not released in time, and how long ago that was, in µs. A
-- lease with a vertical tab in its note was probably left to run out.
SELECT `key`, LEFT(note, 384), token,
  TIMESTAMPDIFF(MICROSECOND, expires_at, UTC_TIMESTAMP(6)) AS age
FROM rowlock
WHERE placement = @placement AND owner IS NOT NULL AND expires_at <= UTC_TIMESTAMP(6)
  AND INSTR(note, CHAR(11 USING ascii)) = 0 LIMIT ?

-- name: doctor-left
-- retention in µs, limit: rows of @table whose end, @column, is over, those for longer than the
-- retention, and how long the end of the oldest is over, in µs
SELECT count(*), CAST(coalesce(sum(CASE WHEN age > ? THEN 1 ELSE 0 END), 0) AS SIGNED),
  CAST(coalesce(max(age), 0) AS SIGNED)
FROM (SELECT TIMESTAMPDIFF(MICROSECOND, @column, UTC_TIMESTAMP(6)) AS age
  FROM @table WHERE @column <= UTC_TIMESTAMP(6) LIMIT ?) AS d

-- name: doctor-waits
-- limit. Of each caller that waits for a key: the caller that holds it, and how long it
-- has waited, in µs. It has the conditions of wait-edges, for all callers.
SELECT w.caller, h.caller AS holder, w.`key`, LEFT(w.note, 384), w.process,
  TIMESTAMPDIFF(MICROSECOND, w.since, UTC_TIMESTAMP(6)) AS waited
FROM rowlock_wait AS w
JOIN rowlock AS r ON r.`key` = w.`key` AND r.placement = @placement
  AND r.owner IS NOT NULL AND r.expires_at > UTC_TIMESTAMP(6) AND (r.token = w.awaits
    OR r.token = -w.awaits AND r.expires_at < '9999-01-01 00:00:00')
JOIN rowlock_wait AS h ON h.`key` = r.`key` AND h.token = r.token AND h.process = w.process
  AND h.alive_until > UTC_TIMESTAMP(6)
WHERE w.token = 0 AND w.alive_until > UTC_TIMESTAMP(6) LIMIT ?

-- name: doctor-bad
-- limit: rows of @table that rowlock cannot have written: the key, and which column says so. @tests
-- are of the sections below, one for each column.
SELECT @key, what FROM (
  SELECT @key, CASE @tests END AS what FROM @table
) AS b WHERE what IS NOT NULL LIMIT ?

-- name: doctor-bad-bytes
-- It is there, and not so long
(LENGTH(@column) NOT @bounds)

-- name: doctor-bad-number
(@column IS NULL OR @column NOT BETWEEN @bounds)

-- name: doctor-bad-time
(TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), @column) IS NULL)

-- name: doctor-bad-note
(@column IS NULL OR LENGTH(@column) > 384)

-- name: doctor-bad-far
-- It has a heartbeat, and so a near end
(@column > UTC_TIMESTAMP(6) + INTERVAL @bounds DAY)

-- name: doctor-bad-lease
-- As doctor-bad-far, of a lease: that of readers who share the key has no end of its own
(owner IS NOT NULL AND @column <> '9999-01-01 00:00:00' AND @column > UTC_TIMESTAMP(6) + INTERVAL @bounds DAY)
