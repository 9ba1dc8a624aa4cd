-- Who waits. These statements read, change nothing, and lock nothing.

-- name: waited-keys
-- In the order of the primary key, so that a page reads no more than itself.
SELECT key, count(rank) AS queued, count(*) - count(rank) AS processes
FROM rowlock_queue WHERE key > $1 AND alive_until > clock_timestamp()
GROUP BY key ORDER BY key LIMIT $2;

-- name: waited-key
SELECT rank IS NOT NULL AS queued, left(note, 384),
  CASE WHEN isfinite(alive_until)
    THEN (extract(epoch FROM alive_until - clock_timestamp()) * 1000000)::bigint END AS alive
FROM rowlock_queue WHERE key = $1 AND alive_until > clock_timestamp()
ORDER BY rank IS NULL, rank, ticket LIMIT $2;

-- name: waiting-callers
SELECT left(note, 384), CASE WHEN isfinite(since)
    THEN (extract(epoch FROM clock_timestamp() - since) * 1000000)::bigint END AS waited
FROM rowlock_wait WHERE key = $1 AND token = 0 AND alive_until > clock_timestamp()
ORDER BY since LIMIT $2;
