-- Every statement as the server gets it.
-- Written by: go test ./dialect -run Golden -update

-- dialect/mysql/cas.sql: cas-setup
SELECT /* rowlock cas-setup */ IF(VERSION() LIKE '%MariaDB%', 0, 2000)

-- dialect/mysql/cas.sql: cas-look
SELECT /* rowlock cas-look */ CASE WHEN placement <> 0 THEN 4
            WHEN owner = ? AND expires_at > UTC_TIMESTAMP(6) THEN 7
            WHEN owner IS NOT NULL AND expires_at > UTC_TIMESTAMP(6) THEN 0
            WHEN token NOT BETWEEN 0 AND 9223372036853727231 - 1 THEN 3
            WHEN owner IS NOT NULL THEN 5
            ELSE 2 END AS state,
       token, LEFT(note, 384), TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at) AS remaining,
       owner, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', expires_at) AS expires
FROM `rowlock` WHERE `key` = ?

-- dialect/mysql/cas.sql: cas-take-free
UPDATE /* rowlock cas-take-free */ `rowlock`
SET owner = ?, note = ?, expires_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND,
  acquired_at = UTC_TIMESTAMP(6), token = GREATEST(? - 1, @era) + 1
WHERE `key` = ? AND placement = 0 AND token = ? AND owner IS NULL

-- dialect/mysql/cas.sql: cas-take
/*M! SET STATEMENT innodb_lock_wait_timeout = 0 FOR */ UPDATE /* rowlock cas-take */ `rowlock`
SET owner = ?, note = ?, expires_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND,
  acquired_at = UTC_TIMESTAMP(6), token = GREATEST(? - 1, @era) + 1
WHERE `key` = ? AND placement = 0 AND token = ? AND owner = ?
  AND TIMESTAMPDIFF(MICROSECOND, '1970-01-01', expires_at) = ?
  AND expires_at <= UTC_TIMESTAMP(6)

-- dialect/mysql/cas.sql: cas-insert
INSERT /* rowlock cas-insert */ INTO `rowlock` (`key`, owner, note, token, acquired_at, expires_at, placement)
SELECT ?, ?, ?, GREATEST(f.floor, @era) + 1, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND, 0
FROM `rowlock_floor` AS f WHERE f.bucket = ? AND f.floor < 9223372036853727231 - 1

-- dialect/mysql/cas.sql: cas-made
SELECT /* rowlock cas-made */ r.token, f.floor FROM `rowlock` AS r, `rowlock_floor` AS f WHERE f.bucket = ? AND r.`key` = ?

-- dialect/mysql/cas.sql: cas-raise
UPDATE /* rowlock cas-raise */ `rowlock` SET token = GREATEST(? - 1, @era) + 1 WHERE `key` = ?

-- dialect/mysql/cas.sql: cas-renew
/*M! SET STATEMENT innodb_lock_wait_timeout = 0 FOR */ UPDATE /* rowlock cas-renew */
  (SELECT UNHEX(j.k) AS k, UNHEX(j.o) AS o, j.t, j.d
   FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$.k', o CHAR(32) PATH '$.o',
     t BIGINT PATH '$.t', d BIGINT PATH '$.d')) AS j
   LIMIT 9223372036854775807) AS w
STRAIGHT_JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = w.k
SET r.expires_at = UTC_TIMESTAMP(6) + INTERVAL w.d MICROSECOND
WHERE r.owner = w.o AND r.token = w.t AND r.placement = 0 AND r.expires_at > UTC_TIMESTAMP(6)

-- dialect/mysql/cas.sql: cas-renew-look
SELECT /* rowlock cas-renew-look */ j.n, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), r.expires_at) AS remaining,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) AS clock
FROM JSON_TABLE(?, '$[*]' COLUMNS (n FOR ORDINALITY, k VARCHAR(510) PATH '$.k',
  o CHAR(32) PATH '$.o', t BIGINT PATH '$.t')) AS j
STRAIGHT_JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
WHERE r.owner = UNHEX(j.o) AND r.token = j.t AND r.placement = 0

-- dialect/mysql/cas.sql: cas-fence
UPDATE /* rowlock cas-fence */ `rowlock` SET fenced_by = CONNECTION_ID(), fenced_token = token,
  acquired_at = acquired_at + INTERVAL 1 MICROSECOND
WHERE `key` = ? AND owner = ? AND token = ? AND placement = 0

-- dialect/mysql/cas.sql: cas-floor
SELECT /* rowlock cas-floor */ floor FROM `rowlock_floor` WHERE bucket = ?

-- dialect/mysql/cas.sql: cas-dead
SELECT /* rowlock cas-dead */ COALESCE(MAX(r.token), -1)
FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$')) AS j
STRAIGHT_JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
WHERE r.placement = 0 AND r.token BETWEEN 0 AND 9223372036853727231 - 1
  AND r.expires_at <= UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND

-- dialect/mysql/cas.sql: cas-reap
/*M! SET STATEMENT innodb_lock_wait_timeout = 0 FOR */ DELETE /* rowlock cas-reap */ r
FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$')) AS j
STRAIGHT_JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
WHERE r.placement = 0 AND r.expires_at <= UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND AND r.token <= ?

-- dialect/mysql/cas.sql: cas-drop-dead
DELETE /* rowlock cas-drop-dead */ FROM `rowlock_queue`
WHERE `key` = ? AND waiter = ? AND alive_until <= UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND

-- dialect/mysql/doctor.sql: doctor-expired
SELECT /* rowlock doctor-expired */ `key`, LEFT(note, 384), token,
  TIMESTAMPDIFF(MICROSECOND, expires_at, UTC_TIMESTAMP(6)) AS age
FROM `rowlock`
WHERE placement = 0 AND owner IS NOT NULL AND expires_at <= UTC_TIMESTAMP(6)
  AND INSTR(note, CHAR(11 USING ascii)) = 0 LIMIT ?

-- dialect/mysql/doctor.sql: doctor-left
SELECT /* rowlock doctor-left */ count(*), CAST(coalesce(sum(CASE WHEN age > ? THEN 1 ELSE 0 END), 0) AS SIGNED),
  CAST(coalesce(max(age), 0) AS SIGNED)
FROM (SELECT TIMESTAMPDIFF(MICROSECOND, @column, UTC_TIMESTAMP(6)) AS age
  FROM @table WHERE @column <= UTC_TIMESTAMP(6) LIMIT ?) AS d

-- dialect/mysql/doctor.sql: doctor-waits
SELECT /* rowlock doctor-waits */ w.caller, h.caller AS holder, w.`key`, LEFT(w.note, 384), w.process,
  TIMESTAMPDIFF(MICROSECOND, w.since, UTC_TIMESTAMP(6)) AS waited
FROM `rowlock_wait` AS w
JOIN `rowlock` AS r ON r.`key` = w.`key` AND r.placement = 0
  AND r.owner IS NOT NULL AND r.expires_at > UTC_TIMESTAMP(6) AND (r.token = w.awaits
    OR r.token = -w.awaits AND r.expires_at < '9999-01-01 00:00:00')
JOIN `rowlock_wait` AS h ON h.`key` = r.`key` AND h.token = r.token AND h.process = w.process
  AND h.alive_until > UTC_TIMESTAMP(6)
WHERE w.token = 0 AND w.alive_until > UTC_TIMESTAMP(6) LIMIT ?

-- dialect/mysql/doctor.sql: doctor-bad
SELECT /* rowlock doctor-bad */ @key, what FROM (
  SELECT @key, CASE @tests END AS what FROM @table
) AS b WHERE what IS NOT NULL LIMIT ?

-- dialect/mysql/doctor.sql: doctor-bad-bytes
(LENGTH(@column) NOT @bounds)

-- dialect/mysql/doctor.sql: doctor-bad-number
(@column IS NULL OR @column NOT BETWEEN @bounds)

-- dialect/mysql/doctor.sql: doctor-bad-time
(TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), @column) IS NULL)

-- dialect/mysql/doctor.sql: doctor-bad-note
(@column IS NULL OR LENGTH(@column) > 384)

-- dialect/mysql/doctor.sql: doctor-bad-far
(@column > UTC_TIMESTAMP(6) + INTERVAL @bounds DAY)

-- dialect/mysql/doctor.sql: doctor-bad-lease
(owner IS NOT NULL AND @column <> '9999-01-01 00:00:00' AND @column > UTC_TIMESTAMP(6) + INTERVAL @bounds DAY)

-- dialect/mysql/era.sql: era-session
SET /* rowlock era-session */ @rowlock_history = (SELECT CONCAT('era/', @@server_uuid, '/',
  UNIX_TIMESTAMP() - (SELECT CAST(VARIABLE_VALUE AS SIGNED)
    FROM performance_schema.global_status WHERE VARIABLE_NAME = 'Uptime'), '/',
  COALESCE((SELECT UNIX_TIMESTAMP(t.CREATE_TIME) FROM information_schema.TABLES AS t
    WHERE t.TABLE_SCHEMA = COALESCE(NULLIF(?, ''), DATABASE()) AND t.TABLE_NAME = ?), '-')))

-- dialect/mysql/era.sql: era-session-mariadb
SET /* rowlock era-session-mariadb */ @rowlock_history = (SELECT CONCAT('era/', @@hostname, '/', @@port, '/', @@server_id, '/',
  UNIX_TIMESTAMP() - (SELECT CAST(VARIABLE_VALUE AS SIGNED)
    FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'Uptime'), '/',
  COALESCE((SELECT UNIX_TIMESTAMP(t.CREATE_TIME) FROM information_schema.TABLES AS t
    WHERE t.TABLE_SCHEMA = COALESCE(NULLIF(?, ''), DATABASE()) AND t.TABLE_NAME = ?), '-')))

-- dialect/mysql/era.sql: era-look
SELECT /* rowlock era-look */ @rowlock_history, COALESCE((SELECT MAX(start) FROM `rowlock_meta`), -1),
  (SELECT COUNT(*) FROM `rowlock_meta` WHERE name LIKE 'era/%'),
  COALESCE((SELECT name FROM `rowlock_meta` WHERE name LIKE 'era/%' ORDER BY start DESC LIMIT 1)
    = @rowlock_history, 0), CAST(@@global.read_only AS CHAR) NOT IN ('0', 'OFF'),
  (SELECT value FROM `rowlock_meta` WHERE name IN ('compatible_from', 'compatible_from/shared') ORDER BY length(value) DESC, value DESC LIMIT 1)

-- dialect/mysql/era.sql: era-make
INSERT /* rowlock era-make */ IGNORE INTO `rowlock_meta` (name, start, since) VALUES ('eras', 0, UTC_TIMESTAMP(6))

-- dialect/mysql/era.sql: era-lock
UPDATE /* rowlock era-lock */ `rowlock_meta` SET start = start WHERE name = 'eras'

-- dialect/mysql/era.sql: era-fresh
SELECT /* rowlock era-fresh */ NOT EXISTS (SELECT 1 FROM `rowlock`) AND (SELECT MAX(floor) FROM `rowlock_floor`) = 0
  AND (SELECT since FROM `rowlock_meta` WHERE name = 'eras') > UTC_TIMESTAMP(6) - INTERVAL 5 MINUTE

-- dialect/mysql/era.sql: era-clock
SELECT /* rowlock era-clock */ TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))

-- dialect/mysql/era.sql: era-write
INSERT /* rowlock era-write */ INTO `rowlock_meta` (name, start, since) VALUES (?, ?, UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE start = VALUES(start), since = VALUES(since)

-- dialect/mysql/era.sql: era-kept
SELECT /* rowlock era-kept */ start FROM `rowlock_meta` WHERE name LIKE 'era/%' ORDER BY start DESC LIMIT ?, 1

-- dialect/mysql/era.sql: era-drop
DELETE /* rowlock era-drop */ FROM `rowlock_meta` WHERE name LIKE 'era/%' AND start <= ?

-- dialect/mysql/evict.sql: session-id
SELECT /* rowlock session-id */ CONNECTION_ID()

-- dialect/mysql/evict.sql: session-ids
SHOW /* rowlock session-ids */ PROCESSLIST

-- dialect/mysql/evict.sql: late-lease
r.expires_at <= UTC_TIMESTAMP(6)

-- dialect/mysql/evict.sql: late-any
1 = 1

-- dialect/mysql/evict.sql: await-expired
SELECT /* rowlock await-expired */ 1 FROM `rowlock` AS r
  WHERE r.`key` = ? AND r.placement = 0 AND r.owner IS NOT NULL AND @late
  FOR UPDATE /*!80000 OF r */

-- dialect/mysql/evict.sql: evict-mysql
SELECT /* rowlock evict-mysql */ COALESCE(t.PROCESSLIST_ID, 0), COALESCE(t.PROCESSLIST_USER, ''),
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
  AND EXISTS (SELECT 1 FROM `rowlock` AS r
    WHERE r.`key` = ? AND r.placement = 0 AND r.owner IS NOT NULL AND @late)
GROUP BY t.PROCESSLIST_ID, t.PROCESSLIST_USER, t.PROCESSLIST_HOST, t.PROCESSLIST_TIME

-- dialect/mysql/evict.sql: evict-mariadb
SELECT /* rowlock evict-mariadb */ DISTINCT t.trx_mysql_thread_id, COALESCE(p.USER, ''), COALESCE(p.HOST, ''),
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
  AND EXISTS (SELECT 1 FROM `rowlock` AS r
    WHERE r.`key` = ? AND r.placement = 0 AND r.owner IS NOT NULL AND @late)

-- dialect/mysql/evict.sql: may-evict-mariadb
SELECT /* rowlock may-evict-mariadb */ (SELECT COUNT(*) FROM information_schema.INNODB_TRX)
  + (SELECT COUNT(*) FROM information_schema.INNODB_LOCK_WAITS)

-- dialect/mysql/force.sql: force-lock
SELECT /* rowlock force-lock */ owner, token, LEFT(note, 384) FROM `rowlock` WHERE `key` = ? AND placement = 0 AND owner IS NOT NULL
FOR UPDATE

-- dialect/mysql/force.sql: force-placement
SELECT /* rowlock force-placement */ COUNT(*) FROM `rowlock` WHERE `key` = ? AND placement <> 0

-- dialect/mysql/force.sql: force-end
UPDATE /* rowlock force-end */ `rowlock` SET owner = NULL, note = '', token = LEAST(?, 9223372036853727231),
  expires_at = UTC_TIMESTAMP(6)
WHERE `key` = ? AND owner = ? AND token = ? AND placement = 0

-- dialect/mysql/force.sql: force-lock-bad
SELECT /* rowlock force-lock-bad */ `key` FROM `rowlock` WHERE `key` = ? FOR UPDATE

-- dialect/mysql/force.sql: force-repair
UPDATE /* rowlock force-repair */ `rowlock` SET owner = NULL, note = '', token = ?, acquired_at = UTC_TIMESTAMP(6),
  expires_at = UTC_TIMESTAMP(6), placement = 0
WHERE `key` = ? AND (placement = 0 OR placement IS NULL OR placement < -1)

-- dialect/mysql/force.sql: force-tickets
DELETE /* rowlock force-tickets */ FROM `rowlock_queue`
WHERE `key` = ? AND (alive_until IS NULL
  OR TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), alive_until) IS NULL
  OR alive_until > UTC_TIMESTAMP(6) + INTERVAL 1 DAY)

-- dialect/mysql/force.sql: force-record
INSERT /* rowlock force-record */ INTO `rowlock_forced` (`key`, `at`, id, actor, reason, asked, owner, token, note, raised)
SELECT r.`key`, UTC_TIMESTAMP(6), ?, CONCAT(?, X'09', CURRENT_USER()), ?, ?, ?, ?, ?, r.token
FROM `rowlock` AS r WHERE r.`key` = ?

-- dialect/mysql/force.sql: force-find
SELECT /* rowlock force-find */ `key`, TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', `at`), id, LEFT(actor, 384), LEFT(reason, 1000), asked, owner,
  token, LEFT(note, 384), raised
FROM `rowlock_forced` WHERE `key` = ? AND id = ?

-- dialect/mysql/force.sql: force-confirm
UPDATE /* rowlock force-confirm */ `rowlock` SET acquired_at = acquired_at + INTERVAL 1 MICROSECOND WHERE `key` = ?

-- dialect/mysql/force.sql: force-list
SELECT /* rowlock force-list */ `key`, TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', `at`), id, LEFT(actor, 384), LEFT(reason, 1000), asked, owner,
  token, LEFT(note, 384), raised
FROM `rowlock_forced`
WHERE LEFT(`key`, ?) = ? AND (`at`, raised, id) < (TIMESTAMPADD(MICROSECOND, ?, '1970-01-01 00:00:00.000000'), ?, ?)
ORDER BY `at` DESC, raised DESC, id DESC LIMIT ?

-- dialect/mysql/force.sql: force-list-key
SELECT /* rowlock force-list-key */ `key`, TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', `at`), id, LEFT(actor, 384), LEFT(reason, 1000), asked, owner,
  token, LEFT(note, 384), raised
FROM `rowlock_forced`
WHERE `key` = ? AND (`at`, raised, id) < (TIMESTAMPADD(MICROSECOND, ?, '1970-01-01 00:00:00.000000'), ?, ?)
ORDER BY `at` DESC, raised DESC, id DESC LIMIT ?

-- dialect/mysql/graph.sql: wait-note
INSERT /* rowlock wait-note */ INTO `rowlock_wait` (caller, `key`, token, awaits, process, note, since, alive_until)
SELECT UNHEX(j.o), UNHEX(j.k), GREATEST(j.t, 0),
  CASE WHEN j.t > 0 THEN 0 ELSE COALESCE((SELECT CASE j.t WHEN 0 THEN r.token ELSE -r.token END
    FROM `rowlock` AS r WHERE r.`key` = UNHEX(j.k)), 0) END, ?, ?, UTC_TIMESTAMP(6) - INTERVAL j.d MICROSECOND,
  UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$.k', o CHAR(32) PATH '$.o',
  t BIGINT PATH '$.t', d BIGINT PATH '$.d')) AS j
ON DUPLICATE KEY UPDATE `rowlock_wait`.awaits = VALUES(awaits), `rowlock_wait`.alive_until = LEAST(VALUES(alive_until),
  `rowlock_wait`.since
    + INTERVAL TIMESTAMPDIFF(MICROSECOND, VALUES(since), VALUES(alive_until)) MICROSECOND)

-- dialect/mysql/graph.sql: wait-erase
DELETE /* rowlock wait-erase */ e FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$.k', o CHAR(32) PATH '$.o',
  t BIGINT PATH '$.t')) AS j
STRAIGHT_JOIN `rowlock_wait` AS e FORCE INDEX (PRIMARY)
  ON e.caller = UNHEX(j.o) AND e.`key` = UNHEX(j.k) AND e.token = GREATEST(j.t, 0)

-- dialect/mysql/graph.sql: wait-edges
WITH /* rowlock wait-edges */ RECURSIVE reached AS (
  SELECT CAST(UNHEX(j.c) AS BINARY(16)) AS caller
  FROM JSON_TABLE(?, '$[*]' COLUMNS (c CHAR(32) PATH '$')) AS j
  UNION
  SELECT h.caller FROM reached AS f
  JOIN `rowlock_wait` AS w ON w.caller = f.caller AND w.token = 0
    AND w.alive_until > UTC_TIMESTAMP(6)
  JOIN `rowlock` AS r ON r.`key` = w.`key` AND r.placement = 0
    AND r.owner IS NOT NULL AND r.expires_at > UTC_TIMESTAMP(6) AND (r.token = w.awaits
      OR r.token = -w.awaits AND r.expires_at < '9999-01-01 00:00:00')
  JOIN `rowlock_wait` AS h ON h.`key` = r.`key` AND h.token = r.token AND h.process = w.process
    AND h.alive_until > UTC_TIMESTAMP(6)
)
SELECT w.caller, h.caller AS holder, w.`key`, r.token, LEFT(w.note, 384),
  TIMESTAMPDIFF(MICROSECOND, '1970-01-01', w.since) AS since,
  TIMESTAMPDIFF(MICROSECOND, '1970-01-01', w.alive_until) AS expires,
  TIMESTAMPDIFF(MICROSECOND, w.since, UTC_TIMESTAMP(6)) AS waited
FROM reached AS f
JOIN `rowlock_wait` AS w ON w.caller = f.caller AND w.token = 0 AND w.process = ?
  AND w.alive_until > UTC_TIMESTAMP(6)
JOIN `rowlock` AS r ON r.`key` = w.`key` AND r.placement = 0
  AND r.owner IS NOT NULL AND r.expires_at > UTC_TIMESTAMP(6) AND (r.token = w.awaits
    OR r.token = -w.awaits AND r.expires_at < '9999-01-01 00:00:00')
JOIN `rowlock_wait` AS h ON h.`key` = r.`key` AND h.token = r.token AND h.process = w.process
  AND h.alive_until > UTC_TIMESTAMP(6)
LIMIT ?

-- dialect/mysql/graph.sql: wait-dead
SELECT /* rowlock wait-dead */ EXISTS (SELECT 1 FROM `rowlock_wait`
  WHERE alive_until <= UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND)

-- dialect/mysql/graph.sql: wait-reap
DELETE /* rowlock wait-reap */ FROM `rowlock_wait`
WHERE alive_until <= UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND

-- dialect/mysql/group.sql: group-take
UPDATE /* rowlock group-take */ `rowlock` FORCE INDEX (PRIMARY)
SET token = LAST_INSERT_ID(token + 1), owner = ?, note = ?, acquired_at = UTC_TIMESTAMP(6),
  expires_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
WHERE `key` >= ? AND `key` < CONCAT(?, 0x00) AND placement = 0
  AND (owner IS NULL OR expires_at <= UTC_TIMESTAMP(6))
  AND token >= ? AND token < ? AND token % 1099511627776 < 1099511627775 AND token < 9223372036853727231
LIMIT 1

-- dialect/mysql/group.sql: group-look
SELECT /* rowlock group-look */ placement, token, COALESCE(owner = ?, 0) AND expires_at > UTC_TIMESTAMP(6) AS mine,
       owner IS NOT NULL AND expires_at > UTC_TIMESTAMP(6) AS held, LEFT(note, 384),
       TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at) AS remaining
FROM `rowlock` WHERE `key` = ?

-- dialect/mysql/group.sql: group-confirm
UPDATE /* rowlock group-confirm */ `rowlock` SET acquired_at = UTC_TIMESTAMP(6)
WHERE `key` = ? AND owner = ? AND token = ? AND placement = 0 AND expires_at > UTC_TIMESTAMP(6)

-- dialect/mysql/group.sql: group-raise
INSERT /* rowlock group-raise */ INTO `rowlock` (`key`, placement, token, note, acquired_at, expires_at)
  VALUES (?, ?, ?, '', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE placement = IF(token < VALUES(token), VALUES(placement), placement),
  owner = IF(token < VALUES(token), NULL, owner),
  note = IF(token < VALUES(token), '', note),
    expires_at = IF(token < VALUES(token), VALUES(expires_at), expires_at),
  token = GREATEST(token, VALUES(token))

-- dialect/mysql/group.sql: group-seal
UPDATE /* rowlock group-seal */ `rowlock` SET placement = -2, owner = NULL, note = '', expires_at = UTC_TIMESTAMP(6)
WHERE `key` = ? AND owner = ? AND token = ? AND placement = 0

-- dialect/mysql/group.sql: group-record
SELECT /* rowlock group-record */ placement, token FROM `rowlock` WHERE `key` = ?

-- dialect/mysql/group.sql: group-records
SELECT /* rowlock group-records */ `key`, placement, token FROM `rowlock`
WHERE `key` > ? AND (placement = 0 AND token >= 1099511627776 OR placement = -2)
ORDER BY `key` LIMIT ?

-- dialect/mysql/group.sql: group-arrived
SELECT /* rowlock group-arrived */ COUNT(*) FROM `rowlock_queue` WHERE `key` = ? AND waiter = ?

-- dialect/mysql/group.sql: group-self
SELECT /* rowlock group-self */ m.member_state, m.member_role,
       (SELECT COUNT(*) FROM performance_schema.replication_group_members) AS members,
       (SELECT COUNT(*) FROM performance_schema.replication_group_members
         WHERE member_state <> 'UNREACHABLE') AS reachable
FROM performance_schema.replication_group_members AS m WHERE m.member_id = @@server_uuid

-- dialect/mysql/group.sql: group-settings
SHOW /* rowlock group-settings */ GLOBAL VARIABLES
  WHERE Variable_name IN ('group_replication_group_name', 'group_replication_single_primary_mode',
  'group_replication_exit_state_action', 'innodb_flush_log_at_trx_commit', 'sync_binlog',
    'binlog_error_action')

-- dialect/mysql/hints.sql: register
INSERT /* rowlock register */ INTO `rowlock_queue` (`key`, waiter, note, alive_until)
SELECT w.k, w.waiter, w.note, w.until
FROM (SELECT UNHEX(j.k) AS k, ? AS waiter, ? AS note,
        UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND AS until
      FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$')) AS j) AS w
ON DUPLICATE KEY UPDATE alive_until = w.until, note = w.note

-- dialect/mysql/hints.sql: unregister
DELETE /* rowlock unregister */ q FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$')) AS j
STRAIGHT_JOIN `rowlock_queue` AS q FORCE INDEX (PRIMARY) ON q.`key` = UNHEX(j.k) AND q.waiter = ?
WHERE q.`rank` IS NULL

-- dialect/mysql/hints.sql: awaited
SELECT /* rowlock awaited */ EXISTS (SELECT 1 FROM `rowlock_queue` AS q
               WHERE q.`key` = UNHEX(j.k) AND q.waiter <> ? AND q.alive_until > UTC_TIMESTAMP(6))
                 AS awaited
FROM JSON_TABLE(?, '$[*]' COLUMNS (n FOR ORDINALITY, k VARCHAR(510) PATH '$')) AS j ORDER BY j.n

-- dialect/mysql/hints.sql: waiting
SELECT /* rowlock waiting */ least(100, (SELECT count(*) FROM `rowlock_queue` AS q
                   WHERE q.`key` = UNHEX(j.k) AND q.`rank` IS NULL
                     AND q.alive_until > UTC_TIMESTAMP(6)))
FROM JSON_TABLE(?, '$[*]' COLUMNS (n FOR ORDINALITY, k VARCHAR(510) PATH '$')) AS j ORDER BY j.n

-- dialect/mysql/hints.sql: listen-as
SELECT /* rowlock listen-as */ j.n FROM JSON_TABLE(?, '$[*]' COLUMNS (n FOR ORDINALITY, k VARCHAR(64) PATH '$')) AS j
WHERE GET_LOCK(j.k, 0) = 1 LIMIT 1

-- dialect/mysql/hints.sql: listener
SELECT /* rowlock listener */ COALESCE(IS_USED_LOCK(?), 0)

-- dialect/mysql/hints.sql: unlisten
SELECT /* rowlock unlisten */ RELEASE_LOCK(?)

-- dialect/mysql/hints.sql: listen
SELECT /* rowlock listen */ CASE WHEN NOT (IS_USED_LOCK(?) <=> CONNECTION_ID()) THEN -1 WHEN @@global.read_only THEN -2
  ELSE COALESCE(GET_LOCK(?, ?), 2) END

-- dialect/mysql/hints.sql: listeners
SELECT /* rowlock listeners */ j.n FROM JSON_TABLE(?, '$[*]' COLUMNS (n FOR ORDINALITY, k VARCHAR(64) PATH '$')) AS j
WHERE IS_USED_LOCK(j.k) IS NOT NULL

-- dialect/mysql/hints.sql: wake
SELECT /* rowlock wake */ COALESCE(
  (SELECT q.waiter FROM `rowlock_queue` AS q
   WHERE IS_USED_LOCK(CONCAT(?, '_', HEX(SUBSTRING(q.waiter, 1, 8)))) IS NOT NULL
     AND q.waiter > ? AND q.`key` = UNHEX(j.k) AND q.`rank` IS NULL
     AND q.alive_until > UTC_TIMESTAMP(6)
   ORDER BY q.`key`, q.waiter LIMIT 1),
  (SELECT q.waiter FROM `rowlock_queue` AS q
   WHERE IS_USED_LOCK(CONCAT(?, '_', HEX(SUBSTRING(q.waiter, 1, 8)))) IS NOT NULL
     AND q.waiter < ? AND q.`key` = UNHEX(j.k) AND q.`rank` IS NULL
     AND q.alive_until > UTC_TIMESTAMP(6)
   ORDER BY q.`key`, q.waiter LIMIT 1), _binary '')
FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$')) AS j

-- dialect/mysql/hold.sql: write-lock

-- dialect/mysql/hold.sql: hold-begin

-- dialect/mysql/hold.sql: hold-end
ROLLBACK /* rowlock hold-end */

-- dialect/mysql/hold.sql: hold-lock
SELECT /* rowlock hold-lock */ 1 FROM `rowlock_hold` WHERE `key` = ? FOR UPDATE SKIP LOCKED

-- dialect/mysql/hold.sql: hold-make
INSERT /* rowlock hold-make */ INTO `rowlock_hold` (`key`, made_at)
SELECT UNHEX(j.k), UTC_TIMESTAMP(6)
  FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$')) AS j
WHERE NOT EXISTS (SELECT 1 FROM `rowlock_hold` AS h WHERE h.`key` = UNHEX(j.k))

-- dialect/mysql/hold.sql: hold-free
SELECT /* rowlock hold-free */ h.`key` FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$')) AS j
STRAIGHT_JOIN `rowlock_hold` AS h FORCE INDEX (PRIMARY) ON h.`key` = UNHEX(j.k)
/*M! LOCK IN SHARE MODE */ /*!80000 FOR SHARE OF h */ SKIP LOCKED

-- dialect/mysql/hold.sql: hold-evict
UPDATE /* rowlock hold-evict */ `rowlock` SET owner = NULL, note = '', expires_at = UTC_TIMESTAMP(6)
WHERE `key` = (SELECT k FROM (SELECT `key` AS k FROM `rowlock`
  WHERE `key` = ? AND owner = ? AND token = ? AND placement = 0 FOR UPDATE SKIP LOCKED) AS d)

-- dialect/mysql/hold.sql: hold-table
`rowlock_hold`

-- dialect/mysql/hold.sql: hold-dead
SELECT /* rowlock hold-dead */ `key`, dead FROM (
  SELECT `key`, made_at <= UTC_TIMESTAMP(6) - INTERVAL p.retention MICROSECOND
           AND NOT EXISTS (SELECT 1 FROM `rowlock` AS r WHERE r.`key` = page.`key`) AS dead,
         ROW_NUMBER() OVER (ORDER BY `key`) AS n
  FROM (SELECT `key`, made_at FROM `rowlock_hold` WHERE `key` > ? ORDER BY `key` LIMIT ?) AS page,
       (SELECT ? AS retention) AS p
) AS w WHERE dead OR n = ? ORDER BY `key`

-- dialect/mysql/hold.sql: hold-drop
DELETE /* rowlock hold-drop */ h FROM (SELECT r.`key` AS k
        FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$')) AS j
        STRAIGHT_JOIN `rowlock_hold` AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
        LIMIT 9223372036854775807 FOR UPDATE /*!80000 OF r */ SKIP LOCKED) AS mine
STRAIGHT_JOIN `rowlock_hold` AS h FORCE INDEX (PRIMARY) ON h.`key` = mine.k

-- dialect/mysql/latch.sql: latch-look
SELECT /* rowlock latch-look */ l.id, l.generation, l.parties, l.state, l.ended,
  TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), l.expires_at) AS remaining,
  (SELECT COUNT(*) FROM `rowlock_party` AS p WHERE p.id = l.id AND p.phase = 0) AS counted,
  0 AS gone, 0 AS dead
FROM `rowlock_latch` AS l WHERE l.kind = ? AND l.`key` = ?

-- dialect/mysql/latch.sql: latch-make
INSERT /* rowlock latch-make */ INTO `rowlock_latch` (kind, `key`, id, generation, parties, made_at, expires_at)
VALUES (?, ?, ?, 1, ?, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND)
ON DUPLICATE KEY UPDATE generation = generation

-- dialect/mysql/latch.sql: latch-take
UPDATE /* rowlock latch-take */ `rowlock_latch`
SET id = ?, parties = ?, generation = generation + 1, state = 0, ended = 0,
  made_at = UTC_TIMESTAMP(6), expires_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
WHERE kind = ? AND `key` = ? AND expires_at <= UTC_TIMESTAMP(6)

-- dialect/mysql/latch.sql: latch-keep
UPDATE /* rowlock latch-keep */ `rowlock_latch`
SET made_at = made_at + INTERVAL 1 MICROSECOND,
  expires_at = GREATEST(expires_at, UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND)
WHERE kind = ? AND `key` = ? AND id = ? AND expires_at > UTC_TIMESTAMP(6)

-- dialect/mysql/latch.sql: latch-reset
UPDATE /* rowlock latch-reset */ `rowlock_latch`
SET id = ?, generation = generation + 1, ended = state, state = 0, made_at = UTC_TIMESTAMP(6),
  expires_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
WHERE kind = ? AND `key` = ? AND id = ? AND state >= ? AND expires_at > UTC_TIMESTAMP(6)

-- dialect/mysql/latch.sql: latch-count
INSERT /* rowlock latch-count */ INTO `rowlock_party` (id, phase, party, counted_at)
SELECT l.id, 0, ?, UTC_TIMESTAMP(6) FROM `rowlock_latch` AS l
WHERE l.kind = ? AND l.`key` = ? AND l.id = ? AND l.expires_at > UTC_TIMESTAMP(6)
ON DUPLICATE KEY UPDATE counted_at = counted_at + INTERVAL 1 MICROSECOND

-- dialect/mysql/latch.sql: latch-put
INSERT /* rowlock latch-put */ INTO `rowlock_party` (id, phase, party, counted_at)
VALUES (?, 0, ?, UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE counted_at = counted_at + INTERVAL 1 MICROSECOND

-- dialect/mysql/latch.sql: barrier-look
SELECT /* rowlock barrier-look */ l.id, l.generation, l.parties, l.state, l.ended,
  TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), l.expires_at) AS remaining,
  (SELECT COUNT(*) FROM `rowlock_party` AS p WHERE p.id = l.id AND p.phase = 0) AS counted,
  (SELECT COUNT(*) FROM `rowlock_party` AS p WHERE p.id = l.id AND p.phase = 1) AS gone,
  (SELECT COUNT(*) FROM `rowlock_party` AS p
   WHERE p.id = l.id AND p.phase = 0 AND p.alive_until <= UTC_TIMESTAMP(6)
     AND NOT EXISTS (SELECT 1 FROM `rowlock_party` AS g
                     WHERE g.id = p.id AND g.phase = 1 AND g.party = p.party)) AS dead
FROM `rowlock_latch` AS l WHERE l.kind = ? AND l.`key` = ?

-- dialect/mysql/latch.sql: barrier-enter
INSERT /* rowlock barrier-enter */ INTO `rowlock_party` (id, phase, party, counted_at, alive_until)
SELECT l.id, 0, ?, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
FROM `rowlock_latch` AS l
WHERE l.kind = ? AND l.`key` = ? AND l.id = ? AND l.state = 0 AND l.expires_at > UTC_TIMESTAMP(6)
ON DUPLICATE KEY UPDATE counted_at = counted_at + INTERVAL 1 MICROSECOND,
  alive_until = VALUES(alive_until)

-- dialect/mysql/latch.sql: barrier-beat
UPDATE /* rowlock barrier-beat */ `rowlock_party` AS p LEFT JOIN `rowlock_party` AS g ON g.id = p.id AND g.phase = 1 AND g.party = p.party
SET p.counted_at = p.counted_at + INTERVAL 1 MICROSECOND,
  p.alive_until = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
WHERE p.id = ? AND p.phase = 0 AND p.party = ? AND g.id IS NULL

-- dialect/mysql/latch.sql: barrier-leave
INSERT /* rowlock barrier-leave */ INTO `rowlock_party` (id, phase, party, counted_at)
SELECT l.id, 1, ?, UTC_TIMESTAMP(6) FROM `rowlock_latch` AS l
WHERE l.kind = ? AND l.`key` = ? AND l.id = ? AND l.state IN (1, 2)
  AND l.expires_at > UTC_TIMESTAMP(6)
  AND EXISTS (SELECT 1 FROM `rowlock_party` AS p
              WHERE p.id = l.id AND p.phase = 0 AND p.party = ?)
ON DUPLICATE KEY UPDATE counted_at = counted_at + INTERVAL 1 MICROSECOND

-- dialect/mysql/latch.sql: barrier-open
UPDATE /* rowlock barrier-open */ `rowlock_latch` AS l SET l.state = 1
WHERE l.kind = ? AND l.`key` = ? AND l.id = ? AND l.state = 0
  AND (SELECT COUNT(*) FROM `rowlock_party` AS p WHERE p.id = l.id AND p.phase = 0) >= l.parties
  AND NOT EXISTS (SELECT 1 FROM `rowlock_party` AS p
                  WHERE p.id = l.id AND p.phase = 0 AND p.alive_until <= UTC_TIMESTAMP(6))

-- dialect/mysql/latch.sql: barrier-done
UPDATE /* rowlock barrier-done */ `rowlock_latch` AS l SET l.state = 2
WHERE l.kind = ? AND l.`key` = ? AND l.id = ? AND l.state = 1
  AND NOT EXISTS (SELECT 1 FROM `rowlock_party` AS p
                  WHERE p.id = l.id AND p.phase = 0
                    AND NOT EXISTS (SELECT 1 FROM `rowlock_party` AS g
                                    WHERE g.id = p.id AND g.phase = 1 AND g.party = p.party))

-- dialect/mysql/latch.sql: barrier-break
UPDATE /* rowlock barrier-break */ `rowlock_latch` AS l SET l.state = 3
WHERE l.kind = ? AND l.`key` = ? AND l.id = ? AND l.state IN (0, 1)
  AND EXISTS (SELECT 1 FROM `rowlock_party` AS p
              WHERE p.id = l.id AND p.phase = 0 AND p.alive_until <= UTC_TIMESTAMP(6)
                AND NOT EXISTS (SELECT 1 FROM `rowlock_party` AS g
                                WHERE g.id = p.id AND g.phase = 1 AND g.party = p.party))

-- dialect/mysql/latch.sql: barrier-dead
SELECT /* rowlock barrier-dead */ p.party FROM `rowlock_party` AS p
WHERE p.id = ? AND p.phase = 0 AND p.alive_until <= UTC_TIMESTAMP(6)
  AND NOT EXISTS (SELECT 1 FROM `rowlock_party` AS g
                  WHERE g.id = p.id AND g.phase = 1 AND g.party = p.party)
ORDER BY p.alive_until, p.party LIMIT 1

-- dialect/mysql/latch.sql: latch-sweep
DELETE /* rowlock latch-sweep */ l FROM (SELECT kind AS n, `key` AS k FROM `rowlock_latch`
               WHERE expires_at <= UTC_TIMESTAMP(6) LIMIT ? FOR UPDATE SKIP LOCKED) AS dead
STRAIGHT_JOIN `rowlock_latch` AS l FORCE INDEX (PRIMARY) ON l.kind = dead.n AND l.`key` = dead.k

-- dialect/mysql/latch.sql: latch-next
SELECT /* rowlock latch-next */ p.id, EXISTS (SELECT 1 FROM `rowlock_latch` AS l WHERE l.id = p.id) AS live
FROM `rowlock_party` AS p FORCE INDEX (PRIMARY)
WHERE p.id > ? ORDER BY p.id LIMIT 1

-- dialect/mysql/latch.sql: latch-drop
DELETE /* rowlock latch-drop */ FROM `rowlock_party` WHERE id = ? LIMIT ?

-- dialect/mysql/limit.sql: limit-look
SELECT /* rowlock limit-look */ slots, peak, generation FROM `rowlock_limit` WHERE name = ?

-- dialect/mysql/limit.sql: limit-make
INSERT /* rowlock limit-make */ INTO `rowlock_limit` (name, slots, peak, generation) VALUES (?, ?, ?, 1)
ON DUPLICATE KEY UPDATE slots = slots

-- dialect/mysql/limit.sql: limit-resize
UPDATE /* rowlock limit-resize */ `rowlock_limit` SET slots = ?, peak = GREATEST(peak, ?), generation = generation + 1
WHERE name = ?

-- dialect/mysql/limit.sql: apply-any-within
UPDATE /* rowlock apply-any-within */ (SELECT d.*, COUNT(*) OVER () AS total
        FROM (SELECT j.n, r.`key` AS k, UNHEX(j.o) AS owner, UNHEX(j.c) AS note, j.d AS ttl
              FROM (SELECT @rowlock_done := ? AS batch) AS b
              STRAIGHT_JOIN (SELECT 1 FROM `rowlock_limit` WHERE name = ? AND generation = ? LIMIT 1
                LOCK IN SHARE MODE) AS g
              STRAIGHT_JOIN JSON_TABLE(?, '$[*]' COLUMNS (n FOR ORDINALITY,
                k VARCHAR(510) CHARACTER SET latin1 PATH '$[0]',
                t BIGINT PATH '$[2]', o VARCHAR(32) CHARACTER SET latin1 PATH '$[3]',
                c VARCHAR(768) CHARACTER SET latin1 PATH '$[4]', d BIGINT PATH '$[5]')) AS j
              STRAIGHT_JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
              WHERE r.placement = 0 AND r.token = j.t
                AND (r.owner IS NULL OR r.expires_at <= UTC_TIMESTAMP(6))
              LIMIT ? FOR UPDATE /*!80000 OF r */ SKIP LOCKED) AS d) AS mine
STRAIGHT_JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = mine.k AND mine.total = ?
SET r.owner = mine.owner, r.note = mine.note, r.token = GREATEST(r.token, @era) + 1,
  r.acquired_at = UTC_TIMESTAMP(6),
  r.expires_at = UTC_TIMESTAMP(6)
  + INTERVAL mine.ttl + 0 * LENGTH(@rowlock_done := CONCAT(@rowlock_done, ' ', mine.n))
    + 0 * LAST_INSERT_ID(mine.n) MICROSECOND

-- dialect/mysql/limit.sql: apply-within
UPDATE /* rowlock apply-within */ (SELECT j.n, r.`key` AS k, UNHEX(j.o) AS owner, UNHEX(j.c) AS note, j.d AS ttl
        FROM (SELECT @rowlock_done := ? AS batch) AS b
        STRAIGHT_JOIN (SELECT 1 FROM `rowlock_limit` WHERE name = ? AND generation = ? LIMIT 1
          LOCK IN SHARE MODE) AS g
        STRAIGHT_JOIN JSON_TABLE(?, '$[*]' COLUMNS (n FOR ORDINALITY,
          k VARCHAR(510) CHARACTER SET latin1 PATH '$[0]',
          f VARCHAR(32) CHARACTER SET latin1 PATH '$[1]',
          t BIGINT PATH '$[2]', o VARCHAR(32) CHARACTER SET latin1 PATH '$[3]',
          c VARCHAR(768) CHARACTER SET latin1 PATH '$[4]', d BIGINT PATH '$[5]')) AS j
        STRAIGHT_JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
        WHERE r.placement = 0 AND r.token = j.t AND r.token BETWEEN 0 AND 9223372036853727231 - 1
          AND r.owner = UNHEX(j.f)
        LIMIT 9223372036854775807 FOR UPDATE /*!80000 OF r */ SKIP LOCKED) AS mine
STRAIGHT_JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = mine.k
SET r.owner = mine.owner, r.note = mine.note, r.token = GREATEST(r.token, @era) + 1,
  r.acquired_at = UTC_TIMESTAMP(6),
  r.expires_at = UTC_TIMESTAMP(6)
  + INTERVAL mine.ttl + 0 * LENGTH(@rowlock_done := CONCAT(@rowlock_done, ' ', mine.n)) MICROSECOND

-- dialect/mysql/move.sql: depart
UPDATE /* rowlock depart */ `rowlock` SET placement = ?, token = ?, owner = NULL, note = '', expires_at = UTC_TIMESTAMP(6)
WHERE `key` = ? AND owner = ? AND token = ? AND placement = 0

-- dialect/mysql/move.sql: return
UPDATE /* rowlock return */ `rowlock` SET placement = 0, token = ?, owner = NULL, note = '', expires_at = UTC_TIMESTAMP(6)
WHERE `key` = ? AND placement = ? AND token >= ? AND token < ?

-- dialect/mysql/move.sql: recall
INSERT /* rowlock recall */ INTO `rowlock` (`key`, placement, token, note, acquired_at, expires_at)
SELECT p.k, p.h, IF(p.h = 0, GREATEST(f.floor, p.t), p.t), '', UTC_TIMESTAMP(6),
  UTC_TIMESTAMP(6)
FROM (SELECT CAST(? AS BINARY) AS k, CAST(? AS SIGNED) AS h, CAST(? AS SIGNED) AS t)
  AS p STRAIGHT_JOIN `rowlock_floor` AS f FORCE INDEX (PRIMARY) ON f.bucket = ?
WHERE p.h = 0 OR f.floor < p.t OR (SELECT COUNT(*) FROM `rowlock` AS r FORCE INDEX (PRIMARY)
  WHERE r.`key` = p.k) = 1
/*M! LOCK IN SHARE MODE */ /*!80000 FOR SHARE OF f */
ON DUPLICATE KEY UPDATE placement = IF(`rowlock`.token < p.t, p.h, `rowlock`.placement),
  owner = IF(`rowlock`.token < p.t, NULL, `rowlock`.owner),
  note = IF(`rowlock`.token < p.t, '', `rowlock`.note),
    expires_at = IF(`rowlock`.token < p.t, UTC_TIMESTAMP(6), `rowlock`.expires_at),
  token = GREATEST(`rowlock`.token, p.t)

-- dialect/mysql/move.sql: confirm-placement
UPDATE /* rowlock confirm-placement */ `rowlock` SET acquired_at = acquired_at + INTERVAL 1 MICROSECOND
  WHERE `key` = ? AND placement = ? AND token >= ? AND token < ?

-- dialect/mysql/move.sql: fence-at
SELECT /* rowlock fence-at */ token FROM `rowlock` WHERE `key` = ? AND placement = ? AND token BETWEEN ? AND ? FOR UPDATE

-- dialect/mysql/move.sql: fence-at-token
UPDATE /* rowlock fence-at-token */ `rowlock` SET token = ? WHERE `key` = ?

-- dialect/mysql/once.sql: once-peek
SELECT /* rowlock once-peek */ 1 FROM `rowlock_once` WHERE tenant = ? AND `key` = ? /*!80001 FOR SHARE NOWAIT */

-- dialect/mysql/once.sql: once-claim
/*M! SET STATEMENT innodb_lock_wait_timeout = @wait FOR */ INSERT /* rowlock once-claim */ INTO `rowlock_once` (tenant, `key`,
  fingerprint, made_at, expires_at)
VALUES (?, ?, ?, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND)

-- dialect/mysql/once.sql: once-look
SELECT /* rowlock once-look */ CASE WHEN expires_at > UTC_TIMESTAMP(6) THEN 2 WHEN expires_at IS NOT NULL THEN 3 ELSE 5 END
  AS state, fingerprint, result
FROM `rowlock_once` WHERE tenant = ? AND `key` = ? LOCK IN SHARE MODE

-- dialect/mysql/once.sql: once-take
UPDATE /* rowlock once-take */ `rowlock_once` FORCE INDEX (PRIMARY)
SET fingerprint = ?, result = NULL, made_at = UTC_TIMESTAMP(6),
  expires_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
WHERE tenant = ? AND `key` = ? AND expires_at <= UTC_TIMESTAMP(6)

-- dialect/mysql/once.sql: once-store
UPDATE /* rowlock once-store */ `rowlock_once` FORCE INDEX (PRIMARY) SET result = ? WHERE tenant = ? AND `key` = ?

-- dialect/mysql/once.sql: once-confirm
UPDATE /* rowlock once-confirm */ `rowlock_once` FORCE INDEX (PRIMARY) SET made_at = made_at + INTERVAL 1 MICROSECOND
  WHERE tenant = ? AND `key` = ?

-- dialect/mysql/once.sql: once-count
SELECT /* rowlock once-count */ count(*) FROM (SELECT 1 FROM `rowlock_once` WHERE tenant = ? LIMIT ?) AS t

-- dialect/mysql/once.sql: once-sweep
DELETE /* rowlock once-sweep */ o FROM (SELECT tenant AS t, `key` AS k FROM `rowlock_once` FORCE INDEX (expires_at)
               WHERE expires_at <= UTC_TIMESTAMP(6) ORDER BY expires_at LIMIT ?
                 FOR UPDATE SKIP LOCKED) AS dead
STRAIGHT_JOIN `rowlock_once` AS o FORCE INDEX (PRIMARY) ON o.tenant = dead.t AND o.`key` = dead.k

-- dialect/mysql/queue.sql: queue-beat
UPDATE /* rowlock queue-beat */ JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$.k', o CHAR(32) PATH '$.o',
  c VARCHAR(768) PATH '$.c', d BIGINT PATH '$.d')) AS j
STRAIGHT_JOIN `rowlock_queue` AS q FORCE INDEX (PRIMARY) ON q.`key` = UNHEX(j.k)
  AND q.waiter = UNHEX(j.o)
SET q.note = UNHEX(j.c), q.ttl = j.d, q.alive_until = UTC_TIMESTAMP(6) + INTERVAL j.d MICROSECOND
WHERE q.`rank` IS NOT NULL AND q.alive_until > UTC_TIMESTAMP(6)

-- dialect/mysql/queue.sql: queue-join
INSERT /* rowlock queue-join */ INTO `rowlock_queue` (`key`, waiter, `rank`, note, ttl, alive_until)
SELECT UNHEX(j.k), UNHEX(j.o), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) - j.h,
  UNHEX(j.c), j.d,
       UTC_TIMESTAMP(6) + INTERVAL j.d MICROSECOND
FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$.k', o CHAR(32) PATH '$.o',
  h BIGINT PATH '$.h', c VARCHAR(768) PATH '$.c', d BIGINT PATH '$.d')) AS j
WHERE NOT EXISTS (SELECT 1 FROM `rowlock_queue` AS t FORCE INDEX (PRIMARY)
                  WHERE t.`key` = UNHEX(j.k) AND t.waiter = UNHEX(j.o) AND t.`rank` IS NOT NULL
                    AND t.alive_until > UTC_TIMESTAMP(6))
  AND NOT EXISTS (SELECT 1 FROM `rowlock` AS r FORCE INDEX (PRIMARY)
                  WHERE r.`key` = UNHEX(j.k) AND r.owner = UNHEX(j.o)
                    AND r.expires_at > UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE `rank` = VALUES(`rank`), note = VALUES(note), ttl = VALUES(ttl),
  alive_until = VALUES(alive_until)

-- dialect/mysql/queue.sql: queue-leave
DELETE /* rowlock queue-leave */ q FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$.k', o CHAR(32) PATH '$.o')) AS j
STRAIGHT_JOIN `rowlock_queue` AS q FORCE INDEX (PRIMARY) ON q.`key` = UNHEX(j.k)
  AND q.waiter = UNHEX(j.o)

-- dialect/mysql/queue.sql: queue-head
SELECT /* rowlock queue-head */ waiter FROM `rowlock_queue` FORCE INDEX (PRIMARY)
WHERE `key` = ? AND waiter <> ? AND `rank` IS NOT NULL AND alive_until > UTC_TIMESTAMP(6)
ORDER BY `rank`, ticket LIMIT 1

-- dialect/mysql/queue.sql: places
WITH /* rowlock places */ want AS (
  SELECT j.n, UNHEX(j.k) AS k, UNHEX(j.o) AS o
  FROM JSON_TABLE(?, '$[*]' COLUMNS (n FOR ORDINALITY, k VARCHAR(510) PATH '$.k',
    o CHAR(32) PATH '$.o')) AS j
), line AS (
  SELECT q.`key`, q.waiter, ROW_NUMBER() OVER (PARTITION BY q.`key`
    ORDER BY q.`rank`, q.ticket) - 1 AS ahead
  FROM (SELECT DISTINCT k FROM want) AS w
    STRAIGHT_JOIN `rowlock_queue` AS q FORCE INDEX (PRIMARY) ON q.`key` = w.k
  WHERE q.`rank` IS NOT NULL AND q.alive_until > UTC_TIMESTAMP(6)
)
SELECT w.n,
       CASE WHEN r.placement <> 0 THEN 4
            WHEN r.owner = w.o AND r.expires_at > UTC_TIMESTAMP(6) THEN 1
            WHEN r.owner IS NOT NULL AND r.expires_at > UTC_TIMESTAMP(6) THEN 0
            ELSE 2 END AS state,
       q.waiter IS NOT NULL AS waits, COALESCE(r.token, 0) AS token, COALESCE(LEFT(r.note, 384), '') AS note,
       COALESCE(TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), r.expires_at), 0) AS remaining,
       COALESCE(q.ahead, 0) AS ahead
FROM want AS w
LEFT JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = w.k
LEFT JOIN line AS q ON q.`key` = w.k AND q.waiter = w.o

-- dialect/mysql/queue.sql: claim-update
/*M! SET STATEMENT innodb_lock_wait_timeout = 0 FOR */ UPDATE /* rowlock claim-update */ `rowlock` FORCE INDEX (PRIMARY)
SET token = LAST_INSERT_ID(GREATEST(token, @era) + 1), owner = ?, note = ?, acquired_at = UTC_TIMESTAMP(6),
  expires_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
WHERE `key` >= ? AND `key` < CONCAT(?, 0x00) AND placement = 0 AND owner IS NULL
  AND token BETWEEN 0 AND 9223372036853727231 - 1
  AND NOT EXISTS (SELECT 1 FROM `rowlock_queue` AS q FORCE INDEX (PRIMARY)
                  WHERE q.`key` = ? AND q.`rank` IS NOT NULL AND q.alive_until > UTC_TIMESTAMP(6))
LIMIT 1

-- dialect/mysql/queue.sql: claim-ticket
UPDATE /* rowlock claim-ticket */ (SELECT `key` AS k FROM `rowlock`
        WHERE `key` = ? AND placement = 0 AND (owner IS NULL OR expires_at <= UTC_TIMESTAMP(6))
          AND token BETWEEN 0 AND 9223372036853727231 - 1
        LIMIT 1 FOR UPDATE SKIP LOCKED) AS free
STRAIGHT_JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = free.k
STRAIGHT_JOIN `rowlock_queue` AS q FORCE INDEX (PRIMARY) ON q.`key` = r.`key` AND q.waiter = ?
SET r.token = LAST_INSERT_ID(GREATEST(r.token, @era) + 1), r.owner = ?, r.note = ?,
  r.acquired_at = UTC_TIMESTAMP(6),
    r.expires_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND, q.`rank` = NULL,
      q.alive_until = UTC_TIMESTAMP(6)
WHERE q.`rank` IS NOT NULL AND q.alive_until > UTC_TIMESTAMP(6)

-- dialect/mysql/queue.sql: claim-make
INSERT /* rowlock claim-make */ INTO `rowlock` (`key`, owner, token, acquired_at, expires_at, placement)
SELECT ?, NULL, f.floor, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), 0
FROM `rowlock_floor` AS f WHERE f.bucket = ? AND f.floor < 9223372036853727231
  AND NOT EXISTS (SELECT 1 FROM `rowlock` AS r WHERE r.`key` = ?)
LOCK IN SHARE MODE

-- dialect/mysql/queue.sql: pass
UPDATE /* rowlock pass */ `rowlock` AS r FORCE INDEX (PRIMARY)
STRAIGHT_JOIN `rowlock_queue` AS q FORCE INDEX (PRIMARY) ON q.`key` = r.`key` AND q.waiter = ?
SET r.token = LAST_INSERT_ID(GREATEST(r.token, @era) + 1), r.owner = q.waiter, r.note = q.note,
  r.acquired_at = UTC_TIMESTAMP(6),
    r.expires_at = UTC_TIMESTAMP(6) + INTERVAL q.ttl MICROSECOND, q.`rank` = NULL,
      q.alive_until = UTC_TIMESTAMP(6)
WHERE r.`key` = ? AND r.owner = ? AND ? IN (r.token, 0) AND r.placement = 0 AND r.token BETWEEN 0 AND 9223372036853727231 - 1
  AND q.`rank` IS NOT NULL AND q.alive_until > UTC_TIMESTAMP(6)

-- dialect/mysql/queue.sql: queue-dead
SELECT /* rowlock queue-dead */ `key`, waiter FROM `rowlock_queue` FORCE INDEX (PRIMARY)
WHERE `key` >= ? AND (`key` > ? OR waiter > ?)
  AND alive_until <= UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND
ORDER BY `key`, waiter LIMIT ?

-- dialect/mysql/queue.sql: queue-reap
DELETE /* rowlock queue-reap */ q FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$.k', o CHAR(32) PATH '$.o')) AS j
STRAIGHT_JOIN `rowlock_queue` AS q FORCE INDEX (PRIMARY) ON q.`key` = UNHEX(j.k)
  AND q.waiter = UNHEX(j.o)
WHERE q.alive_until <= UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND

-- dialect/mysql/shared.sql: share
INSERT /* rowlock share */ INTO `rowlock_member` (`key`, reader_group, owner, note, joined_at, expires_at)
SELECT r.`key`, r.owner, UNHEX(j.o), ?, UTC_TIMESTAMP(6),
  UTC_TIMESTAMP(6) + INTERVAL j.d + 0 * LAST_INSERT_ID(r.token) MICROSECOND
FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) CHARACTER SET latin1 PATH '$.k',
  o CHAR(32) CHARACTER SET latin1 PATH '$.o', t BIGINT PATH '$.t', d BIGINT PATH '$.d')) AS j
STRAIGHT_JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
WHERE r.placement = 0 AND r.owner IS NOT NULL AND r.expires_at = '9999-01-01 00:00:00'
  AND COALESCE((SELECT TIMESTAMPDIFF(MICROSECOND, MIN(w.joined_at), UTC_TIMESTAMP(6)) % 11000000 < 10000000
      FROM `rowlock_member` AS w WHERE w.`key` = r.`key` AND w.reader_group = UNHEX('00000000000000000000000000000000')
        AND w.expires_at > UTC_TIMESTAMP(6)), 0) = 0
/*M! LOCK IN SHARE MODE SKIP LOCKED */ /*!80000 FOR SHARE OF r SKIP LOCKED */

-- dialect/mysql/shared.sql: share-one
INSERT /* rowlock share-one */ INTO `rowlock_member` (`key`, reader_group, owner, note, joined_at, expires_at)
SELECT r.`key`, r.owner, ?, ?, UTC_TIMESTAMP(6),
  UTC_TIMESTAMP(6) + INTERVAL ? + 0 * LAST_INSERT_ID(r.token) MICROSECOND
FROM `rowlock` AS r FORCE INDEX (PRIMARY)
WHERE r.`key` = ? AND r.placement = 0 AND r.owner IS NOT NULL AND r.expires_at = '9999-01-01 00:00:00'
  AND COALESCE((SELECT TIMESTAMPDIFF(MICROSECOND, MIN(w.joined_at), UTC_TIMESTAMP(6)) % 11000000 < 10000000
      FROM `rowlock_member` AS w WHERE w.`key` = r.`key` AND w.reader_group = UNHEX('00000000000000000000000000000000')
        AND w.expires_at > UTC_TIMESTAMP(6)), 0) = 0
/*M! LOCK IN SHARE MODE SKIP LOCKED */ /*!80000 FOR SHARE OF r SKIP LOCKED */
ON DUPLICATE KEY UPDATE
  expires_at = GREATEST(VALUES(expires_at), `rowlock_member`.expires_at + INTERVAL 1 MICROSECOND)

-- dialect/mysql/shared.sql: member-look
SELECT /* rowlock member-look */ r.`key`,
  (SELECT COUNT(*) FROM `rowlock_member` AS m WHERE m.`key` = r.`key` AND m.reader_group = r.owner
    AND m.expires_at > UTC_TIMESTAMP(6)),
  COALESCE((SELECT TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), MAX(m.expires_at))
    FROM `rowlock_member` AS m WHERE m.`key` = r.`key` AND m.reader_group = r.owner), 0),
  COALESCE((SELECT LEFT(m.note, 384) FROM `rowlock_member` AS m WHERE m.`key` = r.`key` AND m.reader_group = r.owner
    ORDER BY m.expires_at DESC LIMIT 1), ''),
  COALESCE((SELECT TIMESTAMPDIFF(MICROSECOND, MIN(w.joined_at), UTC_TIMESTAMP(6)) % 11000000 < 10000000
    FROM `rowlock_member` AS w WHERE w.`key` = r.`key` AND w.reader_group = UNHEX('00000000000000000000000000000000')
      AND w.expires_at > UTC_TIMESTAMP(6)), 0)
FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) CHARACTER SET latin1 PATH '$')) AS j
STRAIGHT_JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
WHERE r.placement = 0 AND r.owner IS NOT NULL AND r.expires_at = '9999-01-01 00:00:00'

-- dialect/mysql/shared.sql: member-others
SELECT /* rowlock member-others */ r.`key`, EXISTS (SELECT 1 FROM `rowlock_member` AS w WHERE w.`key` = r.`key`
  AND w.reader_group = UNHEX('00000000000000000000000000000000') AND w.expires_at > UTC_TIMESTAMP(6))
FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) CHARACTER SET latin1 PATH '$')) AS j
STRAIGHT_JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
WHERE r.placement = 0 AND r.owner IS NOT NULL AND r.expires_at = '9999-01-01 00:00:00'
  AND (SELECT COUNT(*) FROM `rowlock_member` AS m FORCE INDEX (PRIMARY)
    WHERE m.`key` = r.`key` AND m.reader_group = r.owner AND m.expires_at > UTC_TIMESTAMP(6)) = 0

-- dialect/mysql/shared.sql: member-find
SELECT /* rowlock member-find */ m.`key`, m.owner, m.reader_group FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) CHARACTER SET latin1 PATH '$.k',
  o CHAR(32) CHARACTER SET latin1 PATH '$.o', t BIGINT PATH '$.t', d BIGINT PATH '$.d')) AS j
STRAIGHT_JOIN `rowlock_member` AS m FORCE INDEX (PRIMARY)
  ON m.`key` = UNHEX(j.k) AND m.owner = UNHEX(j.o)
WHERE m.reader_group <> UNHEX('00000000000000000000000000000000')

-- dialect/mysql/shared.sql: member-renew
UPDATE /* rowlock member-renew */ (SELECT m.`key` AS k, m.reader_group, m.owner, j.d AS ttl
        FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) CHARACTER SET latin1 PATH '$.k',
  o CHAR(32) CHARACTER SET latin1 PATH '$.o', t BIGINT PATH '$.t', d BIGINT PATH '$.d')) AS j
        STRAIGHT_JOIN `rowlock_member` AS m FORCE INDEX (PRIMARY) ON m.`key` = UNHEX(j.k)
          AND m.reader_group = UNHEX(CONCAT('726F776C6F636B54', LPAD(HEX(j.t), 16, '0')))
          AND m.owner = UNHEX(j.o)
        WHERE m.expires_at > UTC_TIMESTAMP(6)
        LIMIT 9223372036854775807 FOR UPDATE /*!80000 OF m */ SKIP LOCKED) AS mine
STRAIGHT_JOIN `rowlock_member` AS m FORCE INDEX (PRIMARY)
  ON m.`key` = mine.k AND m.reader_group = mine.reader_group AND m.owner = mine.owner
SET m.expires_at = UTC_TIMESTAMP(6) + INTERVAL mine.ttl MICROSECOND

-- dialect/mysql/shared.sql: member-left
SELECT /* rowlock member-left */ m.`key`, m.owner, m.reader_group, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), m.expires_at)
FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) CHARACTER SET latin1 PATH '$.k',
  o CHAR(32) CHARACTER SET latin1 PATH '$.o', t BIGINT PATH '$.t', d BIGINT PATH '$.d')) AS j
STRAIGHT_JOIN `rowlock_member` AS m FORCE INDEX (PRIMARY) ON m.`key` = UNHEX(j.k)
  AND m.reader_group = UNHEX(CONCAT('726F776C6F636B54', LPAD(HEX(j.t), 16, '0')))
  AND m.owner = UNHEX(j.o)

-- dialect/mysql/shared.sql: member-leave
DELETE /* rowlock member-leave */ m FROM (SELECT d.*, COUNT(*) OVER () AS n
        FROM (SELECT m.`key` AS k, m.reader_group, m.owner
              FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) CHARACTER SET latin1 PATH '$.k',
  o CHAR(32) CHARACTER SET latin1 PATH '$.o', t BIGINT PATH '$.t', d BIGINT PATH '$.d')) AS j
              STRAIGHT_JOIN `rowlock_member` AS m FORCE INDEX (PRIMARY) ON m.`key` = UNHEX(j.k)
                AND m.reader_group = UNHEX(CONCAT('726F776C6F636B54', LPAD(HEX(j.t), 16, '0')))
                AND m.owner = UNHEX(j.o)
              LIMIT 9223372036854775807 FOR UPDATE /*!80000 OF m */) AS d) AS mine
STRAIGHT_JOIN `rowlock_member` AS m FORCE INDEX (PRIMARY)
  ON m.`key` = mine.k AND m.reader_group = mine.reader_group AND m.owner = mine.owner AND mine.n = ?

-- dialect/mysql/shared.sql: member-leave-one
DELETE /* rowlock member-leave-one */ FROM `rowlock_member` WHERE `key` = ? AND reader_group = ? AND owner = ?

-- dialect/mysql/shared.sql: member-rest
SELECT /* rowlock member-rest */ 1 FROM `rowlock_member` FORCE INDEX (PRIMARY)
WHERE `key` = ? AND reader_group = ? AND expires_at > UTC_TIMESTAMP(6) LIMIT 1

-- dialect/mysql/shared.sql: member-leave-tx
DELETE /* rowlock member-leave-tx */ FROM `rowlock_member` WHERE `key` = ? AND reader_group = ? AND owner = ?

-- dialect/mysql/shared.sql: member-dead
SELECT /* rowlock member-dead */ `key`, owner, reader_group FROM `rowlock_member`
WHERE expires_at <= UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND LIMIT ?

-- dialect/mysql/shared.sql: intend
INSERT /* rowlock intend */ INTO `rowlock_member` (`key`, reader_group, owner, joined_at, expires_at)
SELECT UNHEX(j.k), UNHEX('00000000000000000000000000000000'), ?,
  UTC_TIMESTAMP() + INTERVAL 5 SECOND - INTERVAL (UNIX_TIMESTAMP() + 5) % 11 SECOND,
  UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) CHARACTER SET latin1 PATH '$')) AS j WHERE TRUE
ON DUPLICATE KEY UPDATE
  joined_at = IF(`rowlock_member`.expires_at > UTC_TIMESTAMP(6), `rowlock_member`.joined_at, VALUES(joined_at)),
  expires_at = VALUES(expires_at)

-- dialect/mysql/shared.sql: unintend
DELETE /* rowlock unintend */ m FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) CHARACTER SET latin1 PATH '$')) AS j
STRAIGHT_JOIN `rowlock_member` AS m FORCE INDEX (PRIMARY)
  ON m.`key` = UNHEX(j.k) AND m.reader_group = UNHEX('00000000000000000000000000000000') AND m.owner = ?

-- dialect/mysql/shared.sql: readers-lock
SELECT /* rowlock readers-lock */ owner FROM `rowlock`
WHERE `key` = ? AND placement = 0 AND owner IS NOT NULL AND expires_at = '9999-01-01 00:00:00'
FOR UPDATE SKIP LOCKED

-- dialect/mysql/shared.sql: readers-clear
DELETE /* rowlock readers-clear */ FROM `rowlock_member` WHERE `key` = ? AND reader_group = ? AND expires_at <= UTC_TIMESTAMP(6)

-- dialect/mysql/shared.sql: readers-left
SELECT /* rowlock readers-left */ 1 FROM `rowlock_member` WHERE `key` = ? AND reader_group = ? LIMIT 1 LOCK IN SHARE MODE

-- dialect/mysql/shared.sql: readers-end
UPDATE /* rowlock readers-end */ `rowlock` SET owner = NULL, note = '', expires_at = UTC_TIMESTAMP(6)
WHERE `key` = ? AND owner = ? AND placement = 0

-- dialect/mysql/shared.sql: readers-make
UPDATE /* rowlock readers-make */ `rowlock` SET owner = ?, expires_at = '9999-01-01 00:00:00'
WHERE `key` = ? AND owner = ? AND token = ? AND placement = 0 AND expires_at > UTC_TIMESTAMP(6)

-- dialect/mysql/shared.sql: readers-first
INSERT /* rowlock readers-first */ INTO `rowlock_member` (`key`, reader_group, owner, note, joined_at, expires_at)
SELECT r.`key`, r.owner, ?, r.note, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
FROM `rowlock` AS r WHERE r.`key` = ? AND r.owner = ?

-- dialect/mysql/shared.sql: readers-idle
SELECT /* rowlock readers-idle */ r.`key` FROM `rowlock` AS r
WHERE r.placement = 0 AND r.owner IS NOT NULL AND r.expires_at = '9999-01-01 00:00:00'
  AND NOT EXISTS (SELECT 1 FROM `rowlock_member` AS m WHERE m.`key` = r.`key` AND m.reader_group = r.owner
    AND m.expires_at > UTC_TIMESTAMP(6))
LIMIT ?

-- dialect/mysql/shared.sql: readers-fence
SELECT /* rowlock readers-fence */ 1 FROM `rowlock` WHERE `key` = ? AND owner = ? AND token = ? AND placement = 0
LOCK IN SHARE MODE

-- dialect/mysql/shared.sql: late-readers
r.expires_at = '9999-01-01 00:00:00' AND NOT EXISTS (SELECT 1 FROM `rowlock_member` AS m
  WHERE m.`key` = r.`key` AND m.reader_group = r.owner AND m.expires_at > UTC_TIMESTAMP(6))

-- dialect/mysql/shared.sql: force-members
DELETE /* rowlock force-members */ FROM `rowlock_member` WHERE `key` = ? AND reader_group = ?

-- dialect/mysql/statements.sql: acquire-update
/*M! SET STATEMENT innodb_lock_wait_timeout = 0 FOR */ UPDATE /* rowlock acquire-update */ `rowlock` FORCE INDEX (PRIMARY)
SET token = LAST_INSERT_ID(GREATEST(token, @era) + 1), owner = ?, note = ?, acquired_at = UTC_TIMESTAMP(6),
  expires_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
WHERE `key` >= ? AND `key` < CONCAT(?, 0x00) AND placement = 0 AND owner IS NULL
  AND token BETWEEN 0 AND 9223372036853727231 - 1
LIMIT 1

-- dialect/mysql/statements.sql: acquire-expired
UPDATE /* rowlock acquire-expired */ `rowlock` SET token = LAST_INSERT_ID(GREATEST(token, @era) + 1), owner = ?, note = ?,
  acquired_at = UTC_TIMESTAMP(6), expires_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
WHERE `key` = (SELECT k FROM (SELECT `key` AS k FROM `rowlock`
  WHERE `key` = ? AND placement = 0 AND (owner IS NULL OR expires_at <= UTC_TIMESTAMP(6))
    AND token BETWEEN 0 AND 9223372036853727231 - 1
  FOR UPDATE SKIP LOCKED) AS d)

-- dialect/mysql/statements.sql: acquire-insert
INSERT /* rowlock acquire-insert */ INTO `rowlock` (`key`, owner, note, token, acquired_at, expires_at, placement)
SELECT ?, ?, ?, LAST_INSERT_ID(GREATEST(f.floor, @era) + 1), UTC_TIMESTAMP(6),
  UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND, 0
FROM `rowlock_floor` AS f WHERE f.bucket = ? AND f.floor < 9223372036853727231
  AND NOT EXISTS (SELECT 1 FROM `rowlock` AS r WHERE r.`key` = ?)
LOCK IN SHARE MODE

-- dialect/mysql/statements.sql: seize
SELECT /* rowlock seize */ 1 FROM `rowlock` WHERE `key` = ? FOR UPDATE SKIP LOCKED

-- dialect/mysql/statements.sql: look
SELECT /* rowlock look */ CASE WHEN placement <> 0 THEN 4
            WHEN owner = ? AND expires_at > UTC_TIMESTAMP(6) THEN 7
            WHEN owner IS NOT NULL AND expires_at > UTC_TIMESTAMP(6) THEN 0
            WHEN token NOT BETWEEN 0 AND 9223372036853727231 - 1 THEN 3
            WHEN owner IS NOT NULL THEN 5
            ELSE 2 END AS state,
       token, LEFT(note, 384), TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at) AS remaining
FROM `rowlock` WHERE `key` = ?

-- dialect/mysql/statements.sql: rows
SELECT /* rowlock rows */ j.n, r.placement = 0 AS placement, r.owner, r.token, LEFT(r.note, 384),
  TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), r.expires_at) AS remaining
FROM JSON_TABLE(?, '$[*]' COLUMNS (n FOR ORDINALITY,
  k VARCHAR(510) CHARACTER SET latin1 PATH '$')) AS j
STRAIGHT_JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)

-- dialect/mysql/statements.sql: apply
UPDATE /* rowlock apply */ (SELECT j.n, r.`key` AS k, UNHEX(NULLIF(j.o, '')) AS owner, UNHEX(j.c) AS note, j.d AS ttl
        FROM (SELECT @rowlock_done := ? AS batch) AS b
        STRAIGHT_JOIN JSON_TABLE(?, '$[*]' COLUMNS (n FOR ORDINALITY,
          k VARCHAR(510) CHARACTER SET latin1 PATH '$[0]',
          f VARCHAR(32) CHARACTER SET latin1 PATH '$[1]',
          t BIGINT PATH '$[2]', o VARCHAR(32) CHARACTER SET latin1 PATH '$[3]',
          c VARCHAR(768) CHARACTER SET latin1 PATH '$[4]', d BIGINT PATH '$[5]')) AS j
        STRAIGHT_JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
        WHERE r.placement = 0 AND r.token = j.t
          AND (j.f = '' AND (r.owner IS NULL OR r.expires_at <= UTC_TIMESTAMP(6))
            OR r.owner = UNHEX(j.f))
        LIMIT 9223372036854775807 FOR UPDATE /*!80000 OF r */ SKIP LOCKED) AS mine
STRAIGHT_JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = mine.k
SET r.owner = mine.owner, r.note = mine.note,
  r.token = IF(mine.owner IS NULL, r.token, GREATEST(r.token, @era) + 1),
  r.acquired_at = IF(mine.owner IS NULL, r.acquired_at, UTC_TIMESTAMP(6)),
  r.expires_at = UTC_TIMESTAMP(6)
  + INTERVAL mine.ttl + 0 * LENGTH(@rowlock_done := CONCAT(@rowlock_done, ' ', mine.n)) MICROSECOND

-- dialect/mysql/statements.sql: applied
SELECT /* rowlock applied */ 0 AS n, 0 AS placement, NULL AS owner, 0 AS token, COALESCE(@rowlock_done, '') AS note,
  0 AS remaining
UNION ALL
SELECT j.n, r.placement = 0, r.owner, r.token, LEFT(r.note, 384),
  TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), r.expires_at)
FROM JSON_TABLE(?, '$[*]' COLUMNS (n FOR ORDINALITY,
  k VARCHAR(510) CHARACTER SET latin1 PATH '$')) AS j
STRAIGHT_JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)

-- dialect/mysql/statements.sql: apply-all
UPDATE /* rowlock apply-all */ (SELECT d.*, COUNT(*) OVER () AS n
        FROM (SELECT r.`key` AS k, UNHEX(NULLIF(j.o, '')) AS owner, UNHEX(j.c) AS note, j.d AS ttl
              FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) CHARACTER SET latin1 PATH '$[0]',
                f VARCHAR(32) CHARACTER SET latin1 PATH '$[1]',
                t BIGINT PATH '$[2]', o VARCHAR(32) CHARACTER SET latin1 PATH '$[3]',
                c VARCHAR(768) CHARACTER SET latin1 PATH '$[4]', d BIGINT PATH '$[5]')) AS j
              STRAIGHT_JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
              WHERE r.placement = 0 AND r.token = j.t
                AND (j.f = '' AND (r.owner IS NULL OR r.expires_at <= UTC_TIMESTAMP(6))
                  OR r.owner = UNHEX(j.f))
              LIMIT 9223372036854775807 FOR UPDATE /*!80000 OF r */ SKIP LOCKED) AS d) AS mine
STRAIGHT_JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = mine.k AND mine.n = ?
SET r.owner = mine.owner, r.note = mine.note,
  r.token = IF(mine.owner IS NULL, r.token, GREATEST(r.token, @era) + 1),
  r.acquired_at = IF(mine.owner IS NULL, r.acquired_at, UTC_TIMESTAMP(6)),
  r.expires_at = UTC_TIMESTAMP(6) + INTERVAL mine.ttl MICROSECOND

-- dialect/mysql/statements.sql: apply-any
UPDATE /* rowlock apply-any */ (SELECT d.*, COUNT(*) OVER () AS total
        FROM (SELECT j.n, r.`key` AS k, UNHEX(j.o) AS owner, UNHEX(j.c) AS note, j.d AS ttl
              FROM (SELECT @rowlock_done := ? AS batch) AS b
              STRAIGHT_JOIN JSON_TABLE(?, '$[*]' COLUMNS (n FOR ORDINALITY,
                k VARCHAR(510) CHARACTER SET latin1 PATH '$[0]',
                t BIGINT PATH '$[2]', o VARCHAR(32) CHARACTER SET latin1 PATH '$[3]',
                c VARCHAR(768) CHARACTER SET latin1 PATH '$[4]', d BIGINT PATH '$[5]')) AS j
              STRAIGHT_JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
              WHERE r.placement = 0 AND r.token = j.t
                AND (r.owner IS NULL OR r.expires_at <= UTC_TIMESTAMP(6))
              LIMIT ? FOR UPDATE /*!80000 OF r */ SKIP LOCKED) AS d) AS mine
STRAIGHT_JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = mine.k AND mine.total = ?
SET r.owner = mine.owner, r.note = mine.note, r.token = GREATEST(r.token, @era) + 1,
  r.acquired_at = UTC_TIMESTAMP(6),
  r.expires_at = UTC_TIMESTAMP(6)
  + INTERVAL mine.ttl + 0 * LENGTH(@rowlock_done := CONCAT(@rowlock_done, ' ', mine.n))
    + 0 * LAST_INSERT_ID(mine.n) MICROSECOND

-- dialect/mysql/statements.sql: create
INSERT /* rowlock create */ INTO `rowlock` (`key`, owner, note, token, acquired_at, expires_at, placement)
SELECT UNHEX(j.k), UNHEX(NULLIF(j.o, '')), UNHEX(j.c),
       IF(j.o = '', f.floor, GREATEST(f.floor, @era) + 1), UTC_TIMESTAMP(6),
       UTC_TIMESTAMP(6) + INTERVAL j.d MICROSECOND, 0
FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) CHARACTER SET latin1 PATH '$[0]',
  o VARCHAR(32) CHARACTER SET latin1 PATH '$[3]',
  c VARCHAR(768) CHARACTER SET latin1 PATH '$[4]', d BIGINT PATH '$[5]',
  b SMALLINT PATH '$[6]')) AS j
STRAIGHT_JOIN `rowlock_floor` AS f FORCE INDEX (PRIMARY) ON f.bucket = j.b
WHERE f.floor < 9223372036853727231
  AND (SELECT COUNT(*) FROM `rowlock` AS r FORCE INDEX (PRIMARY) WHERE r.`key` = UNHEX(j.k)) = 0
/*M! LOCK IN SHARE MODE */ /*!80000 FOR SHARE OF f */

-- dialect/mysql/statements.sql: renew
UPDATE /* rowlock renew */ (SELECT r.`key` AS k, j.d AS ttl
        FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$.k', o CHAR(32) PATH '$.o',
          t BIGINT PATH '$.t', d BIGINT PATH '$.d')) AS j
        STRAIGHT_JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
        WHERE r.owner = UNHEX(j.o) AND r.token = j.t AND r.placement = 0
          AND r.expires_at > UTC_TIMESTAMP(6)
        LIMIT 9223372036854775807 FOR UPDATE /*!80000 OF r */ SKIP LOCKED) AS mine
STRAIGHT_JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = mine.k
SET r.expires_at = UTC_TIMESTAMP(6)
  + INTERVAL mine.ttl + 0 * LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01',
    UTC_TIMESTAMP(6))) MICROSECOND

-- dialect/mysql/statements.sql: renew-lock
SELECT /* rowlock renew-lock */ j.n, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', r.expires_at) = j.d AS extended,
       TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), r.expires_at) AS remaining,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) AS clock
FROM JSON_TABLE(?, '$[*]' COLUMNS (n FOR ORDINALITY, k VARCHAR(510) PATH '$.k',
  o CHAR(32) PATH '$.o', t BIGINT PATH '$.t', d BIGINT PATH '$.d')) AS j
STRAIGHT_JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
WHERE r.owner = UNHEX(j.o) AND r.token = j.t AND r.placement = 0
FOR UPDATE /*!80000 OF r */ SKIP LOCKED

-- dialect/mysql/statements.sql: renew-look
SELECT /* rowlock renew-look */ j.n, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', r.expires_at) = j.d AS extended,
       TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), r.expires_at) AS remaining
FROM JSON_TABLE(?, '$[*]' COLUMNS (n FOR ORDINALITY, k VARCHAR(510) PATH '$.k',
  o CHAR(32) PATH '$.o', t BIGINT PATH '$.t', d BIGINT PATH '$.d')) AS j
STRAIGHT_JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
WHERE r.owner = UNHEX(j.o) AND r.token = j.t AND r.placement = 0

-- dialect/mysql/statements.sql: confirm
UPDATE /* rowlock confirm */ `rowlock` SET expires_at = GREATEST(expires_at + INTERVAL 1 MICROSECOND,
  UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND)
WHERE `key` = ? AND owner = ? AND token = ? AND placement = 0 AND expires_at > UTC_TIMESTAMP(6)

-- dialect/mysql/statements.sql: raise
UPDATE /* rowlock raise */ `rowlock` SET token = ?, expires_at = expires_at + INTERVAL 1 MICROSECOND
WHERE `key` = ? AND owner = ? AND token IN (?, ?) AND placement = 0
  AND expires_at > UTC_TIMESTAMP(6)

-- dialect/mysql/statements.sql: release
UPDATE /* rowlock release */ `rowlock` SET owner = NULL, expires_at = UTC_TIMESTAMP(6),
  note = IF(LAST_INSERT_ID(IS_USED_LOCK(?) IS NOT NULL), '', '')
WHERE `key` = ? AND owner = ? AND ? IN (token, 0) AND placement = 0

-- dialect/mysql/statements.sql: release-awaited
UPDATE /* rowlock release-awaited */ `rowlock` SET owner = NULL, expires_at = UTC_TIMESTAMP(6),
  note = IF(LAST_INSERT_ID((IS_USED_LOCK(?) IS NOT NULL) + 2 * EXISTS (
    SELECT 1 FROM `rowlock_queue` AS q FORCE INDEX (PRIMARY)
    WHERE q.`key` = ? AND NOT (q.waiter <=> ?) AND q.alive_until > UTC_TIMESTAMP(6))), '', '')
WHERE `key` = ? AND owner = ? AND ? IN (token, 0) AND placement = 0

-- dialect/mysql/statements.sql: hand-over
UPDATE /* rowlock hand-over */ `rowlock` SET token = GREATEST(token, @era) + 1, owner = ?, note = ?, acquired_at = UTC_TIMESTAMP(6),
  expires_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
WHERE `key` = ? AND owner = ? AND token = ? AND placement = 0 AND token BETWEEN 0 AND 9223372036853727231 - 1

-- dialect/mysql/statements.sql: inspect
SELECT /* rowlock inspect */ r.`key`, r.owner, r.token, LEFT(r.note, 384),
  r.owner IS NOT NULL AND r.expires_at > UTC_TIMESTAMP(6) AS held,
       TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), r.expires_at) AS remaining,
       TIMESTAMPDIFF(MICROSECOND, r.acquired_at, UTC_TIMESTAMP(6)) AS age, r.placement
FROM `rowlock` AS r
WHERE r.`key` > ? AND r.`key` <= ?
  AND (? = 0 OR r.owner IS NOT NULL AND (r.expires_at > UTC_TIMESTAMP(6)
    OR TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), r.expires_at) IS NULL))
ORDER BY r.`key` LIMIT ?

-- dialect/mysql/statements.sql: inspect-keys
SELECT /* rowlock inspect-keys */ r.`key`, r.owner, r.token, LEFT(r.note, 384),
  r.owner IS NOT NULL AND r.expires_at > UTC_TIMESTAMP(6) AS held,
       TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), r.expires_at) AS remaining,
       TIMESTAMPDIFF(MICROSECOND, r.acquired_at, UTC_TIMESTAMP(6)) AS age, r.placement
FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$')) AS j
STRAIGHT_JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
WHERE r.`key` > ? AND r.`key` <= ?
  AND (? = 0 OR r.owner IS NOT NULL AND (r.expires_at > UTC_TIMESTAMP(6)
    OR TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), r.expires_at) IS NULL))
ORDER BY r.`key` LIMIT ?

-- dialect/mysql/statements.sql: fence
UPDATE /* rowlock fence */ `rowlock` SET fenced_by = CONNECTION_ID(), fenced_token = token,
  acquired_at = acquired_at + INTERVAL 1 MICROSECOND
WHERE `key` = ? AND owner = ? AND token = ? AND placement = 0

-- dialect/mysql/statements.sql: fence-lock
SELECT /* rowlock fence-lock */ 1 FROM `rowlock` WHERE `key` = ? AND owner = ? AND token = ? AND placement = 0 FOR UPDATE

-- dialect/mysql/statements.sql: fence-end
UPDATE /* rowlock fence-end */ `rowlock` SET fenced_by = 0 WHERE `key` = ? AND fenced_by = CONNECTION_ID()

-- dialect/mysql/statements.sql: fence-extend
UPDATE /* rowlock fence-extend */ `rowlock` SET expires_at = GREATEST(expires_at, UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND)
WHERE `key` = ? AND expires_at > UTC_TIMESTAMP(6)

-- dialect/mysql/statements.sql: release-tx
UPDATE /* rowlock release-tx */ `rowlock` SET owner = NULL, note = '', expires_at = UTC_TIMESTAMP(6)
WHERE `key` = ? AND owner = ? AND token = ? AND placement = 0

-- dialect/mysql/statements.sql: fenced-here
AND /* rowlock fenced-here */ fenced_by = CONNECTION_ID() AND fenced_token = token

-- dialect/mysql/statements.sql: instance
SELECT /* rowlock instance */ value FROM `rowlock_meta` WHERE name = 'instance'

-- dialect/mysql/statements.sql: schema-version
SELECT /* rowlock schema-version */ v.value, f.value, v.name FROM `rowlock_meta` AS v LEFT JOIN `rowlock_meta` AS f
  ON f.name = REPLACE(v.name, 'schema_version', 'compatible_from') WHERE substr(v.name, 1, 14) = 'schema_version' ORDER BY v.name LIMIT 100

-- dialect/mysql/statements.sql: complete
SELECT /* rowlock complete */ count(*) FROM `rowlock_floor`

-- dialect/mysql/statements.sql: floor-lock
SELECT /* rowlock floor-lock */ floor FROM `rowlock_floor` WHERE bucket = ? FOR UPDATE

-- dialect/mysql/statements.sql: floor-raise
UPDATE /* rowlock floor-raise */ `rowlock_floor` SET floor = GREATEST(floor, ?) WHERE bucket = ?

-- dialect/mysql/statements.sql: dead
SELECT /* rowlock dead */ `key`, dead FROM (
  SELECT `key`,
    placement = 0 AND expires_at <= UTC_TIMESTAMP(6) - INTERVAL p.retention MICROSECOND AS dead,
         ROW_NUMBER() OVER (ORDER BY `key`) AS n
  FROM (SELECT `key`, placement, expires_at FROM `rowlock` WHERE `key` > ? ORDER BY `key` LIMIT ?) AS page,
       (SELECT ? AS retention) AS p
) AS w WHERE dead OR n = ? ORDER BY `key`

-- dialect/mysql/statements.sql: dead-lock
SELECT /* rowlock dead-lock */ r.`key`, r.token
FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$')) AS j
STRAIGHT_JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
WHERE r.placement = 0 AND r.token BETWEEN 0 AND 9223372036853727231 - 1
  AND r.expires_at <= UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND
FOR UPDATE /*!80000 OF r */ SKIP LOCKED

-- dialect/mysql/statements.sql: reap
DELETE /* rowlock reap */ r FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$')) AS j
STRAIGHT_JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)

-- dialect/mysql/token.sql: token-raise
UPDATE /* rowlock token-raise */ @table SET @token = ? WHERE @table.@key = ? AND @table.@token <= ?

-- dialect/mysql/token.sql: token-make
INSERT /* rowlock token-make */ INTO @table (@key, @token) VALUES (?, ?)
ON DUPLICATE KEY UPDATE @token = GREATEST(@token, ?)

-- dialect/mysql/token.sql: token-seen
SELECT /* rowlock token-seen */ MAX(@table.@token), COUNT(*),
  COALESCE(MIN(@table.@token * 0 + 0.1 + 0.2 = 0.3 AND COERCIBILITY(@table.@token) = COERCIBILITY(0)), 1)
FROM @table WHERE @table.@key = ?
LOCK IN SHARE MODE

-- dialect/mysql/trace.sql: trace-write
INSERT /* rowlock trace-write */ INTO `rowlock_trace` (`at`, id, `key`, event, token, owner, note, number, detail)
SELECT UTC_TIMESTAMP(6) - INTERVAL j.a MICROSECOND, j.i, UNHEX(j.k), j.e, j.t, UNHEX(j.o), UNHEX(j.n), j.m,
  UNHEX(j.d)
FROM JSON_TABLE(?, '$[*]' COLUMNS (
  a BIGINT PATH '$[0]', i BIGINT PATH '$[1]', k VARCHAR(510) CHARACTER SET latin1 PATH '$[2]',
  e VARCHAR(16) CHARACTER SET latin1 PATH '$[3]', t BIGINT PATH '$[4]',
  o VARCHAR(32) CHARACTER SET latin1 PATH '$[5]', n VARCHAR(768) CHARACTER SET latin1 PATH '$[6]',
  m BIGINT PATH '$[7]', d VARCHAR(510) CHARACTER SET latin1 PATH '$[8]')) AS j

-- dialect/mysql/trace.sql: trace-list
SELECT /* rowlock trace-list */ TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', `at`), id, `key`, event, token, owner, LEFT(note, 384), number,
  LEFT(detail, 255)
FROM `rowlock_trace`
WHERE LEFT(`key`, ?) = ? AND `at` <= TIMESTAMPADD(MICROSECOND, ?, '1970-01-01 00:00:00.000000')
  AND (`at` < TIMESTAMPADD(MICROSECOND, ?, '1970-01-01 00:00:00.000000') OR id < ?)
ORDER BY `at` DESC, id DESC LIMIT ?

-- dialect/mysql/trace.sql: trace-list-key
SELECT /* rowlock trace-list-key */ TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', `at`), id, `key`, event, token, owner, LEFT(note, 384), number,
  LEFT(detail, 255)
FROM `rowlock_trace`
WHERE `key` = ? AND `at` <= TIMESTAMPADD(MICROSECOND, ?, '1970-01-01 00:00:00.000000')
  AND (`at` < TIMESTAMPADD(MICROSECOND, ?, '1970-01-01 00:00:00.000000') OR id < ?)
ORDER BY `at` DESC, id DESC LIMIT ?

-- dialect/mysql/trace.sql: trace-sweep
DELETE /* rowlock trace-sweep */ FROM `rowlock_trace` WHERE `at` < UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND ORDER BY `at`, id LIMIT ?

-- schema/statements/all.sql: guard-leases
SELECT /* rowlock guard-leases */ count(*) FROM `rowlock` WHERE owner IS NOT NULL AND expires_at > UTC_TIMESTAMP(6) AND expires_at < '9999-01-01'

-- schema/statements/all.sql: guard-keys
SELECT /* rowlock guard-keys */ count(*) FROM `rowlock`
WHERE placement NOT IN (0, -1) OR token NOT BETWEEN 0 AND 9223372036853727230

-- schema/statements/all.sql: guard-once
SELECT /* rowlock guard-once */ count(*) FROM `rowlock_once` WHERE expires_at > UTC_TIMESTAMP(6)

-- schema/statements/all.sql: guard-latches
SELECT /* rowlock guard-latches */ count(*) FROM `rowlock_latch` WHERE expires_at > UTC_TIMESTAMP(6)

-- schema/statements/all.sql: waiters
SELECT /* rowlock waiters */ count(*) FROM `rowlock_queue` WHERE alive_until > UTC_TIMESTAMP(6)

-- schema/statements/all.sql: forget-version
DELETE /* rowlock forget-version */ FROM `rowlock_meta`
WHERE substr(name, 1, 14) = 'schema_version' OR substr(name, 1, 15) = 'compatible_from'

-- schema/statements/mysql.sql: exists
SELECT /* rowlock exists */ EXISTS (SELECT 1 FROM information_schema.columns
WHERE table_schema = ? AND table_name = ? AND ? IN ('', column_name))

-- schema/statements/mysql.sql: begin
START /* rowlock begin */ TRANSACTION

-- schema/statements/mysql.sql: lock
SELECT /* rowlock lock */ GET_LOCK(SHA2('`rowlock_meta`', 224), 10) <=> 1

-- schema/statements/mysql.sql: blockers
SELECT /* rowlock blockers */ GROUP_CONCAT(DISTINCT blocker SEPARATOR ', ') FROM (
  SELECT CONCAT('session ', t.processlist_id, ' of ', t.processlist_user, '@', t.processlist_host)
    AS blocker
  FROM performance_schema.threads AS t
  LEFT JOIN performance_schema.metadata_locks AS m ON m.owner_thread_id = t.thread_id
    AND m.object_schema = ? AND m.object_name LIKE ? AND m.lock_status = 'GRANTED'
  LEFT JOIN performance_schema.events_transactions_current AS e ON e.thread_id = t.thread_id
  WHERE t.processlist_id = IS_USED_LOCK(SHA2('`rowlock_meta`', 224))
    OR m.owner_thread_id IS NOT NULL AND t.processlist_id <> CONNECTION_ID()
  ORDER BY COALESCE(e.timer_wait, 0) DESC LIMIT 3) AS oldest

-- schema/statements/mysql.sql: oldest
SELECT /* rowlock oldest */ GROUP_CONCAT(blocker SEPARATOR ', ') FROM (
  SELECT CONCAT('one of the oldest transactions: session ', trx_mysql_thread_id, ' since ',
    trx_started) AS blocker
  FROM information_schema.innodb_trx
  WHERE trx_mysql_thread_id <> CONNECTION_ID() AND ? <> ?
  ORDER BY trx_started LIMIT 3) AS oldest

-- schema/statements/mysql.sql: lock-tables
LOCK /* rowlock lock-tables */ TABLES @tables WRITE

-- schema/statements/mysql.sql: guard-members
SELECT /* rowlock guard-members */ count(*) FROM `rowlock_member` WHERE expires_at > UTC_TIMESTAMP(6) AND reader_group <> x'00000000000000000000000000000000'

-- schema/statements/mysql.sql: keep-tokens
UPDATE /* rowlock keep-tokens */ `rowlock_floor` SET floor = GREATEST(floor, (SELECT COALESCE(MAX(token), 0) FROM `rowlock`))

-- schema/statements/mysql.sql: sessions
SELECT /* rowlock sessions */ count(*) FROM /*!80022 performance_schema.processlist */ /*M! information_schema.processlist */
WHERE id <> CONNECTION_ID() AND db = DATABASE()

-- schema/statements/mysql.sql: commit
COMMIT /* rowlock commit */

-- schema/statements/mysql.sql: rollback
ROLLBACK /* rowlock rollback */

-- schema/statements/mysql.sql: unlock
SELECT /* rowlock unlock */ RELEASE_LOCK(SHA2('`rowlock_meta`', 224)) <=> 1
