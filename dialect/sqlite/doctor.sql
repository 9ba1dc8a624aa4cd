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
SELECT key, substr(note, 1, 384), token,
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
SELECT w.chain, h.chain AS holder, w.key, substr(w.note, 1, 384), w.process,
  (CAST(unixepoch('subsec') * 1000 AS INTEGER) - w.since) * 1000 AS waited
FROM rowlock_wait AS w
JOIN rowlock AS r ON r.key = w.key AND r.home = @home
  AND r.owner IS NOT NULL AND r.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)
  AND (r.token = w.awaits OR r.token = -w.awaits AND r.expires_at < 253370764800000)
JOIN rowlock_wait AS h ON h.key = r.key AND h.token = r.token AND h.process = w.process
  AND h.alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE w.token = 0 AND w.alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER)
LIMIT ?1

-- name: doctor-bad-rowlock
-- limit: rows that rowlock cannot have written: the key, and which column says so
SELECT key, what FROM (
  SELECT key, CASE WHEN length(owner) <> 16 THEN 'owner'
         WHEN typeof(token) <> 'integer' OR token < 0 OR token > @last_token THEN 'token'
         WHEN typeof(expires_at) <> 'integer' OR expires_at NOT BETWEEN -62135596800000 AND 253402300799999 THEN 'expires_at'
         WHEN typeof(acquired_at) <> 'integer' OR acquired_at NOT BETWEEN -62135596800000 AND 253402300799999 THEN 'acquired_at'
         WHEN typeof(home) <> 'integer' OR home < -1 THEN 'home'
         WHEN typeof(note) <> 'text' OR length(CAST(note AS BLOB)) > 384 THEN 'note'
         WHEN owner IS NOT NULL AND expires_at <> 253370764800000 AND expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER) + 31536000000 THEN 'expires_at is far' END AS what
  FROM rowlock
) AS b WHERE what IS NOT NULL LIMIT ?1

-- name: doctor-bad-floor
-- limit: as doctor-bad-rowlock, of floors
SELECT bucket, what FROM (
  SELECT bucket, CASE WHEN typeof(floor) <> 'integer' OR floor < 0 OR floor > @last_token THEN 'floor'
         WHEN bucket NOT BETWEEN 0 AND 255 THEN 'bucket' END AS what
  FROM rowlock_floor
) AS b WHERE what IS NOT NULL LIMIT ?1

-- name: doctor-bad-era
-- limit: as doctor-bad-rowlock, of eras
SELECT history, what FROM (
  SELECT history, CASE WHEN typeof(start) <> 'integer' OR start < 0 OR start > @last_token THEN 'start'
         WHEN typeof(since) <> 'integer' OR since NOT BETWEEN -62135596800000 AND 253402300799999 THEN 'since' END AS what
  FROM rowlock_era
) AS b WHERE what IS NOT NULL LIMIT ?1

-- name: doctor-bad-queue
-- limit: as doctor-bad-rowlock, of tickets. Each has a heartbeat, and so a near end.
SELECT key, what FROM (
  SELECT key, CASE WHEN length(waiter) <> 16 THEN 'waiter'
         WHEN typeof(alive_until) <> 'integer' OR alive_until NOT BETWEEN -62135596800000 AND 253402300799999 THEN 'alive_until'
         WHEN alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER) + 86400000 THEN 'alive_until is far'
         WHEN typeof(note) <> 'text' OR length(CAST(note AS BLOB)) > 384 THEN 'note' END AS what
  FROM rowlock_queue
) AS b WHERE what IS NOT NULL LIMIT ?1

-- name: doctor-bad-wait
-- limit: as doctor-bad-rowlock, of waits
SELECT key, what FROM (
  SELECT key, CASE WHEN length(chain) <> 16 THEN 'chain'
         WHEN typeof(since) <> 'integer' OR since NOT BETWEEN -62135596800000 AND 253402300799999 THEN 'since'
         WHEN typeof(alive_until) <> 'integer' OR alive_until NOT BETWEEN -62135596800000 AND 253402300799999 THEN 'alive_until'
         WHEN alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER) + 86400000 THEN 'alive_until is far'
         WHEN typeof(note) <> 'text' OR length(CAST(note AS BLOB)) > 384 THEN 'note' END AS what
  FROM rowlock_wait
) AS b WHERE what IS NOT NULL LIMIT ?1

-- name: doctor-bad-member
-- limit: as doctor-bad-rowlock, of members
SELECT key, what FROM (
  SELECT key, CASE WHEN length(team) <> 16 THEN 'team'
         WHEN length(owner) <> 16 THEN 'owner'
         WHEN typeof(joined_at) <> 'integer' OR joined_at NOT BETWEEN -62135596800000 AND 253402300799999 THEN 'joined_at'
         WHEN typeof(expires_at) <> 'integer' OR expires_at NOT BETWEEN -62135596800000 AND 253402300799999 THEN 'expires_at'
         WHEN expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER) + 31536000000 THEN 'expires_at is far'
         WHEN typeof(note) <> 'text' OR length(CAST(note AS BLOB)) > 384 THEN 'note' END AS what
  FROM rowlock_member
) AS b WHERE what IS NOT NULL LIMIT ?1

-- name: doctor-bad-limit
-- limit: as doctor-bad-rowlock, of limits
SELECT name, what FROM (
  SELECT name, CASE WHEN typeof(slots) <> 'integer' OR slots < 1 THEN 'slots'
         WHEN typeof(peak) <> 'integer' OR peak < slots OR peak > 512 THEN 'peak'
         WHEN typeof(generation) <> 'integer' OR generation < 0 THEN 'generation' END AS what
  FROM rowlock_limit
) AS b WHERE what IS NOT NULL LIMIT ?1

-- name: doctor-bad-forced
-- limit: as doctor-bad-rowlock, of forced releases
SELECT key, what FROM (
  SELECT key, CASE WHEN typeof(at) <> 'integer' OR at NOT BETWEEN -62135596800000 AND 253402300799999 THEN 'at'
         WHEN length(id) <> 16 THEN 'id'
         WHEN length(owner) <> 16 THEN 'owner'
         WHEN typeof(token) <> 'integer' OR token < 0 THEN 'token'
         WHEN typeof(note) <> 'text' OR length(CAST(note AS BLOB)) > 384 THEN 'note' END AS what
  FROM rowlock_forced
) AS b WHERE what IS NOT NULL LIMIT ?1

-- name: doctor-bad-once
-- limit: as doctor-bad-rowlock, of keys that were used once. One without an end is kept for ever.
SELECT key, what FROM (
  SELECT key, CASE WHEN length(fingerprint) NOT IN (0, 32) THEN 'fingerprint'
         WHEN typeof(made_at) <> 'integer' OR made_at NOT BETWEEN -62135596800000 AND 253402300799999 THEN 'made_at'
         WHEN typeof(expires_at) <> 'integer' OR expires_at NOT BETWEEN -62135596800000 AND 253402300799999 THEN 'expires_at' END AS what
  FROM rowlock_once
) AS b WHERE what IS NOT NULL LIMIT ?1

-- name: doctor-bad-latch
-- limit: as doctor-bad-rowlock, of latches and barriers
SELECT key, what FROM (
  SELECT key, CASE WHEN length(id) <> 16 THEN 'id'
         WHEN typeof(generation) <> 'integer' OR generation < 1 THEN 'generation'
         WHEN typeof(parties) <> 'integer' OR parties NOT BETWEEN 1 AND 100000 THEN 'parties'
         WHEN typeof(state) <> 'integer' OR state NOT BETWEEN 0 AND 3 THEN 'state'
         WHEN typeof(ended) <> 'integer' OR ended NOT BETWEEN 0 AND 3 THEN 'ended'
         WHEN typeof(made_at) <> 'integer' OR made_at NOT BETWEEN -62135596800000 AND 253402300799999 THEN 'made_at'
         WHEN typeof(expires_at) <> 'integer' OR expires_at NOT BETWEEN -62135596800000 AND 253402300799999 THEN 'expires_at' END AS what
  FROM rowlock_latch
) AS b WHERE what IS NOT NULL LIMIT ?1
