-- Statements around a migration, for MySQL and MariaDB. The section names are the same in every
-- dialect.

-- name: exists
-- schema, table, a column of it or none
SELECT EXISTS (SELECT 1 FROM information_schema.columns
WHERE table_schema = ? AND table_name = ? AND ? IN ('', column_name))

-- name: begin
-- A CREATE TABLE commits by itself, as does every statement, unless autocommit is off: then this
-- ends what came before, whose snapshot would be older than the lock.
START TRANSACTION

-- name: lock
-- The lock is the server's, and these tables' alone: a name has 64 bytes at most.
SELECT GET_LOCK(SHA2('rowlock_meta', 224), 10) <=> 1

-- name: blockers
-- schema, table names. The session that migrates, and of those that use a table the oldest.
SELECT GROUP_CONCAT(DISTINCT blocker SEPARATOR ', ') FROM (
  SELECT CONCAT('session ', t.processlist_id, ' of ', t.processlist_user, '@', t.processlist_host)
    AS blocker
  FROM performance_schema.threads AS t
  LEFT JOIN performance_schema.metadata_locks AS m ON m.owner_thread_id = t.thread_id
    AND m.object_schema = ? AND m.object_name LIKE ? AND m.lock_status = 'GRANTED'
  LEFT JOIN performance_schema.events_transactions_current AS e ON e.thread_id = t.thread_id
  WHERE t.processlist_id = IS_USED_LOCK(SHA2('rowlock_meta', 224))
    OR m.owner_thread_id IS NOT NULL AND t.processlist_id <> CONNECTION_ID()
  ORDER BY COALESCE(e.timer_wait, 0) DESC LIMIT 3) AS oldest

-- name: oldest
-- The same where performance_schema is off, as MariaDB's is: any transaction may be the reason.
SELECT GROUP_CONCAT(blocker SEPARATOR ', ') FROM (
  SELECT CONCAT('one of the oldest transactions: session ', trx_mysql_thread_id, ' since ',
    trx_started) AS blocker
  FROM information_schema.innodb_trx
  WHERE trx_mysql_thread_id <> CONNECTION_ID() AND ? <> ?
  ORDER BY trx_started LIMIT 3) AS oldest

-- name: lock-tables
-- Nothing is granted between a look at the tables and their end: each DROP commits by itself.
LOCK TABLES @tables WRITE

-- name: guard-members
SELECT count(*) FROM rowlock_member WHERE expires_at > UTC_TIMESTAMP(6) AND reader_group <> x'00000000000000000000000000000000'

-- name: keep-tokens
-- All buckets have the largest token of any key: only Go finds the bucket of a key.
UPDATE rowlock_floor SET floor = GREATEST(floor, (SELECT COALESCE(MAX(token), 0) FROM rowlock))

-- name: sessions
-- As far as the user may see them. MySQL cannot read the table of information_schema while a
-- statement of any session is not utf8mb3 (error 3854).
SELECT count(*) FROM /*!80022 performance_schema.processlist */ /*M! information_schema.processlist */
WHERE id <> CONNECTION_ID() AND db = DATABASE()

-- name: commit
COMMIT

-- name: rollback
ROLLBACK

-- name: unlock
SELECT RELEASE_LOCK(SHA2('rowlock_meta', 224)) <=> 1
