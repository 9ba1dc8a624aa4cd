-- What the console shows. These statements read, change nothing, and lock nothing. A page finds its
-- rows first, so that what is computed for a row is computed for those that are shown.

-- name: held
-- What a page has of each of its rows.
SELECT r.`key`, r.owner, r.token, LEFT(r.note, 384), r.placement,
  TIMESTAMPDIFF(MICROSECOND, '1970-01-01', r.acquired_at) AS acquired,
  TIMESTAMPDIFF(MICROSECOND, '1970-01-01', r.expires_at) AS expires,
  TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), r.expires_at) AS remaining,
  TIMESTAMPDIFF(MICROSECOND, r.acquired_at, UTC_TIMESTAMP(6)) AS age,
  (SELECT count(*) FROM rowlock_member AS m
    WHERE m.`key` = r.`key` AND m.reader_group = r.owner AND m.expires_at > UTC_TIMESTAMP(6)) AS members,
  COALESCE(TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), (SELECT max(m.expires_at)
    FROM rowlock_member AS m WHERE m.`key` = r.`key` AND m.reader_group = r.owner)), 0) AS shared,
  (SELECT count(*) FROM rowlock_queue AS q
    WHERE q.`key` = r.`key` AND q.alive_until > UTC_TIMESTAMP(6)) AS waiting
FROM (@page) AS r

-- name: by-key
SELECT * FROM rowlock
WHERE `key` > ? AND `key` <= ? AND owner IS NOT NULL AND expires_at > UTC_TIMESTAMP(6)
  AND LOCATE(?, note) = 1
ORDER BY `key` LIMIT ?

-- name: by-age
-- by-expiry is the same statement by another column.
SELECT * FROM rowlock
WHERE `key` > ? AND `key` <= ? AND owner IS NOT NULL AND expires_at > UTC_TIMESTAMP(6)
  AND acquired_at >= '1970-01-01' + INTERVAL ? MICROSECOND
  AND (acquired_at > '1970-01-01' + INTERVAL ? MICROSECOND OR `key` > ?)
ORDER BY acquired_at, `key` LIMIT ?

-- name: waited
-- Keys by how many wait for them. The queue has a row for each waiter, and none for a key that is
-- only held.
SELECT q.`key`, q.queued, q.processes, COALESCE(r.placement, 0) AS placement, r.owner, COALESCE(LEFT(r.note, 384), ''),
  COALESCE(r.expires_at > UTC_TIMESTAMP(6), 0) AS live,
  COALESCE(TIMESTAMPDIFF(MICROSECOND, r.acquired_at, UTC_TIMESTAMP(6)), 0) AS age
FROM (SELECT `key`, count(`rank`) AS queued, count(*) - count(`rank`) AS processes
  FROM rowlock_queue WHERE `key` > ? AND `key` <= ? AND alive_until > UTC_TIMESTAMP(6)
    AND LOCATE(?, REPLACE(note, _ascii X'0B', _ascii X'09')) = 1
  GROUP BY `key` ORDER BY count(*) DESC, `key` LIMIT ?) AS q
LEFT JOIN rowlock AS r ON r.`key` = q.`key`
ORDER BY q.queued + q.processes DESC, q.`key`

-- name: edges
-- Who waits for a key that another caller holds, as both have said, with the token that the key's
-- row has now and had when the wait was recorded.
SELECT w.caller, h.caller AS holder, w.`key`, r.token, LEFT(w.note, 384), w.process,
  TIMESTAMPDIFF(MICROSECOND, w.since, UTC_TIMESTAMP(6)) AS waited
FROM rowlock_wait AS w
JOIN rowlock AS r ON r.`key` = w.`key` AND r.token = w.awaits AND r.placement = 0
  AND r.owner IS NOT NULL AND r.expires_at > UTC_TIMESTAMP(6)
JOIN rowlock_wait AS h ON h.`key` = r.`key` AND h.token = r.token AND h.process = w.process
  AND h.alive_until > UTC_TIMESTAMP(6)
WHERE w.token = 0 AND w.`key` > ? AND w.`key` <= ? AND w.alive_until > UTC_TIMESTAMP(6)
LIMIT ?

-- name: members
SELECT m.owner, LEFT(m.note, 384), TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), m.expires_at) AS remaining,
  TIMESTAMPDIFF(MICROSECOND, m.joined_at, UTC_TIMESTAMP(6)) AS age
FROM rowlock AS r JOIN rowlock_member AS m ON m.`key` = r.`key` AND m.reader_group = r.owner
WHERE r.`key` = ? AND m.expires_at > UTC_TIMESTAMP(6)
ORDER BY m.joined_at, m.owner LIMIT ?

-- name: waiters
-- The queue in its order, then processes, then what waits while it holds other keys: calls (2) and
-- processes (3), with a row for each of those keys that the key's own row confirms.
SELECT kind, note, age, alive, caller, held FROM (
  SELECT IF(`rank` IS NULL, 1, 0) AS kind, LEFT(note, 384) AS note, 0 AS age, `rank` AS place, ticket,
    TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), alive_until) AS alive, waiter AS caller, NULL AS held
  FROM rowlock_queue WHERE `key` = ? AND alive_until > UTC_TIMESTAMP(6)
  UNION ALL
  SELECT 2 + w.process, LEFT(w.note, 384), TIMESTAMPDIFF(MICROSECOND, w.since, UTC_TIMESTAMP(6)),
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', w.since), 0,
    TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), w.alive_until), w.caller, h.`key`
  FROM rowlock_wait AS w LEFT JOIN (rowlock_wait AS h JOIN rowlock AS r ON r.`key` = h.`key` AND r.token = h.token
      AND r.owner IS NOT NULL AND r.expires_at > UTC_TIMESTAMP(6))
    ON h.caller = w.caller AND h.token > 0 AND h.alive_until > UTC_TIMESTAMP(6)
  WHERE w.`key` = ? AND w.token = 0 AND w.alive_until > UTC_TIMESTAMP(6)
) AS w ORDER BY kind, place, ticket, held LIMIT ?
