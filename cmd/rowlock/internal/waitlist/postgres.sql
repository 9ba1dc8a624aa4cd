-- Who waits. These statements read, change nothing, and lock nothing.

-- name: waited-keys
-- In the order of the primary key, so that a page reads no more than itself.
SELECT key, count(rank) AS queued, count(*) - count(rank) AS processes
FROM rowlock_queue WHERE key > $1 AND alive_until > clock_timestamp()
GROUP BY key ORDER BY key LIMIT $2;
