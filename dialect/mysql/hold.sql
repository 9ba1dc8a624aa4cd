-- Rows that transactions lock, for MySQL and MariaDB. The section names are the same in every
-- dialect that has holds.

-- name: write-lock
-- Nothing, because rows are locked one by one.

-- name: hold-begin
-- Nothing, because the first statement begins a transaction in a session without autocommit. If the
-- server has rolled a transaction back by itself and kept the session, hold-lock then locks the row
-- again, or finds that another transaction has it.

-- name: hold-end
ROLLBACK

-- name: hold-lock
-- key. No row: there is none, or another transaction has it. The transaction that has it gets it
-- again, which proves that it still has it.
SELECT 1 FROM rowlock_hold WHERE `key` = ? FOR UPDATE SKIP LOCKED

-- name: hold-make
-- keys as a JSON array, in order. A consistent read sees the rows that exist, because the insert
-- would wait for a transaction that has them locked. If two insert at once, one gets error 1062,
-- which no server logs.
INSERT INTO rowlock_hold (`key`, made_at)
SELECT UNHEX(j.k), UTC_TIMESTAMP(6)
  FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$')) AS j
WHERE NOT EXISTS (SELECT 1 FROM rowlock_hold AS h WHERE h.`key` = UNHEX(j.k))

-- name: hold-free
-- keys as a JSON array. Returns those whose row no transaction has locked.
SELECT h.`key` FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$')) AS j
STRAIGHT_JOIN rowlock_hold AS h FORCE INDEX (PRIMARY) ON h.`key` = UNHEX(j.k)
/*M! LOCK IN SHARE MODE */ /*!80000 FOR SHARE OF h */ SKIP LOCKED

-- name: hold-evict
-- key, owner, token. SKIP LOCKED, because the previous holder may be inside a fencing transaction.
UPDATE rowlock SET owner = NULL, note = '', expires_at = UTC_TIMESTAMP(6)
WHERE `key` = (SELECT k FROM (SELECT `key` AS k FROM rowlock
  WHERE `key` = ? AND owner = ? AND token = ? AND placement = @placement FOR UPDATE SKIP LOCKED) AS d)

-- name: hold-table
rowlock_hold

-- name: hold-dead
-- after, number of rows to read, retention in µs, that number again. As dead: the result always has
-- the last row that was read, from which the walk goes on.
SELECT `key`, dead FROM (
  SELECT `key`, made_at <= UTC_TIMESTAMP(6) - INTERVAL p.retention MICROSECOND
           AND NOT EXISTS (SELECT 1 FROM rowlock AS r WHERE r.`key` = page.`key`) AS dead,
         ROW_NUMBER() OVER (ORDER BY `key`) AS n
  FROM (SELECT `key`, made_at FROM rowlock_hold WHERE `key` > ? ORDER BY `key` LIMIT ?) AS page,
       (SELECT ? AS retention) AS p
) AS w WHERE dead OR n = ? ORDER BY `key`

-- name: hold-drop
-- keys as a JSON array. A row that no transaction has locked carries no information: the next taker
-- makes it again.
DELETE h FROM (SELECT r.`key` AS k
        FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$')) AS j
        STRAIGHT_JOIN rowlock_hold AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
        LIMIT 9223372036854775807 FOR UPDATE /*!80000 OF r */ SKIP LOCKED) AS mine
STRAIGHT_JOIN rowlock_hold AS h FORCE INDEX (PRIMARY) ON h.`key` = mine.k
