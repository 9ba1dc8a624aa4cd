-- name: session-id
SELECT CONNECTION_ID()

-- name: session-ids
-- Every user sees his own. MySQL's information_schema.PROCESSLIST cannot be read (error 3854) while
-- any session's statement has a text that is not utf8mb3: with each binary parameter of ours.
SHOW PROCESSLIST

-- name: late-lease
-- Replaces @late for a key that one owner holds.
r.expires_at <= UTC_TIMESTAMP(6)

-- name: late-any
-- Replaces @late for an operator, who waits for a transaction whatever the lease.
1 = 1

-- name: await-expired
-- key. The statement waits for at most innodb_lock_wait_timeout.
SELECT 1 FROM rowlock AS r
  WHERE r.`key` = ? AND r.placement = @placement AND r.owner IS NOT NULL AND @late
  FOR UPDATE /*!80000 OF r */

-- name: evict-mysql
-- waiter's session, key. Returns the session that has the row for which the waiter
-- waits. Another waiter before it is left out, because its lock is not granted. A prepared
-- transaction has no session any more: its id is 0. INNODB_TRX cannot be read (error 3854, seen
-- with 9.7) while a statement with binary parameters is under way, as ours are.
SELECT COALESCE(t.PROCESSLIST_ID, 0), COALESCE(t.PROCESSLIST_USER, ''),
  COALESCE(t.PROCESSLIST_HOST, ''), COALESCE(MAX(x.TIMER_WAIT) DIV 1000000, t.PROCESSLIST_TIME * 1000000, 0),
  COALESCE(t.PROCESSLIST_USER = SUBSTRING_INDEX(USER(), '@', 1), 0), 0, ''
FROM performance_schema.threads AS w
STRAIGHT_JOIN performance_schema.data_lock_waits AS d ON d.REQUESTING_THREAD_ID = w.THREAD_ID
STRAIGHT_JOIN performance_schema.data_locks AS l ON l.ENGINE_LOCK_ID = d.BLOCKING_ENGINE_LOCK_ID
  AND l.LOCK_STATUS = 'GRANTED'
LEFT JOIN performance_schema.threads AS t ON t.THREAD_ID = d.BLOCKING_THREAD_ID
LEFT JOIN performance_schema.events_transactions_current AS x ON x.THREAD_ID = t.THREAD_ID
  AND x.STATE = 'ACTIVE'
WHERE w.PROCESSLIST_ID = ? AND NOT t.THREAD_ID <=> w.THREAD_ID
  AND EXISTS (SELECT 1 FROM rowlock AS r
    WHERE r.`key` = ? AND r.placement = @placement AND r.owner IS NOT NULL AND @late)
GROUP BY t.PROCESSLIST_ID, t.PROCESSLIST_USER, t.PROCESSLIST_HOST, t.PROCESSLIST_TIME

-- name: evict-mariadb
-- as evict-mysql. A lock for which its transaction still waits is the one it has requested. What has
-- only read has the number 0: it is told if as many block as have locked rows at all. The tables may
-- be old: a wait lasts 1 s, and the age is as it began. Times are cut to seconds, the system's.
SELECT DISTINCT t.trx_mysql_thread_id, COALESCE(p.USER, ''), COALESCE(p.HOST, ''),
  GREATEST(TIMESTAMPDIFF(MICROSECOND, t.trx_started, w.trx_wait_started) - 1000000, 0),
  COALESCE(p.USER = SUBSTRING_INDEX(USER(), '@', 1), 0), 0, ''
FROM information_schema.INNODB_TRX AS w
STRAIGHT_JOIN information_schema.INNODB_LOCK_WAITS AS d ON d.requesting_trx_id = w.trx_id
  AND d.requested_lock_id = w.trx_requested_lock_id
STRAIGHT_JOIN information_schema.INNODB_TRX AS t ON t.trx_id = d.blocking_trx_id
LEFT JOIN information_schema.PROCESSLIST AS p ON p.ID = t.trx_mysql_thread_id
WHERE w.trx_mysql_thread_id = ? AND w.trx_wait_started >= CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', 'SYSTEM') - INTERVAL 2 SECOND
  AND (t.trx_requested_lock_id IS NULL OR t.trx_requested_lock_id <> d.blocking_lock_id)
  AND (t.trx_id <> 0 OR t.trx_rows_locked > 0 AND (SELECT COUNT(*) FROM information_schema.INNODB_TRX
    WHERE trx_id = 0 AND trx_rows_locked > 0) = (SELECT COUNT(*) FROM information_schema.INNODB_LOCK_WAITS AS b
    WHERE b.requesting_trx_id = w.trx_id AND b.blocking_trx_id = 0))
  AND EXISTS (SELECT 1 FROM rowlock AS r
    WHERE r.`key` = ? AND r.placement = @placement AND r.owner IS NOT NULL AND @late)

-- name: may-evict-mariadb
-- Read alone, because the server does not refuse what the optimizer leaves out of evict-mariadb.
SELECT (SELECT COUNT(*) FROM information_schema.INNODB_TRX)
  + (SELECT COUNT(*) FROM information_schema.INNODB_LOCK_WAITS)
