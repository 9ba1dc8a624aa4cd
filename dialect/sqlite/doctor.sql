-- What package doctor counts, for SQLite. The section names are the same in every dialect.
-- Each statement reads no more than a number of rows that it is told, or all rows of a table once.

-- name: doctor-dead
-- retention in µs, limit: dead keys, those dead for longer than the retention, and how long
-- the oldest is dead, in µs
SELECT count(*), coalesce(sum(CASE WHEN age > ?1 THEN 1 ELSE 0 END), 0),
  coalesce(max(age), 0)
FROM (SELECT (CAST(unixepoch('subsec') * 1000 AS INTEGER) - expires_at) * 1000 AS age
  FROM rowlock WHERE home = @home AND expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER)
  LIMIT ?2) AS d

-- name: doctor-expired
-- limit: keys that their owners have not released in time, and how long ago that was, in µs
SELECT key, note, token,
  (CAST(unixepoch('subsec') * 1000 AS INTEGER) - expires_at) * 1000 AS age
FROM rowlock
WHERE home = @home AND owner IS NOT NULL
  AND expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER)
LIMIT ?1

-- name: doctor-queue
-- As doctor-dead: tickets and registrations without a heartbeat
SELECT count(*), coalesce(sum(CASE WHEN age > ?1 THEN 1 ELSE 0 END), 0),
  coalesce(max(age), 0)
FROM (SELECT (CAST(unixepoch('subsec') * 1000 AS INTEGER) - alive_until) * 1000 AS age
  FROM rowlock_queue WHERE alive_until <= CAST(unixepoch('subsec') * 1000 AS INTEGER)
  LIMIT ?2) AS d

-- name: doctor-chains
-- As doctor-dead: records of calls that wait while they hold something
SELECT count(*), coalesce(sum(CASE WHEN age > ?1 THEN 1 ELSE 0 END), 0),
  coalesce(max(age), 0)
FROM (SELECT (CAST(unixepoch('subsec') * 1000 AS INTEGER) - alive_until) * 1000 AS age
  FROM rowlock_wait WHERE alive_until <= CAST(unixepoch('subsec') * 1000 AS INTEGER)
  LIMIT ?2) AS d

-- name: doctor-members
-- As doctor-dead: members of groups that share a key
SELECT count(*), coalesce(sum(CASE WHEN age > ?1 THEN 1 ELSE 0 END), 0),
  coalesce(max(age), 0)
FROM (SELECT (CAST(unixepoch('subsec') * 1000 AS INTEGER) - expires_at) * 1000 AS age
  FROM rowlock_member WHERE expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER)
  LIMIT ?2) AS d

-- name: doctor-waits
-- limit. Of each chain of calls that waits for a key: the chain that holds it, and how long it
-- has waited, in µs. It has the conditions of wait-edges, for all chains.
SELECT w.chain, h.chain AS holder, w.key, w.note, w.process,
  (CAST(unixepoch('subsec') * 1000 AS INTEGER) - w.since) * 1000 AS waited
FROM rowlock_wait AS w
JOIN rowlock AS r ON r.key = w.key AND r.home = @home
  AND r.owner IS NOT NULL AND r.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)
  AND (r.token = w.awaits OR r.token = -w.awaits AND r.expires_at < 253370764800000)
JOIN rowlock_wait AS h ON h.key = r.key AND h.token = r.token AND h.process = w.process
  AND h.alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE w.token = 0 AND w.alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER)
LIMIT ?1
