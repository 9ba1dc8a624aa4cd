-- What package doctor counts, for MySQL and MariaDB. The section names are the same in every
-- dialect. Each statement reads no more than a number of rows that it is told, or all
-- rows of a table once.

-- name: doctor-dead
-- retention in µs, limit: dead keys, those dead for longer than the retention, and how long
-- the oldest is dead, in µs
SELECT count(*), CAST(coalesce(sum(CASE WHEN age > ? THEN 1 ELSE 0 END), 0) AS SIGNED),
  CAST(coalesce(max(age), 0) AS SIGNED)
FROM (SELECT TIMESTAMPDIFF(MICROSECOND, expires_at, UTC_TIMESTAMP(6)) AS age
  FROM rowlock WHERE home = @home AND expires_at <= UTC_TIMESTAMP(6) LIMIT ?) AS d

-- name: doctor-expired
-- limit: keys that their owners have not released in time, and how long ago that was, in µs
SELECT `key`, LEFT(note, 384), token,
  TIMESTAMPDIFF(MICROSECOND, expires_at, UTC_TIMESTAMP(6)) AS age
FROM rowlock
WHERE home = @home AND owner IS NOT NULL AND expires_at <= UTC_TIMESTAMP(6) LIMIT ?

-- name: doctor-queue
-- As doctor-dead: tickets and registrations without a heartbeat
SELECT count(*), CAST(coalesce(sum(CASE WHEN age > ? THEN 1 ELSE 0 END), 0) AS SIGNED),
  CAST(coalesce(max(age), 0) AS SIGNED)
FROM (SELECT TIMESTAMPDIFF(MICROSECOND, alive_until, UTC_TIMESTAMP(6)) AS age
  FROM rowlock_queue WHERE alive_until <= UTC_TIMESTAMP(6) LIMIT ?) AS d

-- name: doctor-chains
-- As doctor-dead: records of calls that wait while they hold something
SELECT count(*), CAST(coalesce(sum(CASE WHEN age > ? THEN 1 ELSE 0 END), 0) AS SIGNED),
  CAST(coalesce(max(age), 0) AS SIGNED)
FROM (SELECT TIMESTAMPDIFF(MICROSECOND, alive_until, UTC_TIMESTAMP(6)) AS age
  FROM rowlock_wait WHERE alive_until <= UTC_TIMESTAMP(6) LIMIT ?) AS d

-- name: doctor-members
-- As doctor-dead: members of groups that share a key
SELECT count(*), CAST(coalesce(sum(CASE WHEN age > ? THEN 1 ELSE 0 END), 0) AS SIGNED),
  CAST(coalesce(max(age), 0) AS SIGNED)
FROM (SELECT TIMESTAMPDIFF(MICROSECOND, expires_at, UTC_TIMESTAMP(6)) AS age
  FROM rowlock_member WHERE expires_at <= UTC_TIMESTAMP(6) LIMIT ?) AS d

-- name: doctor-waits
-- limit. Of each chain of calls that waits for a key: the chain that holds it, and how long it
-- has waited, in µs. It has the conditions of wait-edges, for all chains.
SELECT w.chain, h.chain AS holder, w.`key`, LEFT(w.note, 384), w.process,
  TIMESTAMPDIFF(MICROSECOND, w.since, UTC_TIMESTAMP(6)) AS waited
FROM rowlock_wait AS w
JOIN rowlock AS r ON r.`key` = w.`key` AND r.home = @home
  AND r.owner IS NOT NULL AND r.expires_at > UTC_TIMESTAMP(6) AND (r.token = w.awaits
    OR r.token = -w.awaits AND r.expires_at < '9999-01-01 00:00:00')
JOIN rowlock_wait AS h ON h.`key` = r.`key` AND h.token = r.token AND h.process = w.process
  AND h.alive_until > UTC_TIMESTAMP(6)
WHERE w.token = 0 AND w.alive_until > UTC_TIMESTAMP(6) LIMIT ?

-- name: doctor-bad-rowlock
-- limit: rows that rowlock cannot have written: the key, and which column says so
SELECT `key`, what FROM (
  SELECT `key`, CASE WHEN LENGTH(owner) <> 16 THEN 'owner'
         WHEN token IS NULL OR token < 0 OR token > @last_token THEN 'token'
         WHEN TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at) IS NULL THEN 'expires_at'
         WHEN TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), acquired_at) IS NULL THEN 'acquired_at'
         WHEN home IS NULL OR home < -1 THEN 'home'
         WHEN note IS NULL OR LENGTH(note) > 384 THEN 'note'
         WHEN owner IS NOT NULL AND expires_at <> '9999-01-01 00:00:00' AND expires_at > UTC_TIMESTAMP(6) + INTERVAL 1 YEAR THEN 'expires_at is far' END AS what
  FROM rowlock
) AS b WHERE what IS NOT NULL LIMIT ?

-- name: doctor-bad-floor
-- limit: as doctor-bad-rowlock, of floors
SELECT bucket, what FROM (
  SELECT bucket, CASE WHEN floor IS NULL OR floor < 0 OR floor > @last_token THEN 'floor'
         WHEN bucket NOT BETWEEN 0 AND 255 THEN 'bucket' END AS what
  FROM rowlock_floor
) AS b WHERE what IS NOT NULL LIMIT ?

-- name: doctor-bad-era
-- limit: as doctor-bad-rowlock, of eras
SELECT history, what FROM (
  SELECT history, CASE WHEN start IS NULL OR start < 0 OR start > @last_token THEN 'start'
         WHEN TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), since) IS NULL THEN 'since' END AS what
  FROM rowlock_era
) AS b WHERE what IS NOT NULL LIMIT ?

-- name: doctor-bad-queue
-- limit: as doctor-bad-rowlock, of tickets. Each has a heartbeat, and so a near end.
SELECT `key`, what FROM (
  SELECT `key`, CASE WHEN LENGTH(waiter) <> 16 THEN 'waiter'
         WHEN TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), alive_until) IS NULL THEN 'alive_until'
         WHEN alive_until > UTC_TIMESTAMP(6) + INTERVAL 1 DAY THEN 'alive_until is far'
         WHEN note IS NULL OR LENGTH(note) > 384 THEN 'note' END AS what
  FROM rowlock_queue
) AS b WHERE what IS NOT NULL LIMIT ?

-- name: doctor-bad-wait
-- limit: as doctor-bad-rowlock, of waits
SELECT `key`, what FROM (
  SELECT `key`, CASE WHEN LENGTH(chain) <> 16 THEN 'chain'
         WHEN TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), since) IS NULL THEN 'since'
         WHEN TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), alive_until) IS NULL THEN 'alive_until'
         WHEN alive_until > UTC_TIMESTAMP(6) + INTERVAL 1 DAY THEN 'alive_until is far'
         WHEN note IS NULL OR LENGTH(note) > 384 THEN 'note' END AS what
  FROM rowlock_wait
) AS b WHERE what IS NOT NULL LIMIT ?

-- name: doctor-bad-member
-- limit: as doctor-bad-rowlock, of members
SELECT `key`, what FROM (
  SELECT `key`, CASE WHEN LENGTH(team) <> 16 THEN 'team'
         WHEN LENGTH(owner) <> 16 THEN 'owner'
         WHEN TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), joined_at) IS NULL THEN 'joined_at'
         WHEN TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at) IS NULL THEN 'expires_at'
         WHEN expires_at > UTC_TIMESTAMP(6) + INTERVAL 1 YEAR THEN 'expires_at is far'
         WHEN note IS NULL OR LENGTH(note) > 384 THEN 'note' END AS what
  FROM rowlock_member
) AS b WHERE what IS NOT NULL LIMIT ?

-- name: doctor-bad-limit
-- limit: as doctor-bad-rowlock, of limits
SELECT name, what FROM (
  SELECT name, CASE WHEN slots IS NULL OR slots < 1 THEN 'slots'
         WHEN peak IS NULL OR peak < slots OR peak > 512 THEN 'peak'
         WHEN generation IS NULL OR generation < 0 THEN 'generation' END AS what
  FROM rowlock_limit
) AS b WHERE what IS NOT NULL LIMIT ?

-- name: doctor-bad-forced
-- limit: as doctor-bad-rowlock, of forced releases
SELECT `key`, what FROM (
  SELECT `key`, CASE WHEN TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), `at`) IS NULL THEN 'at'
         WHEN LENGTH(id) <> 16 THEN 'id'
         WHEN LENGTH(owner) <> 16 THEN 'owner'
         WHEN token IS NULL OR token < 0 THEN 'token'
         WHEN note IS NULL OR LENGTH(note) > 384 THEN 'note' END AS what
  FROM rowlock_forced
) AS b WHERE what IS NOT NULL LIMIT ?

-- name: doctor-bad-once
-- limit: as doctor-bad-rowlock, of keys that were used once. One without an end is kept for ever.
SELECT `key`, what FROM (
  SELECT `key`, CASE WHEN LENGTH(fingerprint) NOT IN (0, 32) THEN 'fingerprint'
         WHEN TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), made_at) IS NULL THEN 'made_at'
         WHEN TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at) IS NULL THEN 'expires_at' END AS what
  FROM rowlock_once
) AS b WHERE what IS NOT NULL LIMIT ?

-- name: doctor-bad-latch
-- limit: as doctor-bad-rowlock, of latches and barriers
SELECT `key`, what FROM (
  SELECT `key`, CASE WHEN LENGTH(id) <> 16 THEN 'id'
         WHEN generation IS NULL OR generation < 1 THEN 'generation'
         WHEN parties IS NULL OR parties NOT BETWEEN 1 AND 100000 THEN 'parties'
         WHEN state IS NULL OR state NOT BETWEEN 0 AND 3 THEN 'state'
         WHEN ended IS NULL OR ended NOT BETWEEN 0 AND 3 THEN 'ended'
         WHEN TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), made_at) IS NULL THEN 'made_at'
         WHEN TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at) IS NULL THEN 'expires_at' END AS what
  FROM rowlock_latch
) AS b WHERE what IS NOT NULL LIMIT ?
