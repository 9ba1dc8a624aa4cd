-- The wait queue, for MySQL and MariaDB. A ticket is live if it has a rank and alive_until has not
-- passed.

-- name: queue-beat
-- JSON array of {k, o, h, c, d}: hexadecimal key, waiter and note, head start and ttl in µs; keys
-- in order. The heartbeat of tickets that exist. An update alone cannot bring back a ticket that is
-- being used up at this moment.
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$.k', o CHAR(32) PATH '$.o',
  c VARCHAR(768) PATH '$.c', d BIGINT PATH '$.d')) AS j
STRAIGHT_JOIN rowlock_queue AS q FORCE INDEX (PRIMARY) ON q.`key` = UNHEX(j.k)
  AND q.waiter = UNHEX(j.o)
SET q.note = UNHEX(j.c), q.ttl = j.d, q.alive_until = UTC_TIMESTAMP(6) + INTERVAL j.d MICROSECOND
WHERE q.`rank` IS NOT NULL AND q.alive_until > UTC_TIMESTAMP(6)

-- name: queue-join
-- JSON array as for queue-beat: joins each waiter that has neither a live ticket nor the key. One
-- consistent read sees both, as of one moment. A ticket that is dead or used up begins anew.
INSERT INTO rowlock_queue (`key`, waiter, `rank`, note, ttl, alive_until)
SELECT UNHEX(j.k), UNHEX(j.o), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) - j.h,
  UNHEX(j.c), j.d,
       UTC_TIMESTAMP(6) + INTERVAL j.d MICROSECOND
FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$.k', o CHAR(32) PATH '$.o',
  h BIGINT PATH '$.h', c VARCHAR(768) PATH '$.c', d BIGINT PATH '$.d')) AS j
WHERE NOT EXISTS (SELECT 1 FROM rowlock_queue AS t FORCE INDEX (PRIMARY)
                  WHERE t.`key` = UNHEX(j.k) AND t.waiter = UNHEX(j.o) AND t.`rank` IS NOT NULL
                    AND t.alive_until > UTC_TIMESTAMP(6))
  AND NOT EXISTS (SELECT 1 FROM rowlock AS r FORCE INDEX (PRIMARY)
                  WHERE r.`key` = UNHEX(j.k) AND r.owner = UNHEX(j.o)
                    AND r.expires_at > UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE `rank` = VALUES(`rank`), note = VALUES(note), ttl = VALUES(ttl),
  alive_until = VALUES(alive_until)

-- name: queue-leave
-- JSON array of {k, o}: hexadecimal key and waiter, keys in order
DELETE q FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$.k', o CHAR(32) PATH '$.o')) AS j
STRAIGHT_JOIN rowlock_queue AS q FORCE INDEX (PRIMARY) ON q.`key` = UNHEX(j.k)
  AND q.waiter = UNHEX(j.o)

-- name: queue-head
-- key, and one waiter that must not be counted. A consistent read, which locks nothing and waits
-- for no lock.
SELECT waiter FROM rowlock_queue FORCE INDEX (PRIMARY)
WHERE `key` = ? AND waiter <> ? AND `rank` IS NOT NULL AND alive_until > UTC_TIMESTAMP(6)
ORDER BY `rank`, ticket LIMIT 1

-- name: places
-- JSON array of {k, o}: hexadecimal key and waiter. It numbers each queue once, for any number of
-- waiters.
WITH want AS (
  SELECT j.n, UNHEX(j.k) AS k, UNHEX(j.o) AS o
  FROM JSON_TABLE(?, '$[*]' COLUMNS (n FOR ORDINALITY, k VARCHAR(510) PATH '$.k',
    o CHAR(32) PATH '$.o')) AS j
), line AS (
  SELECT q.`key`, q.waiter, ROW_NUMBER() OVER (PARTITION BY q.`key`
    ORDER BY q.`rank`, q.ticket) - 1 AS ahead
  FROM (SELECT DISTINCT k FROM want) AS w
    STRAIGHT_JOIN rowlock_queue AS q FORCE INDEX (PRIMARY) ON q.`key` = w.k
  WHERE q.`rank` IS NOT NULL AND q.alive_until > UTC_TIMESTAMP(6)
)
SELECT w.n,
       CASE WHEN r.placement <> @placement THEN 4
            WHEN r.owner = w.o AND r.expires_at > UTC_TIMESTAMP(6) THEN 1
            WHEN r.owner IS NOT NULL AND r.expires_at > UTC_TIMESTAMP(6) THEN 0
            ELSE 2 END AS state,
       q.waiter IS NOT NULL AS waits, COALESCE(r.token, 0) AS token, COALESCE(LEFT(r.note, 384), '') AS note,
       COALESCE(TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), r.expires_at), 0) AS remaining,
       COALESCE(q.ahead, 0) AS ahead
FROM want AS w
LEFT JOIN rowlock AS r FORCE INDEX (PRIMARY) ON r.`key` = w.k
LEFT JOIN line AS q ON q.`key` = w.k AND q.waiter = w.o

-- name: claim-update
-- owner, note, ttl in µs, key, key, key. As acquire-update, if the queue is empty. The owner's own
-- ticket counts too, because only claim-ticket uses it up.
/*M! SET STATEMENT innodb_lock_wait_timeout = 0 FOR */ UPDATE rowlock FORCE INDEX (PRIMARY)
SET token = LAST_INSERT_ID(GREATEST(token, @era) + 1), owner = ?, note = ?, acquired_at = UTC_TIMESTAMP(6),
  expires_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
WHERE `key` >= ? AND `key` < CONCAT(?, 0x00) AND placement = @placement AND owner IS NULL
  AND token BETWEEN 0 AND @last_token - 1
  AND NOT EXISTS (SELECT 1 FROM rowlock_queue AS q FORCE INDEX (PRIMARY)
                  WHERE q.`key` = ? AND q.`rank` IS NOT NULL AND q.alive_until > UTC_TIMESTAMP(6))
LIMIT 1

-- name: claim-ticket
-- key, owner twice, note, ttl in µs. As acquire-expired, for an owner whose ticket is first. One
-- statement takes the row and then the ticket, which it uses up as pass does. It changes nothing if
-- the ticket is dead by now.
UPDATE (SELECT `key` AS k FROM rowlock
        WHERE `key` = ? AND placement = @placement AND (owner IS NULL OR expires_at <= UTC_TIMESTAMP(6))
          AND token BETWEEN 0 AND @last_token - 1
        LIMIT 1 FOR UPDATE SKIP LOCKED) AS free
STRAIGHT_JOIN rowlock AS r FORCE INDEX (PRIMARY) ON r.`key` = free.k
STRAIGHT_JOIN rowlock_queue AS q FORCE INDEX (PRIMARY) ON q.`key` = r.`key` AND q.waiter = ?
SET r.token = LAST_INSERT_ID(GREATEST(r.token, @era) + 1), r.owner = ?, r.note = ?,
  r.acquired_at = UTC_TIMESTAMP(6),
    r.expires_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND, q.`rank` = NULL,
      q.alive_until = UTC_TIMESTAMP(6)
WHERE q.`rank` IS NOT NULL AND q.alive_until > UTC_TIMESTAMP(6)

-- name: claim-make
-- key, bucket, key. As acquire-insert, but the row gets no owner, and its first token is not
-- granted yet.
INSERT INTO rowlock (`key`, owner, token, acquired_at, expires_at, placement)
SELECT ?, NULL, f.floor, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), @placement
FROM rowlock_floor AS f WHERE f.bucket = ? AND f.floor < @last_token
  AND NOT EXISTS (SELECT 1 FROM rowlock AS r WHERE r.`key` = ?)
LOCK IN SHARE MODE

-- name: pass
-- waiter, key, owner, token, or 0 for any token of this owner. One statement takes the row and then
-- the ticket, which it uses up: without rank it is never served again, even before it is deleted.
-- It changes nothing if the waiter has left meanwhile. The token comes back as the statement's
-- insert id.
UPDATE rowlock AS r FORCE INDEX (PRIMARY)
STRAIGHT_JOIN rowlock_queue AS q FORCE INDEX (PRIMARY) ON q.`key` = r.`key` AND q.waiter = ?
SET r.token = LAST_INSERT_ID(GREATEST(r.token, @era) + 1), r.owner = q.waiter, r.note = q.note,
  r.acquired_at = UTC_TIMESTAMP(6),
    r.expires_at = UTC_TIMESTAMP(6) + INTERVAL q.ttl MICROSECOND, q.`rank` = NULL,
      q.alive_until = UTC_TIMESTAMP(6)
WHERE r.`key` = ? AND r.owner = ? AND ? IN (r.token, 0) AND r.placement = @placement AND r.token BETWEEN 0 AND @last_token - 1
  AND q.`rank` IS NOT NULL AND q.alive_until > UTC_TIMESTAMP(6)

-- name: queue-dead
-- key of the last, that again, its waiter; retention in µs, limit. Returns the next dead tickets. A
-- comparison of pairs would not use the index.
SELECT `key`, waiter FROM rowlock_queue FORCE INDEX (PRIMARY)
WHERE `key` >= ? AND (`key` > ? OR waiter > ?)
  AND alive_until <= UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND
ORDER BY `key`, waiter LIMIT ?

-- name: queue-reap
-- JSON array of {k, o}: hexadecimal key and waiter, keys in order; retention in µs
DELETE q FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$.k', o CHAR(32) PATH '$.o')) AS j
STRAIGHT_JOIN rowlock_queue AS q FORCE INDEX (PRIMARY) ON q.`key` = UNHEX(j.k)
  AND q.waiter = UNHEX(j.o)
WHERE q.alive_until <= UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND
