-- Who waits. These statements read, change nothing, and lock nothing.

-- name: waited-keys
-- In the order of the primary key, so that a page reads no more than itself.
SELECT `key`, count(`rank`) AS queued, count(*) - count(`rank`) AS processes
FROM rowlock_queue WHERE `key` > ? AND alive_until > UTC_TIMESTAMP(6)
GROUP BY `key` ORDER BY `key` LIMIT ?;

-- name: waited-key
SELECT `rank` IS NOT NULL AS queued, LEFT(note, 384),
  TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), alive_until) AS alive
FROM rowlock_queue WHERE `key` = ? AND alive_until > UTC_TIMESTAMP(6)
ORDER BY `rank` IS NULL, `rank`, ticket LIMIT ?;

-- name: waiting-callers
SELECT LEFT(note, 384), TIMESTAMPDIFF(MICROSECOND, since, UTC_TIMESTAMP(6)) AS waited
FROM rowlock_wait WHERE `key` = ? AND token = 0 AND alive_until > UTC_TIMESTAMP(6)
ORDER BY since LIMIT ?;
