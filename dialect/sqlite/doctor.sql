-- What package doctor counts, for SQLite. The section names are the same in every dialect.
-- Each statement reads no more than a number of rows that it is told, or all rows of a table once.

-- name: doctor-expired
-- limit: keys that their owners have not released in time, and how long ago that was, in µs. A
-- lease with a vertical tab in its note was probably left to run out.
SELECT key, substr(note, 1, 384), token,
  (CAST(unixepoch('subsec') * 1000 AS INTEGER) - expires_at) * 1000 AS age
FROM rowlock
WHERE placement = @placement AND owner IS NOT NULL
  AND expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER) AND instr(note, char(11)) = 0
LIMIT ?1

-- name: doctor-left
-- retention in µs, limit: rows of @table whose end, @column, is over, those for longer than the
-- retention, and how long the end of the oldest is over, in µs
SELECT count(*), coalesce(sum(CASE WHEN age > ?1 THEN 1 ELSE 0 END), 0),
  coalesce(max(age), 0)
FROM (SELECT (CAST(unixepoch('subsec') * 1000 AS INTEGER) - @column) * 1000 AS age
  FROM @table WHERE @column <= CAST(unixepoch('subsec') * 1000 AS INTEGER)
  LIMIT ?2) AS d

-- name: doctor-waits
-- limit. Of each caller that waits for a key: the caller that holds it, and how long it
-- has waited, in µs. It has the conditions of wait-edges, for all callers.
SELECT w.caller, h.caller AS holder, w.key, substr(w.note, 1, 384), w.process,
  (CAST(unixepoch('subsec') * 1000 AS INTEGER) - w.since) * 1000 AS waited
FROM rowlock_wait AS w
JOIN rowlock AS r ON r.key = w.key AND r.placement = @placement
  AND r.owner IS NOT NULL AND r.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)
  AND (r.token = w.awaits OR r.token = -w.awaits AND r.expires_at < 253370764800000)
JOIN rowlock_wait AS h ON h.key = r.key AND h.token = r.token AND h.process = w.process
  AND h.alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE w.token = 0 AND w.alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER)
LIMIT ?1

-- name: doctor-bad
-- limit: rows of @table that rowlock cannot have written: the key, and which column says so. @tests
-- are of the sections below, one for each column.
SELECT @key, what FROM (
  SELECT @key, CASE @tests END AS what FROM @table
) AS b WHERE what IS NOT NULL LIMIT ?1

-- name: doctor-bad-bytes
-- It is there, and not so long
(length(@column) NOT @bounds)

-- name: doctor-bad-number
(typeof(@column) <> 'integer' OR @column NOT BETWEEN @bounds)

-- name: doctor-bad-time
(typeof(@column) <> 'integer' OR @column NOT BETWEEN -62135596800000 AND 253402300799999)

-- name: doctor-bad-note
(typeof(@column) <> 'text' OR length(CAST(@column AS BLOB)) > 384)

-- name: doctor-bad-far
-- It has a heartbeat, and so a near end
(@column > CAST(unixepoch('subsec') * 1000 AS INTEGER) + @bounds * 86400000)

-- name: doctor-bad-lease
-- As doctor-bad-far, of a lease: that of readers who share the key has no end of its own
(owner IS NOT NULL AND @column <> 253370764800000 AND @column > CAST(unixepoch('subsec') * 1000 AS INTEGER) + @bounds * 86400000)
