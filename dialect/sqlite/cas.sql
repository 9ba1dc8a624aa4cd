-- For package optimistic: it reads a row, and changes the row only if it is still as it was read.
-- The parameters have the same order in every dialect. Times are µs, rounded up to the clock's ms,
-- and expiries as the column has them. Renewal is the one in statements.sql.

-- name: cas-setup
-- Returns for how many ms a statement may wait for a locked row. SQLite has no locked rows.
SELECT 0

-- name: cas-look
-- owner, key
SELECT CASE WHEN placement <> @placement THEN 4
            WHEN owner = ? AND expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER) THEN 7
            WHEN owner IS NOT NULL AND expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)
              THEN 0
            WHEN token NOT BETWEEN 0 AND @last_token - 1 THEN 3
            WHEN owner IS NOT NULL THEN 5
            ELSE 2 END AS state,
       token, substr(note, 1, 384), (expires_at - CAST(unixepoch('subsec') * 1000 AS INTEGER)) * 1000 AS remaining,
         owner, expires_at AS expires
FROM rowlock WHERE key = ?

-- name: cas-take-free
-- owner, note, ttl, next token; key, and token as read. A row without owner is as it was read if
-- its token is, because every grant raises it. No client can fence such a row, so a wait is only
-- for another taker's commit.
UPDATE rowlock
SET owner = ?, note = ?, expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
  + (? + 999) / 1000,
    acquired_at = CAST(unixepoch('subsec') * 1000 AS INTEGER), token = max(? - 1, @era) + 1
WHERE key = ? AND placement = @placement AND token = ? AND owner IS NULL

-- name: cas-take
-- owner, note, ttl, next token; key, and token, owner, expiry as read
UPDATE rowlock
SET owner = ?, note = ?, expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
  + (? + 999) / 1000,
    acquired_at = CAST(unixepoch('subsec') * 1000 AS INTEGER), token = max(? - 1, @era) + 1
WHERE key = ? AND placement = @placement AND token = ? AND owner = ? AND expires_at = ?
  AND expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER)

-- name: cas-insert
-- key, owner, note, ttl, bucket
INSERT INTO rowlock (key, owner, note, token, acquired_at, expires_at, placement)
SELECT ?, ?, ?, max(floor, @era) + 1, CAST(unixepoch('subsec') * 1000 AS INTEGER),
       CAST(unixepoch('subsec') * 1000 AS INTEGER) + (? + 999) / 1000, @placement
FROM rowlock_floor WHERE bucket = ? AND floor < @last_token - 1
ON CONFLICT (key) DO NOTHING

-- name: cas-made
-- bucket, key: the row that this transaction has made, and the floor as it is by now
SELECT r.token, f.floor FROM rowlock AS r, rowlock_floor AS f WHERE f.bucket = ? AND r.key = ?

-- name: cas-raise
-- token, key: the row that this transaction has made
UPDATE rowlock SET token = max(? - 1, @era) + 1 WHERE key = ?

-- name: cas-fence
-- key, owner, token
UPDATE rowlock SET token = token WHERE key = ? AND owner = ? AND token = ? AND placement = @placement

-- name: cas-floor
-- bucket
SELECT floor FROM rowlock_floor WHERE bucket = ?

-- name: cas-dead
-- keys as a JSON array, retention: the highest token of those that are dead, or -1
SELECT coalesce(max(r.token), -1) FROM json_each(?) AS j JOIN rowlock AS r ON r.key = unhex(j.value)
WHERE r.placement = @placement AND r.token BETWEEN 0 AND @last_token - 1
  AND r.expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER) - ? / 1000

-- name: cas-reap
-- keys as a JSON array, retention, floor
DELETE FROM rowlock
WHERE key IN (SELECT unhex(value) FROM json_each(?)) AND placement = @placement
  AND expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER) - ? / 1000 AND token <= ?

-- name: cas-drop-dead
-- key, waiter, retention
DELETE FROM rowlock_queue
WHERE key = ? AND waiter = ? AND alive_until
  <= CAST(unixepoch('subsec') * 1000 AS INTEGER) - ? / 1000
