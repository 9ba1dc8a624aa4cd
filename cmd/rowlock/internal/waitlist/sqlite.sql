-- Who waits. These statements read, change nothing, and lock nothing.

-- name: waited-keys
-- In the order of the index on key, so that a page reads no more than itself.
SELECT key, count(rank) AS queued, count(*) - count(rank) AS processes
FROM rowlock_queue WHERE key > ? AND alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER)
GROUP BY key ORDER BY key LIMIT ?;

-- name: waited-key
SELECT rank IS NOT NULL AS queued, substr(note, 1, 384),
  (alive_until - CAST(unixepoch('subsec') * 1000 AS INTEGER)) * 1000 AS alive
FROM rowlock_queue WHERE key = ? AND alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER)
ORDER BY rank IS NULL, rank, ticket LIMIT ?;

-- name: waiting-callers
SELECT substr(note, 1, 384), (CAST(unixepoch('subsec') * 1000 AS INTEGER) - since) * 1000 AS waited
FROM rowlock_wait WHERE key = ? AND token = 0
  AND alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER)
ORDER BY since LIMIT ?;
