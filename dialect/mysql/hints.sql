-- The registrations of waiters, for MySQL and MariaDB. The section names are the same in every
-- dialect.

-- name: register
-- process, how long in µs, keys as a JSON array, in order. ON DUPLICATE KEY UPDATE, which the rows
-- of locks must avoid, does no harm here, because rowlock does not use the count of rows.
INSERT INTO rowlock_queue (`key`, waiter, alive_until)
SELECT w.k, w.waiter, w.until
FROM (SELECT UNHEX(j.k) AS k, ? AS waiter, UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND AS until
      FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$')) AS j) AS w
ON DUPLICATE KEY UPDATE alive_until = w.until

-- name: unregister
-- keys as a JSON array, in order, process
DELETE q FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$')) AS j
STRAIGHT_JOIN rowlock_queue AS q FORCE INDEX (PRIMARY) ON q.`key` = UNHEX(j.k) AND q.waiter = ?
WHERE q.`rank` IS NULL

-- name: awaited
-- process, keys as a JSON array
SELECT EXISTS (SELECT 1 FROM rowlock_queue AS q
               WHERE q.`key` = UNHEX(j.k) AND q.waiter <> ? AND q.alive_until > UTC_TIMESTAMP(6))
                 AS awaited
FROM JSON_TABLE(?, '$[*]' COLUMNS (n FOR ORDINALITY, k VARCHAR(510) PATH '$')) AS j ORDER BY j.n

-- name: waiting
-- keys as a JSON array. It counts all, not 100 at most as elsewhere: a derived table cannot refer
-- to j before MySQL 8.0.14, and not in MariaDB.
SELECT least(100, (SELECT count(*) FROM rowlock_queue AS q
                   WHERE q.`key` = UNHEX(j.k) AND q.`rank` IS NULL
                     AND q.alive_until > UTC_TIMESTAMP(6)))
FROM JSON_TABLE(?, '$[*]' COLUMNS (n FOR ORDINALITY, k VARCHAR(510) PATH '$')) AS j ORDER BY j.n
