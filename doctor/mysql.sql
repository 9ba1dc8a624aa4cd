-- What a MySQL or MariaDB says about itself. The section names are the same for every database, of
-- which one may have no such thing, and no such section. Every statement only reads.

-- name: server
-- The version, and the user as a GRANT names it
SELECT VERSION(), CONCAT(QUOTE(SUBSTRING_INDEX(CURRENT_USER(), '@', 1)), '@',
  QUOTE(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)))

-- name: settings
-- The session's, and then the server's, each as name and value.
SHOW SESSION VARIABLES WHERE Variable_name IN ('version', 'version_comment', 'read_only',
  'super_read_only', 'innodb_read_only', 'wsrep_on', 'wsrep_cluster_name',
  'innodb_flush_log_at_trx_commit', 'sync_binlog', 'log_bin', 'innodb_doublewrite', 'binlog_format',
  'group_replication_group_name', 'group_replication_single_primary_mode',
  'transaction_isolation', 'tx_isolation', 'innodb_snapshot_isolation', 'autocommit',
  'innodb_lock_wait_timeout', 'wait_timeout', 'max_execution_time', 'max_statement_time',
  'idle_transaction_timeout', 'idle_write_transaction_timeout', 'max_connections',
  'max_user_connections', 'lower_case_table_names', 'transaction_read_only', 'tx_read_only') OR Variable_name LIKE 'rpl_semi_sync_%'

-- name: replicas
-- Each that reads this server's log. A user without PROCESS sees none.
SELECT coalesce(NULLIF(HOST, ''), 'a replica'), '', 0 FROM information_schema.PROCESSLIST
WHERE COMMAND IN ('Binlog Dump', 'Binlog Dump GTID')

-- name: replicas-timed
SELECT coalesce(NULLIF(PROCESSLIST_HOST, ''), 'a replica'), '', 0 FROM performance_schema.threads
WHERE PROCESSLIST_COMMAND IN ('Binlog Dump', 'Binlog Dump GTID')

-- name: status
SHOW GLOBAL STATUS WHERE Variable_name IN ('Threads_connected', 'wsrep_cluster_size',
  'Innodb_history_list_length') OR Variable_name LIKE 'Rpl_semi_sync_%'

-- name: rights
SHOW GRANTS

-- name: encryption
SHOW SESSION STATUS WHERE Variable_name IN ('Ssl_version', 'Ssl_cipher')

-- name: peer
-- From which host the server sees this session come
SELECT SUBSTRING_INDEX(USER(), '@', -1)

-- name: clock
-- In µs since 1970
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))

-- name: columns
-- Of each table whose name begins with the parameter: table, column with its type and whether it has a default
SELECT c.TABLE_NAME, CONCAT_WS(' ', c.COLUMN_NAME, c.DATA_TYPE, c.DATETIME_PRECISION,
  IF(c.COLUMN_DEFAULT <> 'NULL' OR c.EXTRA = 'auto_increment', 'with a default', NULL)) FROM information_schema.COLUMNS AS c
WHERE c.TABLE_SCHEMA = ?
  AND LEFT(c.TABLE_NAME, CHAR_LENGTH(?)) = ?

-- name: indexes
-- table, of which kind it is, columns
SELECT s.TABLE_NAME, CASE WHEN s.INDEX_NAME = 'PRIMARY' THEN 'primary' WHEN MIN(s.NON_UNIQUE) = 0 THEN 'unique' ELSE 'index' END,
  GROUP_CONCAT(s.COLUMN_NAME ORDER BY s.SEQ_IN_INDEX)
FROM information_schema.STATISTICS AS s
WHERE s.TABLE_SCHEMA = ?
  AND LEFT(s.TABLE_NAME, CHAR_LENGTH(?)) = ?
GROUP BY s.TABLE_NAME, s.INDEX_NAME

-- name: alterations
-- What was changed in the tables: kind, table, detail
SELECT 'storage', t.TABLE_NAME, t.ENGINE FROM information_schema.TABLES AS t
WHERE t.ENGINE <> 'InnoDB' AND t.TABLE_SCHEMA = ?
  AND LEFT(t.TABLE_NAME, CHAR_LENGTH(?)) = ?
UNION ALL
SELECT 'trigger', g.EVENT_OBJECT_TABLE, g.TRIGGER_NAME FROM information_schema.TRIGGERS AS g
WHERE g.EVENT_OBJECT_SCHEMA = ?
  AND LEFT(g.EVENT_OBJECT_TABLE, CHAR_LENGTH(?)) = ?

-- name: horizon
-- What keeps old versions from being removed: what, which, for how many seconds. Times of
-- transactions are the machine's local ones.
SELECT 'transaction', CONCAT('thread ', t.trx_mysql_thread_id),
  TIMESTAMPDIFF(SECOND, t.trx_started, CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', 'SYSTEM'))
FROM information_schema.INNODB_TRX AS t WHERE t.trx_mysql_thread_id <> CONNECTION_ID()
  AND t.trx_mysql_thread_id <> 0

-- name: horizon-timed
-- The same of MySQL, from what it times: INNODB_TRX and PROCESSLIST cannot be read (error 3854, seen
-- with 9.7) while a statement with binary parameters is under way. A transaction that has read
-- nothing yet is here too. Without performance_schema nothing is seen.
SELECT 'transaction', CONCAT('thread ', t.PROCESSLIST_ID), x.TIMER_WAIT DIV 1000000000000
FROM performance_schema.events_transactions_current AS x
JOIN performance_schema.threads AS t ON t.THREAD_ID = x.THREAD_ID
WHERE x.STATE = 'ACTIVE' AND t.PROCESSLIST_ID <> CONNECTION_ID()
UNION ALL
SELECT 'hidden', 'other sessions', 0 FROM DUAL
WHERE NOT EXISTS (SELECT 1 FROM performance_schema.threads WHERE PROCESSLIST_ID = CONNECTION_ID())
