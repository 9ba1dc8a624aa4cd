-- The registrations of waiters, for MySQL and MariaDB. The section names are the same in every
-- dialect.

-- name: register
-- process, note, how long in µs, keys as a JSON array, in order. The note is as in Postgres. It
-- decides nothing: wake asks who holds the user lock by which it finds the session. ON DUPLICATE KEY
-- UPDATE, which the rows of locks must avoid, does no harm here, because no count of rows is used.
INSERT INTO rowlock_queue (`key`, waiter, note, alive_until)
SELECT w.k, w.waiter, w.note, w.until
FROM (SELECT UNHEX(j.k) AS k, ? AS waiter, ? AS note,
        UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND AS until
      FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$')) AS j) AS w
ON DUPLICATE KEY UPDATE alive_until = w.until, note = w.note

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

-- name: listen-as
-- names as a JSON array. A session that listens holds a user lock, and its name is the session's
-- address. This takes the first name that is free, and returns its position. The server evaluates
-- GET_LOCK row by row and ends at the LIMIT, so that one lock is taken.
SELECT j.n FROM JSON_TABLE(?, '$[*]' COLUMNS (n FOR ORDINALITY, k VARCHAR(64) PATH '$')) AS j
WHERE GET_LOCK(j.k, 0) = 1 LIMIT 1

-- name: listener
-- name. Returns the session that listens under it, as KILL finds it, or 0.
SELECT COALESCE(IS_USED_LOCK(?), 0)

-- name: unlisten
-- name
SELECT RELEASE_LOCK(?)

-- name: listen
-- name, door, seconds. Waits until KILL QUERY ends it, and returns 2 then (MariaDB) or error 1317
-- (MySQL), or 0 after that time. It waits for a lock that another session has, and does not SLEEP:
-- all SLEEPs of a MariaDB server share a mutex, for which a KILL tries up to 2 s. 1: the session has
-- got the door's lock. -1: the lock of this name is not this session's. -2: the server has become a
-- replica, where no process releases a key.
SELECT CASE WHEN NOT (IS_USED_LOCK(?) <=> CONNECTION_ID()) THEN -1 WHEN @@global.read_only THEN -2
  ELSE COALESCE(GET_LOCK(?, ?), 2) END

-- name: listeners
-- names as a JSON array. Returns the positions of those under which a session listens.
SELECT j.n FROM JSON_TABLE(?, '$[*]' COLUMNS (n FOR ORDINALITY, k VARCHAR(64) PATH '$')) AS j
WHERE IS_USED_LOCK(j.k) IS NOT NULL

-- name: wake
-- channel, process, channel, process, keys as a JSON array. Returns the process to wake for each key,
-- or nothing: of those that wait and listen, the next by owner, or the first of all. A process listens
-- from the moment its session has the user lock.
SELECT COALESCE(
  (SELECT q.waiter FROM rowlock_queue AS q
   WHERE IS_USED_LOCK(CONCAT(?, '_', HEX(SUBSTRING(q.waiter, 1, 8)))) IS NOT NULL
     AND q.waiter > ? AND q.`key` = UNHEX(j.k) AND q.`rank` IS NULL
     AND q.alive_until > UTC_TIMESTAMP(6)
   ORDER BY q.`key`, q.waiter LIMIT 1),
  (SELECT q.waiter FROM rowlock_queue AS q
   WHERE IS_USED_LOCK(CONCAT(?, '_', HEX(SUBSTRING(q.waiter, 1, 8)))) IS NOT NULL
     AND q.waiter < ? AND q.`key` = UNHEX(j.k) AND q.`rank` IS NULL
     AND q.alive_until > UTC_TIMESTAMP(6)
   ORDER BY q.`key`, q.waiter LIMIT 1), _binary '')
FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$')) AS j
