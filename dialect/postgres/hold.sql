-- Rows that transactions lock, for Postgres. The section names are the same in every dialect that
-- has holds.

-- name: write-lock
-- Nothing, because rows are locked one by one.

-- name: hold-begin
BEGIN

-- name: hold-end
-- The next transaction begins with the end of this one, which saves each lock a round trip. An idle
-- session then has an empty transaction open, which has no snapshot and does not hold back vacuum.
ROLLBACK AND CHAIN

-- name: hold-lock
-- $1 key. No row: there is none, or another transaction has it. The transaction that has it gets it
-- again, which proves that it still has it.
SELECT 1 FROM rowlock_hold WHERE key = $1 FOR UPDATE SKIP LOCKED

-- name: hold-make
-- $1 keys as an array, in order. It waits only for another that makes the same row at this
-- moment.
INSERT INTO rowlock_hold (key, made_at)
SELECT k, clock_timestamp() FROM unnest($1::bytea[]) AS w (k)
ON CONFLICT (key) DO NOTHING

-- name: hold-free
-- $1 keys as an array. Returns those whose row no transaction has locked. It does not write
-- to a row that is locked.
SELECT key FROM rowlock_hold WHERE key = ANY ($1::bytea[]) FOR SHARE SKIP LOCKED

-- name: hold-evict
-- $1 key, $2 owner, $3 token. SKIP LOCKED, because the previous holder may be inside a fencing
-- transaction.
UPDATE rowlock SET owner = NULL, note = '', expires_at = clock_timestamp()
WHERE key = (SELECT key FROM rowlock
  WHERE key = $1 AND owner = $2 AND token = $3 AND placement = @placement FOR NO KEY UPDATE SKIP LOCKED)

-- name: hold-table
rowlock_hold

-- name: hold-dead
-- $1 after, $2 number of rows to read, $3 retention in µs, $4 that number again. As dead: the
-- result always has the last row that was read, from which the walk goes on.
SELECT key, dead FROM (
  SELECT key, made_at <= clock_timestamp() - $3::bigint * interval '1 microsecond'
           AND NOT EXISTS (SELECT 1 FROM rowlock AS r WHERE r.key = page.key) AS dead,
         row_number() OVER (ORDER BY key) AS n
  FROM (SELECT key, made_at FROM rowlock_hold WHERE key > $1 ORDER BY key LIMIT $2::int) AS page
) AS w WHERE dead OR n = $4::int ORDER BY key

-- name: hold-drop
-- $1 keys as an array. A row that no transaction has locked carries no information: the
-- next taker makes it again.
DELETE FROM rowlock_hold
  WHERE key IN (SELECT key FROM rowlock_hold WHERE key = ANY ($1::bytea[])
  FOR UPDATE SKIP LOCKED)
