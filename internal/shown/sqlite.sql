-- What the console shows. These statements read, change nothing, and lock nothing. A page finds its
-- rows first, so that what is computed for a row is computed for those that are shown.

-- name: held
-- What a page has of each of its rows.
SELECT r.key, r.owner, r.token, substr(r.note, 1, 384), r.placement, r.acquired_at * 1000 AS acquired,
  r.expires_at * 1000 AS expires, (r.expires_at - r.now) * 1000 AS remaining,
  (r.now - r.acquired_at) * 1000 AS age,
  (SELECT count(*) FROM rowlock_member AS m
    WHERE m.key = r.key AND m.reader_group = r.owner AND m.expires_at > r.now) AS members,
  coalesce((SELECT max(m.expires_at) FROM rowlock_member AS m
    WHERE m.key = r.key AND m.reader_group = r.owner) - r.now, 0) * 1000 AS shared,
  (SELECT count(*) FROM rowlock_queue AS q
    WHERE q.key = r.key AND q.alive_until > r.now) AS waiting
FROM (@page) AS r

-- name: by-key
SELECT t.*, (SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)) AS now FROM rowlock AS t
WHERE key > ?1 AND key <= ?2 AND owner IS NOT NULL
  AND expires_at > (SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)) AND instr(note, ?3) = 1
ORDER BY key LIMIT ?4

-- name: by-age
-- by-expiry is the same statement by another column.
SELECT t.*, (SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)) AS now FROM rowlock AS t
WHERE key > ?1 AND key <= ?2 AND owner IS NOT NULL
  AND expires_at > (SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER))
  AND acquired_at >= ?3 / 1000 AND (acquired_at > ?4 / 1000 OR key > ?5)
ORDER BY acquired_at, key LIMIT ?6

-- name: waited
-- Keys by how many wait for them. The queue has a row for each waiter, and none for a key that is
-- only held.
SELECT q.key, q.queued, q.processes, coalesce(r.placement, 0) AS placement, r.owner, coalesce(substr(r.note, 1, 384), ''),
  coalesce(r.expires_at > q.now, 0) AS live, coalesce(q.now - r.acquired_at, 0) * 1000 AS age
FROM (SELECT key, count(rank) AS queued, count(*) - count(rank) AS processes,
    CAST(unixepoch('subsec') * 1000 AS INTEGER) AS now
  FROM rowlock_queue WHERE key > ? AND key <= ?
    AND alive_until > (SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER))
    AND instr(replace(note, char(11), char(9)), ?) = 1
  GROUP BY key ORDER BY count(*) DESC, key LIMIT ?) AS q
LEFT JOIN rowlock AS r ON r.key = q.key
ORDER BY q.queued + q.processes DESC, q.key

-- name: edges
-- Who waits for a key that another caller holds, as both have said, with the token that the key's
-- row has now and had when the wait was recorded.
SELECT w.caller, h.caller AS holder, w.key, r.token, substr(w.note, 1, 384), w.process,
  (CAST(unixepoch('subsec') * 1000 AS INTEGER) - w.since) * 1000 AS waited
FROM rowlock_wait AS w
JOIN rowlock AS r ON r.key = w.key AND r.token = w.awaits AND r.placement = 0 AND r.owner IS NOT NULL
  AND r.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)
JOIN rowlock_wait AS h ON h.key = r.key AND h.token = r.token AND h.process = w.process
  AND h.alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE w.token = 0 AND w.key > ? AND w.key <= ?
  AND w.alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER)
LIMIT ?

-- name: members
SELECT m.owner, substr(m.note, 1, 384), (m.expires_at - CAST(unixepoch('subsec') * 1000 AS INTEGER)) * 1000 AS remaining,
  (CAST(unixepoch('subsec') * 1000 AS INTEGER) - m.joined_at) * 1000 AS age
FROM rowlock AS r JOIN rowlock_member AS m ON m.key = r.key AND m.reader_group = r.owner
WHERE r.key = ? AND m.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)
ORDER BY m.joined_at, m.owner LIMIT ?

-- name: waiters
-- The queue in its order, then processes, then what waits while it holds other keys: calls (2) and
-- processes (3), with a row for each of those keys that the key's own row confirms.
SELECT kind, note, age, alive, caller, held FROM (
  SELECT iif(rank IS NULL, 1, 0) AS kind, substr(note, 1, 384) AS note, 0 AS age, rank, ticket,
    (alive_until - CAST(unixepoch('subsec') * 1000 AS INTEGER)) * 1000 AS alive, waiter AS caller, NULL AS held
  FROM rowlock_queue WHERE key = ?1 AND alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER)
  UNION ALL
  SELECT 2 + w.process, substr(w.note, 1, 384), (CAST(unixepoch('subsec') * 1000 AS INTEGER) - w.since) * 1000,
    w.since, 0, (w.alive_until - CAST(unixepoch('subsec') * 1000 AS INTEGER)) * 1000, w.caller, h.key
  FROM rowlock_wait AS w LEFT JOIN (rowlock_wait AS h JOIN rowlock AS r ON r.key = h.key AND r.token = h.token
      AND r.owner IS NOT NULL AND r.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER))
    ON h.caller = w.caller AND h.token > 0 AND h.alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER)
  WHERE w.key = ?2 AND w.token = 0 AND w.alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER)
) AS w ORDER BY kind, rank, ticket, held LIMIT ?3
