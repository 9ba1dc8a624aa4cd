-- For package optimistic: it reads a row, and changes the row only if it is still as it was read.
-- No statement here locks a row that it does not write. The parameters have the same order in every
-- dialect. Times are µs, and expiries µs since 1970. MariaDB does not wait for a locked row; MySQL
-- waits for a second, which is its shortest wait.

-- name: cas-setup
-- Returns for how many ms a statement may wait for a locked row. MySQL checks only once a second
-- which waits have lasted long enough.
SELECT IF(VERSION() LIKE '%MariaDB%', 0, 2000)

-- name: cas-look
-- owner, key
SELECT CASE WHEN placement <> @placement THEN 4
            WHEN owner = ? AND expires_at > UTC_TIMESTAMP(6) THEN 7
            WHEN owner IS NOT NULL AND expires_at > UTC_TIMESTAMP(6) THEN 0
            WHEN token NOT BETWEEN 0 AND @last_token - 1 THEN 3
            WHEN owner IS NOT NULL THEN 5
            ELSE 2 END AS state,
       token, LEFT(note, 384), TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at) AS remaining,
       owner, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', expires_at) AS expires
FROM rowlock WHERE `key` = ?

-- name: cas-take-free
-- owner, note, ttl, next token; key, and token as read. A row without owner is as it was read if
-- its token is, because every grant raises it. No client can fence such a row, so a wait is only
-- for another taker's commit.
UPDATE rowlock
SET owner = ?, note = ?, expires_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND,
  acquired_at = UTC_TIMESTAMP(6), token = GREATEST(? - 1, @era) + 1
WHERE `key` = ? AND placement = @placement AND token = ? AND owner IS NULL

-- name: cas-take
-- owner, note, ttl, next token; key, and token, owner, expiry as read. The token changes, so that
-- changed rows and matched rows are the same number.
/*M! SET STATEMENT innodb_lock_wait_timeout = 0 FOR */ UPDATE rowlock
SET owner = ?, note = ?, expires_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND,
  acquired_at = UTC_TIMESTAMP(6), token = GREATEST(? - 1, @era) + 1
WHERE `key` = ? AND placement = @placement AND token = ? AND owner = ?
  AND TIMESTAMPDIFF(MICROSECOND, '1970-01-01', expires_at) = ?
  AND expires_at <= UTC_TIMESTAMP(6)

-- name: cas-insert
-- key, owner, note, ttl, bucket. Under READ COMMITTED the statement reads the floor without a lock:
-- see cas-made.
INSERT INTO rowlock (`key`, owner, note, token, acquired_at, expires_at, placement)
SELECT ?, ?, ?, GREATEST(f.floor, @era) + 1, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND, @placement
FROM rowlock_floor AS f WHERE f.bucket = ? AND f.floor < @last_token - 1

-- name: cas-made
-- bucket, key: the row that this transaction has made, and the floor as it is by now
SELECT r.token, f.floor FROM rowlock AS r, rowlock_floor AS f WHERE f.bucket = ? AND r.`key` = ?

-- name: cas-raise
-- token, key: the row that this transaction has made
UPDATE rowlock SET token = GREATEST(? - 1, @era) + 1 WHERE `key` = ?

-- name: cas-renew
-- JSON array of {k, o, t, d}: hexadecimal key and owner, token, ttl; keys in order
/*M! SET STATEMENT innodb_lock_wait_timeout = 0 FOR */ UPDATE
  (SELECT UNHEX(j.k) AS k, UNHEX(j.o) AS o, j.t, j.d
   FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$.k', o CHAR(32) PATH '$.o',
     t BIGINT PATH '$.t', d BIGINT PATH '$.d')) AS j
   LIMIT 9223372036854775807) AS w
STRAIGHT_JOIN rowlock AS r FORCE INDEX (PRIMARY) ON r.`key` = w.k
SET r.expires_at = UTC_TIMESTAMP(6) + INTERVAL w.d MICROSECOND
WHERE r.owner = w.o AND r.token = w.t AND r.placement = @placement AND r.expires_at > UTC_TIMESTAMP(6)

-- name: cas-renew-look
-- JSON array as for cas-renew: the rows that still name this owner and token, and the µs left of
-- their leases
SELECT j.n, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), r.expires_at) AS remaining,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) AS clock
FROM JSON_TABLE(?, '$[*]' COLUMNS (n FOR ORDINALITY, k VARCHAR(510) PATH '$.k',
  o CHAR(32) PATH '$.o', t BIGINT PATH '$.t')) AS j
STRAIGHT_JOIN rowlock AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
WHERE r.owner = UNHEX(j.o) AND r.token = j.t AND r.placement = @placement

-- name: cas-fence
-- key, owner, token. As fence.
UPDATE rowlock SET fenced_by = CONNECTION_ID(), fenced_token = token,
  acquired_at = acquired_at + INTERVAL 1 MICROSECOND
WHERE `key` = ? AND owner = ? AND token = ? AND placement = @placement

-- name: cas-floor
-- bucket
SELECT floor FROM rowlock_floor WHERE bucket = ?

-- name: cas-dead
-- keys as a JSON array, retention: the highest token of those that are dead, or -1
SELECT COALESCE(MAX(r.token), -1)
FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$')) AS j
STRAIGHT_JOIN rowlock AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
WHERE r.placement = @placement AND r.token BETWEEN 0 AND @last_token - 1
  AND r.expires_at <= UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND

-- name: cas-reap
-- keys as a JSON array, retention, floor
/*M! SET STATEMENT innodb_lock_wait_timeout = 0 FOR */ DELETE r
FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$')) AS j
STRAIGHT_JOIN rowlock AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
WHERE r.placement = @placement AND r.expires_at <= UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND AND r.token <= ?

-- name: cas-drop-dead
-- key, waiter, retention
DELETE FROM rowlock_queue
WHERE `key` = ? AND waiter = ? AND alive_until <= UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND
