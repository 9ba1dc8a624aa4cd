-- The statements for SQLite. The section names are the same in every dialect, and the server sees
-- each as a comment after the verb: SELECT /* rowlock look */ …. Three names are filled in.
-- @placement is the placement of the rows that these statements may change: 0 for leases, otherwise
-- see lease.PlacementTransaction. @last_token is the largest token that is ever granted, lease.MaxToken
-- - 1. @era is the start of the session's era, which each of its tokens is above; see era.sql.
--
-- There is no server: time is the wall clock of the host, in whole milliseconds since 1970. All
-- processes are on that host. A statement that writes waits for the file's one write lock first and
-- reads the clock after.

-- name: look
-- owner, key. It runs first, so that a loser never asks for the write lock.
SELECT CASE WHEN placement <> @placement THEN 4
            WHEN owner = ? AND expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER) THEN 7
            WHEN owner IS NOT NULL AND expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)
              THEN 0
            WHEN token NOT BETWEEN 0 AND @last_token - 1 THEN 3
            WHEN owner IS NOT NULL THEN 5
            ELSE 2 END AS state,
       token, substr(note, 1, 384), (expires_at - CAST(unixepoch('subsec') * 1000 AS INTEGER)) * 1000 AS remaining
FROM rowlock WHERE key = ?

-- name: seize
-- key. Whether there is a row: if an attempt finds it free or expired, and does not change it with
-- the write lock, then a trigger keeps it as it is.
SELECT 1 FROM rowlock WHERE key = ?

-- name: acquire-update
-- ttl in ms, owner, note, key
UPDATE rowlock SET token = max(token, @era) + 1,
  acquired_at = CAST(unixepoch('subsec') * 1000 AS INTEGER),
  expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?, owner = ?, note = ?
WHERE key = ? AND placement = @placement AND (owner IS NULL
  OR expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER))
  AND token BETWEEN 0 AND @last_token - 1
RETURNING token

-- name: acquire-insert
-- key, owner, note, ttl in ms, bucket. The write lock that the statement holds keeps the reaper
-- out.
INSERT INTO rowlock (key, owner, note, token, acquired_at, expires_at, placement)
SELECT ?, ?, ?, max(floor, @era) + 1, CAST(unixepoch('subsec') * 1000 AS INTEGER),
  CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?, @placement
FROM rowlock_floor WHERE bucket = ? AND floor < @last_token
ON CONFLICT (key) DO NOTHING
RETURNING token

-- name: rows
-- JSON array of hexadecimal keys. What a batch finds. CROSS JOIN, because SQLite then keeps the
-- order: from the list to the rows.
SELECT j.key + 1 AS n, r.placement = @placement AS placement, r.owner, r.token, substr(r.note, 1, 384),
       (r.expires_at - CAST(unixepoch('subsec') * 1000 AS INTEGER)) * 1000 AS remaining
FROM json_each(?) AS j CROSS JOIN rowlock AS r ON r.key = unhex(j.value)

-- name: create
-- key, owner (NULL: free), note, ttl in ms, bucket. As acquire-insert, or a free row, whose token
-- stands at the floor.
INSERT INTO rowlock (key, owner, note, token, acquired_at, expires_at, placement)
SELECT ?1, ?2, ?3, iif(?2 IS NULL, floor, max(floor, @era) + 1),
       CAST(unixepoch('subsec') * 1000 AS INTEGER),
       CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?4, @placement
FROM rowlock_floor WHERE bucket = ?5 AND floor < @last_token
ON CONFLICT (key) DO NOTHING
RETURNING token

-- name: renew
-- JSON array of {k, o, t, d}: hexadecimal key and owner, token, ttl in ms
UPDATE rowlock SET expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) + j.d
FROM (SELECT unhex(value ->> 'k') AS k, unhex(value ->> 'o') AS o, value ->> 't' AS t,
  value ->> 'd' AS d
      FROM json_each(?)) AS j
WHERE rowlock.key = j.k AND rowlock.owner = j.o AND rowlock.token = j.t AND placement = @placement
  AND expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)
RETURNING key, owner, token, CAST(unixepoch('subsec') * 1000 AS INTEGER) * 1000 AS clock,
  0 AS remaining

-- name: renew-look
-- JSON array as for renew, while another transaction has the write lock. Returns those that still
-- name this owner and token, and what remains of them. It reads what is committed.
SELECT r.key, r.owner, r.token, CAST(unixepoch('subsec') * 1000 AS INTEGER) * 1000 AS clock,
       (r.expires_at - CAST(unixepoch('subsec') * 1000 AS INTEGER)) * 1000 AS remaining
FROM json_each(?) AS j JOIN rowlock AS r ON r.key = unhex(j.value ->> 'k')
WHERE r.owner = unhex(j.value ->> 'o') AND r.token = j.value ->> 't' AND r.placement = @placement

-- name: confirm
-- ttl in µs or 0, key, owner, token. The lease was read to be its owner's, and a read proves
-- nothing about durability. This commit comes after the one that was read. It always changes the
-- row, never shortens the lease, and extends it by the clock's resolution or to the ttl from now.
UPDATE rowlock SET expires_at = max(expires_at + 1,
  CAST(unixepoch('subsec') * 1000 AS INTEGER) + (? + 999) / 1000)
WHERE key = ? AND owner = ? AND token = ? AND placement = @placement
  AND expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)

-- name: raise
-- token, key, owner, token so far, token. A lease gets a larger token, or has it from an
-- earlier try. The row always changes, because a statement that changes nothing commits nothing,
-- and an earlier try may not have been acknowledged.
UPDATE rowlock SET token = ?, expires_at = expires_at + 1
WHERE key = ? AND owner = ? AND token IN (?, ?) AND placement = @placement
  AND expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)

-- name: release
-- key, owner, token, or 0 for any token of this owner
UPDATE rowlock SET owner = NULL, note = '', expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE key = ? AND owner = ? AND ? IN (token, 0) AND placement = @placement

-- name: hand-over
-- next owner, note, ttl in ms, key, present owner and token
UPDATE rowlock SET token = max(token, @era) + 1, owner = ?, note = ?,
  acquired_at = CAST(unixepoch('subsec') * 1000 AS INTEGER),
  expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?
WHERE key = ? AND owner = ? AND token = ? AND placement = @placement AND token BETWEEN 0 AND @last_token - 1

-- name: inspect
-- the key before the first, the last that is possible, held only, limit. The driver sends an empty
-- text as NULL. The clock is read once, and not for each row that is passed over. What cannot be
-- read counts as held.
SELECT r.key, r.owner, r.token, substr(r.note, 1, 384),
       r.owner IS NOT NULL AND r.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER) AS held,
       (r.expires_at - CAST(unixepoch('subsec') * 1000 AS INTEGER)) * 1000 AS remaining,
       (CAST(unixepoch('subsec') * 1000 AS INTEGER) - r.acquired_at) * 1000 AS age, r.placement
FROM rowlock AS r
WHERE r.key > coalesce(?, x'') AND r.key <= ?
  AND (? = 0 OR r.owner IS NOT NULL
    AND (r.expires_at > (SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER))) IS NOT FALSE)
ORDER BY r.key LIMIT ?

-- name: inspect-keys
-- keys as a JSON array, each once, and the rest as for inspect. This is not one statement with
-- inspect, because "no list, or in it" reads the whole table, and the list again for each row.
-- CROSS JOIN, because SQLite then keeps the order: from the list to the rows.
SELECT r.key, r.owner, r.token, substr(r.note, 1, 384),
       r.owner IS NOT NULL AND r.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER) AS held,
       (r.expires_at - CAST(unixepoch('subsec') * 1000 AS INTEGER)) * 1000 AS remaining,
       (CAST(unixepoch('subsec') * 1000 AS INTEGER) - r.acquired_at) * 1000 AS age, r.placement
FROM json_each(?) AS j CROSS JOIN rowlock AS r ON r.key = unhex(j.value)
WHERE r.key > coalesce(?, x'') AND r.key <= ?
  AND (? = 0 OR r.owner IS NOT NULL
    AND (r.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)) IS NOT FALSE)
ORDER BY r.key LIMIT ?

-- name: fence
-- key, owner, token, ttl in µs, or 0 to leave the expiry as it is. It writes even then, because a
-- write takes the file's write lock in a transaction that was begun DEFERRED, where a read locks
-- nothing. An expired lease is fenced and not revived.
UPDATE rowlock SET expires_at = iif(?4 > 0 AND expires_at
  > CAST(unixepoch('subsec') * 1000 AS INTEGER),
  max(expires_at, CAST(unixepoch('subsec') * 1000 AS INTEGER) + (?4 + 999) / 1000), expires_at)
WHERE key = ?1 AND owner = ?2 AND token = ?3 AND placement = @placement RETURNING 1

-- name: release-tx
-- key, owner, token
UPDATE rowlock SET owner = NULL, note = '', expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE key = ? AND owner = ? AND token = ? AND placement = @placement

-- name: instance
SELECT value FROM rowlock_meta WHERE name = 'instance'

-- name: schema-version
SELECT v.value, f.value, v.name FROM rowlock_meta AS v LEFT JOIN rowlock_meta AS f
  ON f.name = replace(v.name, 'schema_version', 'compatible_from') WHERE substr(v.name, 1, 14) = 'schema_version' ORDER BY v.name

-- name: complete
SELECT count(*) FROM rowlock_floor

-- name: floor-lock
-- bucket. A write, so that the transaction has the write lock from its first statement: a read that
-- is upgraded later fails with SQLITE_BUSY_SNAPSHOT, for which no busy timeout waits.
UPDATE rowlock_floor SET floor = floor WHERE bucket = ? RETURNING floor

-- name: floor-raise
-- floor, bucket
UPDATE rowlock_floor SET floor = max(floor, ?) WHERE bucket = ?

-- name: dead
-- after, number of rows to read, retention in µs, that number again. It walks the primary key. The
-- result always has the last row that was read, dead or not, from which the walk goes on.
SELECT key, dead FROM (
  SELECT key, placement = @placement AND expires_at
    <= CAST(unixepoch('subsec') * 1000 AS INTEGER) - p.retention / 1000 AS dead,
         row_number() OVER (ORDER BY key) AS n
  FROM (SELECT key, placement, expires_at FROM rowlock WHERE key > ? ORDER BY key LIMIT ?) AS page,
       (SELECT ? AS retention) AS p
) AS w WHERE dead OR n = ? ORDER BY key

-- name: dead-lock
-- keys as a JSON array, retention in µs. A row whose tokens have run out stays, because its floor
-- would exhaust the whole bucket.
SELECT r.key, r.token FROM json_each(?) AS j JOIN rowlock AS r ON r.key = unhex(j.value)
WHERE r.placement = @placement AND r.token BETWEEN 0 AND @last_token - 1
  AND r.expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER) - ? / 1000

-- name: reap
-- keys as a JSON array: rows that dead-lock has found in this transaction
DELETE FROM rowlock WHERE key IN (SELECT unhex(value) FROM json_each(?))
