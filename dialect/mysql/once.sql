-- Effects by key, for MySQL and MariaDB. The statements run in the caller's transaction, whose
-- isolation is the caller's. No statement reads before it writes: under REPEATABLE READ a locking
-- read of an absent row locks the gap, and two transactions that insert into it would deadlock.

-- name: once-peek
-- tenant, key. For callers that do not wait, before the transaction, because once-claim on MySQL
-- cannot be told not to wait. Error 3572 says that another transaction has the row.
SELECT 1 FROM rowlock_once WHERE tenant = ? AND `key` = ? /*!80001 FOR SHARE NOWAIT */

-- name: once-claim
-- tenant, key, fingerprint, how long to keep it in µs. It waits for a transaction that has the key:
-- on MariaDB for the seconds that replace @wait, on MySQL until the client closes the connection,
-- because SET_VAR does not know this variable. Error 1062 says that the key has a row, and leaves a
-- shared lock on it.
/*M! SET STATEMENT innodb_lock_wait_timeout = @wait FOR */ INSERT INTO rowlock_once (tenant, `key`,
  fingerprint, made_at, expires_at)
VALUES (?, ?, ?, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND)

-- name: once-look
-- tenant, key. A locking read shows the latest row even to a transaction that has read before. It
-- does not wait, because the failed insert has locked the row. 5: the row has no expiry.
SELECT CASE WHEN expires_at > UTC_TIMESTAMP(6) THEN 2 WHEN expires_at IS NOT NULL THEN 3 ELSE 5 END
  AS state, fingerprint, result
FROM rowlock_once WHERE tenant = ? AND `key` = ? LOCK IN SHARE MODE

-- name: once-take
-- fingerprint, how long to keep it in µs, tenant, key. Of two transactions that have looked, one
-- meets the other's shared lock: a deadlock, after which the other begins again.
UPDATE rowlock_once FORCE INDEX (PRIMARY)
SET fingerprint = ?, result = NULL, made_at = UTC_TIMESTAMP(6),
  expires_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
WHERE tenant = ? AND `key` = ? AND expires_at <= UTC_TIMESTAMP(6)

-- name: once-store
-- result, tenant, key
UPDATE rowlock_once FORCE INDEX (PRIMARY) SET result = ? WHERE tenant = ? AND `key` = ?

-- name: once-confirm
-- tenant, key. The row was read as committed, and a read proves nothing about durability: see
-- confirm. made_at has no index.
UPDATE rowlock_once FORCE INDEX (PRIMARY) SET made_at = made_at + INTERVAL 1 MICROSECOND
  WHERE tenant = ? AND `key` = ?

-- name: once-count
-- tenant, limit: how many rows the tenant has, up to the limit
SELECT count(*) FROM (SELECT 1 FROM rowlock_once WHERE tenant = ? LIMIT ?) AS t

-- name: once-sweep
-- limit. The derived table leaves out what is locked; a DELETE alone would wait for it.
DELETE o FROM (SELECT tenant AS t, `key` AS k FROM rowlock_once FORCE INDEX (expires_at)
               WHERE expires_at <= UTC_TIMESTAMP(6) ORDER BY expires_at LIMIT ?
                 FOR UPDATE SKIP LOCKED) AS dead
STRAIGHT_JOIN rowlock_once AS o FORCE INDEX (PRIMARY) ON o.tenant = dead.t AND o.`key` = dead.k
