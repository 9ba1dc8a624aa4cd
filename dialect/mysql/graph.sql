-- What waits while it holds something, for MySQL and MariaDB. The section names are the same in
-- every dialect.

-- name: wait-note
-- 1 for a process, note, life in µs, JSON array of {k, o, t, d}: hexadecimal key and caller, token, or 0 for a key
-- that is waited for and -1 for one that is to be shared, how long it has waited in µs. Of the latter, the token
-- awaited is negative. A late statement extends them no further than if it had been in time.
INSERT INTO rowlock_wait (caller, `key`, token, awaits, process, note, since, alive_until)
SELECT UNHEX(j.o), UNHEX(j.k), GREATEST(j.t, 0),
  CASE WHEN j.t > 0 THEN 0 ELSE COALESCE((SELECT CASE j.t WHEN 0 THEN r.token ELSE -r.token END
    FROM rowlock AS r WHERE r.`key` = UNHEX(j.k)), 0) END, ?, ?, UTC_TIMESTAMP(6) - INTERVAL j.d MICROSECOND,
  UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$.k', o CHAR(32) PATH '$.o',
  t BIGINT PATH '$.t', d BIGINT PATH '$.d')) AS j
ON DUPLICATE KEY UPDATE rowlock_wait.awaits = VALUES(awaits), rowlock_wait.alive_until = LEAST(VALUES(alive_until),
  rowlock_wait.since
    + INTERVAL TIMESTAMPDIFF(MICROSECOND, VALUES(since), VALUES(alive_until)) MICROSECOND)

-- name: wait-erase
-- JSON array as for wait-note. It names whole primary keys, because a search by caller alone would
-- lock the gaps beside it, into which others insert.
DELETE e FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$.k', o CHAR(32) PATH '$.o',
  t BIGINT PATH '$.t')) AS j
STRAIGHT_JOIN rowlock_wait AS e FORCE INDEX (PRIMARY)
  ON e.caller = UNHEX(j.o) AND e.`key` = UNHEX(j.k) AND e.token = GREATEST(j.t, 0)

-- name: wait-edges
-- JSON array of callers, 1 for processes, limit. It follows the waits: from a caller to the keys that it waits for,
-- from each to the caller that holds it with the token that its row has now and had when the wait was recorded. A
-- record leads nowhere once the lease has changed hands: the one that waited may have had the key since. Neither does
-- one of a key that is to be shared while others share it. UNION ends at a caller that was reached before.
WITH RECURSIVE reached AS (
  SELECT CAST(UNHEX(j.c) AS BINARY(16)) AS caller
  FROM JSON_TABLE(?, '$[*]' COLUMNS (c CHAR(32) PATH '$')) AS j
  UNION
  SELECT h.caller FROM reached AS f
  JOIN rowlock_wait AS w ON w.caller = f.caller AND w.token = 0
    AND w.alive_until > UTC_TIMESTAMP(6)
  JOIN rowlock AS r ON r.`key` = w.`key` AND r.placement = @placement
    AND r.owner IS NOT NULL AND r.expires_at > UTC_TIMESTAMP(6) AND (r.token = w.awaits
      OR r.token = -w.awaits AND r.expires_at < '9999-01-01 00:00:00')
  JOIN rowlock_wait AS h ON h.`key` = r.`key` AND h.token = r.token AND h.process = w.process
    AND h.alive_until > UTC_TIMESTAMP(6)
)
SELECT w.caller, h.caller AS holder, w.`key`, r.token, LEFT(w.note, 384),
  TIMESTAMPDIFF(MICROSECOND, '1970-01-01', w.since) AS since,
  TIMESTAMPDIFF(MICROSECOND, '1970-01-01', w.alive_until) AS expires,
  TIMESTAMPDIFF(MICROSECOND, w.since, UTC_TIMESTAMP(6)) AS waited
FROM reached AS f
JOIN rowlock_wait AS w ON w.caller = f.caller AND w.token = 0 AND w.process = ?
  AND w.alive_until > UTC_TIMESTAMP(6)
JOIN rowlock AS r ON r.`key` = w.`key` AND r.placement = @placement
  AND r.owner IS NOT NULL AND r.expires_at > UTC_TIMESTAMP(6) AND (r.token = w.awaits
    OR r.token = -w.awaits AND r.expires_at < '9999-01-01 00:00:00')
JOIN rowlock_wait AS h ON h.`key` = r.`key` AND h.token = r.token AND h.process = w.process
  AND h.alive_until > UTC_TIMESTAMP(6)
LIMIT ?

-- name: wait-dead
-- retention in µs: whether a process that has died has left rows
SELECT EXISTS (SELECT 1 FROM rowlock_wait
  WHERE alive_until <= UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND)

-- name: wait-reap
-- retention in µs
DELETE FROM rowlock_wait
WHERE alive_until <= UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND
