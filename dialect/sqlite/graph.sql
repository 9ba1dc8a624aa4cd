-- What waits while it holds something, for SQLite. The section names are the same in every dialect.

-- name: wait-note
-- 1 for a process, note, life in µs, JSON array of {k, o, t, d}: hexadecimal key and caller, token, or 0 for a key
-- that is waited for and -1 for one that is to be shared, how long it has waited in µs. Of the latter, the token
-- awaited is negative. A late statement extends them no further than if it had been in time.
INSERT INTO rowlock_wait (caller, key, token, awaits, process, note, since, alive_until)
SELECT unhex(j.value ->> 'o'), unhex(j.value ->> 'k'), max(j.value ->> 't', 0),
  iif(j.value ->> 't' > 0, 0, coalesce((SELECT iif(j.value ->> 't' = 0, r.token, -r.token)
    FROM rowlock AS r WHERE r.key = unhex(j.value ->> 'k')), 0)), ?1, CAST(?2 AS TEXT),
  CAST(unixepoch('subsec') * 1000 AS INTEGER) - (j.value ->> 'd') / 1000,
  CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?3 / 1000
FROM json_each(?4) AS j WHERE true
ON CONFLICT (caller, key, token) DO UPDATE SET awaits = excluded.awaits,
  alive_until = min(excluded.alive_until, since + excluded.alive_until - excluded.since)

-- name: wait-erase
-- JSON array as for wait-note
DELETE FROM rowlock_wait WHERE (caller, key, token) IN
  (SELECT unhex(value ->> 'o'), unhex(value ->> 'k'), max(value ->> 't', 0) FROM json_each(?))

-- name: wait-edges
-- JSON array of callers, 1 for processes, limit. It follows the waits: from a caller to the keys that it waits for,
-- from each to the caller that holds it with the token that its row has now and had when the wait was recorded. A
-- record leads nowhere once the lease has changed hands: the one that waited may have had the key since. Neither does
-- one of a key that is to be shared while others share it. UNION ends at a caller that was reached before. CROSS
-- JOIN, because SQLite then keeps the order.
WITH RECURSIVE reached (caller) AS (
  SELECT unhex(value) FROM json_each(?1)
  UNION
  SELECT h.caller FROM reached AS f
  CROSS JOIN rowlock_wait AS w ON w.caller = f.caller AND w.token = 0 AND w.process = ?2
    AND w.alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER)
  CROSS JOIN rowlock AS r ON r.key = w.key AND r.placement = @placement
    AND r.owner IS NOT NULL AND r.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)
    AND (r.token = w.awaits OR r.token = -w.awaits AND r.expires_at < 253370764800000)
  CROSS JOIN rowlock_wait AS h ON h.key = r.key AND h.token = r.token AND h.process = w.process
    AND h.alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER)
)
SELECT w.caller, h.caller AS holder, w.key, r.token, substr(w.note, 1, 384), w.since * 1000 AS since,
  w.alive_until * 1000 AS expires,
  (CAST(unixepoch('subsec') * 1000 AS INTEGER) - w.since) * 1000 AS waited
FROM reached AS f
CROSS JOIN rowlock_wait AS w ON w.caller = f.caller AND w.token = 0 AND w.process = ?2
  AND w.alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER)
CROSS JOIN rowlock AS r ON r.key = w.key AND r.placement = @placement
  AND r.owner IS NOT NULL AND r.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)
  AND (r.token = w.awaits OR r.token = -w.awaits AND r.expires_at < 253370764800000)
CROSS JOIN rowlock_wait AS h ON h.key = r.key AND h.token = r.token AND h.process = w.process
  AND h.alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER)
LIMIT ?3

-- name: wait-dead
-- retention in µs: whether a process that has died has left rows
SELECT EXISTS (SELECT 1 FROM rowlock_wait
  WHERE alive_until <= CAST(unixepoch('subsec') * 1000 AS INTEGER) - ? / 1000)

-- name: wait-reap
-- retention in µs
DELETE FROM rowlock_wait
WHERE alive_until <= CAST(unixepoch('subsec') * 1000 AS INTEGER) - ? / 1000
