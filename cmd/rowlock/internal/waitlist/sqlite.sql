-- Who waits. These statements read, change nothing, and lock nothing.

-- name: waited-keys
-- In the order of the index on key, so that a page reads no more than itself.
SELECT key, count(rank) AS queued, count(*) - count(rank) AS processes
FROM rowlock_queue WHERE key > ? AND alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER)
GROUP BY key ORDER BY key LIMIT ?;
