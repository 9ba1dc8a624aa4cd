-- Every statement as the server gets it.
-- Written by: go test ./dialect -run Golden -update

-- dialect/mysql/cas.sql: cas-setup
SELECT /* rowlock cas-setup */ IF(VERSION() LIKE '%MariaDB%', 0, 2000)

-- dialect/mysql/cas.sql: cas-look
SELECT /* rowlock cas-look */ CASE WHEN home <> 0 THEN 4
            WHEN owner = ? AND expires_at > UTC_TIMESTAMP(6) THEN 7
            WHEN owner IS NOT NULL AND expires_at > UTC_TIMESTAMP(6) THEN 0
            WHEN token >= 9223372036853727231 THEN 3
            WHEN owner IS NOT NULL THEN 5
            ELSE 2 END AS state,
       token, note, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at) AS remaining,
       owner, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', expires_at) AS expires
FROM `rowlock` WHERE `key` = ?

-- dialect/mysql/cas.sql: cas-take-free
UPDATE /* rowlock cas-take-free */ `rowlock`
SET owner = ?, note = ?, expires_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND,
  acquired_at = UTC_TIMESTAMP(6), token = ?
WHERE `key` = ? AND home = 0 AND token = ? AND owner IS NULL

-- dialect/mysql/cas.sql: cas-take
/*M! SET STATEMENT innodb_lock_wait_timeout = 0 FOR */ UPDATE /* rowlock cas-take */ `rowlock`
SET owner = ?, note = ?, expires_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND,
  acquired_at = UTC_TIMESTAMP(6), token = ?
WHERE `key` = ? AND home = 0 AND token = ? AND owner = ?
  AND TIMESTAMPDIFF(MICROSECOND, '1970-01-01', expires_at) = ?
  AND expires_at <= UTC_TIMESTAMP(6)

-- dialect/mysql/cas.sql: cas-insert
INSERT /* rowlock cas-insert */ INTO `rowlock` (`key`, owner, note, token, acquired_at, expires_at, home)
SELECT ?, ?, ?, f.floor + 1, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND, 0
FROM `rowlock_floor` AS f WHERE f.bucket = ? AND f.floor < 9223372036853727231 - 1

-- dialect/mysql/cas.sql: cas-made
SELECT /* rowlock cas-made */ r.token, f.floor FROM `rowlock` AS r, `rowlock_floor` AS f WHERE f.bucket = ? AND r.`key` = ?

-- dialect/mysql/cas.sql: cas-raise
UPDATE /* rowlock cas-raise */ `rowlock` SET token = ? WHERE `key` = ?

-- dialect/mysql/cas.sql: cas-renew
/*M! SET STATEMENT innodb_lock_wait_timeout = 0 FOR */ UPDATE /* rowlock cas-renew */
  (SELECT UNHEX(j.k) AS k, UNHEX(j.o) AS o, j.t, j.d
   FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$.k', o CHAR(32) PATH '$.o',
     t BIGINT PATH '$.t', d BIGINT PATH '$.d')) AS j
   LIMIT 9223372036854775807) AS w
STRAIGHT_JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = w.k
SET r.expires_at = UTC_TIMESTAMP(6) + INTERVAL w.d MICROSECOND
WHERE r.owner = w.o AND r.token = w.t AND r.home = 0 AND r.expires_at > UTC_TIMESTAMP(6)

-- dialect/mysql/cas.sql: cas-renew-look
SELECT /* rowlock cas-renew-look */ j.n, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), r.expires_at) AS remaining,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) AS clock
FROM JSON_TABLE(?, '$[*]' COLUMNS (n FOR ORDINALITY, k VARCHAR(510) PATH '$.k',
  o CHAR(32) PATH '$.o', t BIGINT PATH '$.t')) AS j
STRAIGHT_JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
WHERE r.owner = UNHEX(j.o) AND r.token = j.t AND r.home = 0

-- dialect/mysql/cas.sql: cas-fence
UPDATE /* rowlock cas-fence */ `rowlock` SET acquired_at = acquired_at + INTERVAL 1 MICROSECOND
WHERE `key` = ? AND owner = ? AND token = ? AND home = 0

-- dialect/mysql/cas.sql: cas-floor
SELECT /* rowlock cas-floor */ floor FROM `rowlock_floor` WHERE bucket = ?

-- dialect/mysql/cas.sql: cas-dead
SELECT /* rowlock cas-dead */ COALESCE(MAX(r.token), -1)
FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$')) AS j
STRAIGHT_JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
WHERE r.home = 0 AND r.token < 9223372036853727231
  AND r.expires_at <= UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND

-- dialect/mysql/cas.sql: cas-reap
/*M! SET STATEMENT innodb_lock_wait_timeout = 0 FOR */ DELETE /* rowlock cas-reap */ r
FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$')) AS j
STRAIGHT_JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
WHERE r.home = 0 AND r.expires_at <= UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND AND r.token <= ?

-- dialect/mysql/cas.sql: cas-drop-dead
DELETE /* rowlock cas-drop-dead */ FROM `rowlock_queue`
WHERE `key` = ? AND waiter = ? AND alive_until <= UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND

-- dialect/mysql/evict.sql: session-id
SELECT /* rowlock session-id */ CONNECTION_ID()

-- dialect/mysql/evict.sql: await-expired
SELECT /* rowlock await-expired */ 1 FROM `rowlock`
  WHERE `key` = ? AND home = 0 AND owner IS NOT NULL
  AND expires_at <= UTC_TIMESTAMP(6) FOR UPDATE

-- dialect/mysql/evict.sql: evict-mysql
SELECT /* rowlock evict-mysql */ t.PROCESSLIST_ID, COALESCE(t.PROCESSLIST_USER, ''),
  COALESCE(t.PROCESSLIST_USER = SUBSTRING_INDEX(USER(), '@', 1), 0),
       COALESCE(MAX(x.TIMER_WAIT) DIV 1000000, t.PROCESSLIST_TIME * 1000000, 0) >= ?, 0
FROM performance_schema.threads AS w
STRAIGHT_JOIN performance_schema.data_lock_waits AS d ON d.REQUESTING_THREAD_ID = w.THREAD_ID
STRAIGHT_JOIN performance_schema.data_locks AS l ON l.ENGINE_LOCK_ID = d.BLOCKING_ENGINE_LOCK_ID
  AND l.LOCK_STATUS = 'GRANTED'
STRAIGHT_JOIN performance_schema.threads AS t ON t.THREAD_ID = d.BLOCKING_THREAD_ID
  AND t.PROCESSLIST_ID IS NOT NULL
LEFT JOIN performance_schema.events_transactions_current AS x ON x.THREAD_ID = t.THREAD_ID
  AND x.STATE = 'ACTIVE'
WHERE w.PROCESSLIST_ID = ? AND t.THREAD_ID <> w.THREAD_ID
  AND EXISTS (SELECT 1 FROM `rowlock`
    WHERE `key` = ? AND home = 0 AND owner IS NOT NULL AND expires_at <= UTC_TIMESTAMP(6))
GROUP BY t.PROCESSLIST_ID, t.PROCESSLIST_USER, t.PROCESSLIST_TIME

-- dialect/mysql/evict.sql: evict-mariadb
SELECT /* rowlock evict-mariadb */ t.trx_mysql_thread_id, COALESCE(p.USER, ''),
  COALESCE(p.USER = SUBSTRING_INDEX(USER(), '@', 1), 0),
       t.trx_started < CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', 'SYSTEM') - INTERVAL ? MICROSECOND, 0
FROM information_schema.INNODB_TRX AS w
STRAIGHT_JOIN information_schema.INNODB_LOCK_WAITS AS d ON d.requesting_trx_id = w.trx_id
STRAIGHT_JOIN information_schema.INNODB_TRX AS t ON t.trx_id = d.blocking_trx_id
LEFT JOIN information_schema.PROCESSLIST AS p ON p.ID = t.trx_mysql_thread_id
WHERE w.trx_mysql_thread_id = ? AND t.trx_mysql_thread_id <> 0
  AND (t.trx_requested_lock_id IS NULL OR t.trx_requested_lock_id <> d.blocking_lock_id)
  AND EXISTS (SELECT 1 FROM `rowlock`
    WHERE `key` = ? AND home = 0 AND owner IS NOT NULL AND expires_at <= UTC_TIMESTAMP(6))

-- dialect/mysql/evict.sql: may-evict-mariadb
SELECT /* rowlock may-evict-mariadb */ (SELECT COUNT(*) FROM information_schema.INNODB_TRX)
  + (SELECT COUNT(*) FROM information_schema.INNODB_LOCK_WAITS)

-- dialect/mysql/group.sql: group-take
UPDATE /* rowlock group-take */ `rowlock` FORCE INDEX (PRIMARY)
SET token = LAST_INSERT_ID(token + 1), owner = ?, note = ?, acquired_at = UTC_TIMESTAMP(6),
  expires_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
WHERE `key` >= ? AND `key` < CONCAT(?, 0x00) AND home = 0
  AND (owner IS NULL OR expires_at <= UTC_TIMESTAMP(6))
  AND token >= ? AND token < ? AND token % 1099511627776 < 1099511627775 AND token < 9223372036853727231
LIMIT 1

-- dialect/mysql/group.sql: group-look
SELECT /* rowlock group-look */ home, token, COALESCE(owner = ?, 0) AND expires_at > UTC_TIMESTAMP(6) AS mine,
       owner IS NOT NULL AND expires_at > UTC_TIMESTAMP(6) AS held, note,
       TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at) AS remaining
FROM `rowlock` WHERE `key` = ?

-- dialect/mysql/group.sql: group-confirm
UPDATE /* rowlock group-confirm */ `rowlock` SET acquired_at = UTC_TIMESTAMP(6)
WHERE `key` = ? AND owner = ? AND token = ? AND home = 0 AND expires_at > UTC_TIMESTAMP(6)

-- dialect/mysql/group.sql: group-raise
INSERT /* rowlock group-raise */ INTO `rowlock` (`key`, home, token, note, acquired_at, expires_at)
  VALUES (?, ?, ?, '', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE home = IF(token < VALUES(token), VALUES(home), home),
  owner = IF(token < VALUES(token), NULL, owner),
  note = IF(token < VALUES(token), '', note),
    expires_at = IF(token < VALUES(token), VALUES(expires_at), expires_at),
  token = GREATEST(token, VALUES(token))

-- dialect/mysql/group.sql: group-seal
UPDATE /* rowlock group-seal */ `rowlock` SET home = -2, owner = NULL, note = '', expires_at = UTC_TIMESTAMP(6)
WHERE `key` = ? AND owner = ? AND token = ? AND home = 0

-- dialect/mysql/group.sql: group-record
SELECT /* rowlock group-record */ home, token FROM `rowlock` WHERE `key` = ?

-- dialect/mysql/group.sql: group-records
SELECT /* rowlock group-records */ `key`, home, token FROM `rowlock`
WHERE `key` > ? AND (home = 0 AND token >= 1099511627776 OR home = -2)
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
INSERT /* rowlock register */ INTO `rowlock_queue` (`key`, waiter, alive_until)
SELECT w.k, w.waiter, w.until
FROM (SELECT UNHEX(j.k) AS k, ? AS waiter, UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND AS until
      FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$')) AS j) AS w
ON DUPLICATE KEY UPDATE alive_until = w.until

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
  WHERE `key` = ? AND owner = ? AND token = ? AND home = 0 FOR UPDATE SKIP LOCKED) AS d)

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

-- dialect/mysql/move.sql: depart
UPDATE /* rowlock depart */ `rowlock` SET home = ?, token = ?, owner = NULL, note = '', expires_at = UTC_TIMESTAMP(6)
WHERE `key` = ? AND owner = ? AND token = ? AND home = 0

-- dialect/mysql/move.sql: return
UPDATE /* rowlock return */ `rowlock` SET home = 0, token = ?, owner = NULL, note = '', expires_at = UTC_TIMESTAMP(6)
WHERE `key` = ? AND home = ? AND token >= ? AND token < ?

-- dialect/mysql/move.sql: recall
INSERT /* rowlock recall */ INTO `rowlock` (`key`, home, token, note, acquired_at, expires_at)
SELECT p.k, p.h, IF(p.h = 0, GREATEST(f.floor, p.t), p.t), '', UTC_TIMESTAMP(6),
  UTC_TIMESTAMP(6)
FROM (SELECT CAST(? AS BINARY) AS k, CAST(? AS SIGNED) AS h, CAST(? AS SIGNED) AS t)
  AS p STRAIGHT_JOIN `rowlock_floor` AS f FORCE INDEX (PRIMARY) ON f.bucket = ?
WHERE p.h = 0 OR f.floor < p.t OR (SELECT COUNT(*) FROM `rowlock` AS r FORCE INDEX (PRIMARY)
  WHERE r.`key` = p.k) = 1
/*M! LOCK IN SHARE MODE */ /*!80000 FOR SHARE OF f */
ON DUPLICATE KEY UPDATE home = IF(`rowlock`.token < p.t, p.h, `rowlock`.home),
  owner = IF(`rowlock`.token < p.t, NULL, `rowlock`.owner),
  note = IF(`rowlock`.token < p.t, '', `rowlock`.note),
    expires_at = IF(`rowlock`.token < p.t, UTC_TIMESTAMP(6), `rowlock`.expires_at),
  token = GREATEST(`rowlock`.token, p.t)

-- dialect/mysql/move.sql: confirm-home
UPDATE /* rowlock confirm-home */ `rowlock` SET acquired_at = acquired_at + INTERVAL 1 MICROSECOND
  WHERE `key` = ? AND home = ? AND token >= ? AND token < ?

-- dialect/mysql/move.sql: fence-at
SELECT /* rowlock fence-at */ token FROM `rowlock` WHERE `key` = ? AND home = ? AND token BETWEEN ? AND ? FOR UPDATE

-- dialect/mysql/move.sql: fence-at-token
UPDATE /* rowlock fence-at-token */ `rowlock` SET token = ? WHERE `key` = ?

-- dialect/mysql/once.sql: once-peek
SELECT /* rowlock once-peek */ 1 FROM `rowlock_once` WHERE tenant = ? AND `key` = ? /*!80001 FOR SHARE NOWAIT */

-- dialect/mysql/once.sql: once-claim
/*M! SET STATEMENT innodb_lock_wait_timeout = @wait FOR */ INSERT /* rowlock once-claim */ INTO `rowlock_once` (tenant, `key`,
  fingerprint, made_at, expires_at)
VALUES (?, ?, ?, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND)

-- dialect/mysql/once.sql: once-look
SELECT /* rowlock once-look */ IF(expires_at > UTC_TIMESTAMP(6), 2, 3) AS state, fingerprint, result
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

-- dialect/mysql/once.sql: once-sweep
DELETE /* rowlock once-sweep */ o FROM (SELECT tenant AS t, `key` AS k FROM `rowlock_once` FORCE INDEX (expires_at)
               WHERE expires_at <= UTC_TIMESTAMP(6) ORDER BY expires_at LIMIT ?
                 FOR UPDATE SKIP LOCKED) AS dead
STRAIGHT_JOIN `rowlock_once` AS o FORCE INDEX (PRIMARY) ON o.tenant = dead.t AND o.`key` = dead.k

-- dialect/mysql/queue.sql: queue-beat
UPDATE /* rowlock queue-beat */ JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$.k', o CHAR(32) PATH '$.o',
  c VARCHAR(510) PATH '$.c', d BIGINT PATH '$.d')) AS j
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
  h BIGINT PATH '$.h', c VARCHAR(510) PATH '$.c', d BIGINT PATH '$.d')) AS j
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
       CASE WHEN r.home <> 0 THEN 4
            WHEN r.owner = w.o AND r.expires_at > UTC_TIMESTAMP(6) THEN 1
            WHEN r.owner IS NOT NULL AND r.expires_at > UTC_TIMESTAMP(6) THEN 0
            ELSE 2 END AS state,
       q.waiter IS NOT NULL AS waits, COALESCE(r.token, 0) AS token, COALESCE(r.note, '') AS note,
       COALESCE(TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), r.expires_at), 0) AS remaining,
       COALESCE(q.ahead, 0) AS ahead
FROM want AS w
LEFT JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = w.k
LEFT JOIN line AS q ON q.`key` = w.k AND q.waiter = w.o

-- dialect/mysql/queue.sql: claim-update
/*M! SET STATEMENT innodb_lock_wait_timeout = 0 FOR */ UPDATE /* rowlock claim-update */ `rowlock` FORCE INDEX (PRIMARY)
SET token = LAST_INSERT_ID(token + 1), owner = ?, note = ?, acquired_at = UTC_TIMESTAMP(6),
  expires_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
WHERE `key` >= ? AND `key` < CONCAT(?, 0x00) AND home = 0 AND owner IS NULL
  AND token < 9223372036853727231
  AND NOT EXISTS (SELECT 1 FROM `rowlock_queue` AS q FORCE INDEX (PRIMARY)
                  WHERE q.`key` = ? AND q.`rank` IS NOT NULL AND q.alive_until > UTC_TIMESTAMP(6))
LIMIT 1

-- dialect/mysql/queue.sql: claim-ticket
UPDATE /* rowlock claim-ticket */ (SELECT `key` AS k FROM `rowlock`
        WHERE `key` = ? AND home = 0 AND (owner IS NULL OR expires_at <= UTC_TIMESTAMP(6))
          AND token < 9223372036853727231
        LIMIT 1 FOR UPDATE SKIP LOCKED) AS free
STRAIGHT_JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = free.k
STRAIGHT_JOIN `rowlock_queue` AS q FORCE INDEX (PRIMARY) ON q.`key` = r.`key` AND q.waiter = ?
SET r.token = LAST_INSERT_ID(r.token + 1), r.owner = ?, r.note = ?,
  r.acquired_at = UTC_TIMESTAMP(6),
    r.expires_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND, q.`rank` = NULL,
      q.alive_until = UTC_TIMESTAMP(6)
WHERE q.`rank` IS NOT NULL AND q.alive_until > UTC_TIMESTAMP(6)

-- dialect/mysql/queue.sql: claim-make
INSERT /* rowlock claim-make */ INTO `rowlock` (`key`, owner, token, acquired_at, expires_at, home)
SELECT ?, NULL, f.floor, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), 0
FROM `rowlock_floor` AS f WHERE f.bucket = ? AND f.floor < 9223372036853727231
  AND NOT EXISTS (SELECT 1 FROM `rowlock` AS r WHERE r.`key` = ?)
LOCK IN SHARE MODE

-- dialect/mysql/queue.sql: pass
UPDATE /* rowlock pass */ `rowlock` AS r FORCE INDEX (PRIMARY)
STRAIGHT_JOIN `rowlock_queue` AS q FORCE INDEX (PRIMARY) ON q.`key` = r.`key` AND q.waiter = ?
SET r.token = LAST_INSERT_ID(r.token + 1), r.owner = q.waiter, r.note = q.note,
  r.acquired_at = UTC_TIMESTAMP(6),
    r.expires_at = UTC_TIMESTAMP(6) + INTERVAL q.ttl MICROSECOND, q.`rank` = NULL,
      q.alive_until = UTC_TIMESTAMP(6)
WHERE r.`key` = ? AND r.owner = ? AND ? IN (r.token, 0) AND r.home = 0 AND r.token < 9223372036853727231
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

-- dialect/mysql/statements.sql: acquire-update
/*M! SET STATEMENT innodb_lock_wait_timeout = 0 FOR */ UPDATE /* rowlock acquire-update */ `rowlock` FORCE INDEX (PRIMARY)
SET token = LAST_INSERT_ID(token + 1), owner = ?, note = ?, acquired_at = UTC_TIMESTAMP(6),
  expires_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
WHERE `key` >= ? AND `key` < CONCAT(?, 0x00) AND home = 0 AND owner IS NULL
  AND token < 9223372036853727231
LIMIT 1

-- dialect/mysql/statements.sql: acquire-expired
UPDATE /* rowlock acquire-expired */ `rowlock` SET token = LAST_INSERT_ID(token + 1), owner = ?, note = ?,
  acquired_at = UTC_TIMESTAMP(6),
  expires_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
WHERE `key` = (SELECT k FROM (SELECT `key` AS k FROM `rowlock`
  WHERE `key` = ? AND home = 0 AND (owner IS NULL OR expires_at <= UTC_TIMESTAMP(6))
    AND token < 9223372036853727231
  FOR UPDATE SKIP LOCKED) AS d)

-- dialect/mysql/statements.sql: acquire-insert
INSERT /* rowlock acquire-insert */ INTO `rowlock` (`key`, owner, note, token, acquired_at, expires_at, home)
SELECT ?, ?, ?, LAST_INSERT_ID(f.floor + 1), UTC_TIMESTAMP(6),
  UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND, 0
FROM `rowlock_floor` AS f WHERE f.bucket = ? AND f.floor < 9223372036853727231
  AND NOT EXISTS (SELECT 1 FROM `rowlock` AS r WHERE r.`key` = ?)
LOCK IN SHARE MODE

-- dialect/mysql/statements.sql: look
SELECT /* rowlock look */ CASE WHEN home <> 0 THEN 4
            WHEN owner = ? AND expires_at > UTC_TIMESTAMP(6) THEN 7
            WHEN owner IS NOT NULL AND expires_at > UTC_TIMESTAMP(6) THEN 0
            WHEN token >= 9223372036853727231 THEN 3
            WHEN owner IS NOT NULL THEN 5
            ELSE 2 END AS state,
       token, note, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at) AS remaining
FROM `rowlock` WHERE `key` = ?

-- dialect/mysql/statements.sql: rows
SELECT /* rowlock rows */ j.n, r.home = 0 AS home, r.owner, r.token, r.note,
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
          c VARCHAR(510) CHARACTER SET latin1 PATH '$[4]', d BIGINT PATH '$[5]')) AS j
        STRAIGHT_JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
        WHERE r.home = 0 AND r.token = j.t
          AND (j.f = '' AND (r.owner IS NULL OR r.expires_at <= UTC_TIMESTAMP(6))
            OR r.owner = UNHEX(j.f))
        LIMIT 9223372036854775807 FOR UPDATE /*!80000 OF r */ SKIP LOCKED) AS mine
STRAIGHT_JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = mine.k
SET r.owner = mine.owner, r.note = mine.note, r.token = r.token + (mine.owner IS NOT NULL),
  r.acquired_at = IF(mine.owner IS NULL, r.acquired_at, UTC_TIMESTAMP(6)),
  r.expires_at = UTC_TIMESTAMP(6)
  + INTERVAL mine.ttl + 0 * LENGTH(@rowlock_done := CONCAT(@rowlock_done, ' ', mine.n)) MICROSECOND

-- dialect/mysql/statements.sql: applied
SELECT /* rowlock applied */ 0 AS n, 0 AS home, NULL AS owner, 0 AS token, COALESCE(@rowlock_done, '') AS note,
  0 AS remaining
UNION ALL
SELECT j.n, r.home = 0, r.owner, r.token, r.note,
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
                c VARCHAR(510) CHARACTER SET latin1 PATH '$[4]', d BIGINT PATH '$[5]')) AS j
              STRAIGHT_JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
              WHERE r.home = 0 AND r.token = j.t
                AND (j.f = '' AND (r.owner IS NULL OR r.expires_at <= UTC_TIMESTAMP(6))
                  OR r.owner = UNHEX(j.f))
              LIMIT 9223372036854775807 FOR UPDATE /*!80000 OF r */ SKIP LOCKED) AS d) AS mine
STRAIGHT_JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = mine.k AND mine.n = ?
SET r.owner = mine.owner, r.note = mine.note, r.token = r.token + (mine.owner IS NOT NULL),
  r.acquired_at = IF(mine.owner IS NULL, r.acquired_at, UTC_TIMESTAMP(6)),
  r.expires_at = UTC_TIMESTAMP(6) + INTERVAL mine.ttl MICROSECOND

-- dialect/mysql/statements.sql: create
INSERT /* rowlock create */ INTO `rowlock` (`key`, owner, note, token, acquired_at, expires_at, home)
SELECT UNHEX(j.k), UNHEX(NULLIF(j.o, '')), UNHEX(j.c), f.floor + (j.o <> ''), UTC_TIMESTAMP(6),
       UTC_TIMESTAMP(6) + INTERVAL j.d MICROSECOND, 0
FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) CHARACTER SET latin1 PATH '$[0]',
  o VARCHAR(32) CHARACTER SET latin1 PATH '$[3]',
  c VARCHAR(510) CHARACTER SET latin1 PATH '$[4]', d BIGINT PATH '$[5]',
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
        WHERE r.owner = UNHEX(j.o) AND r.token = j.t AND r.home = 0
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
WHERE r.owner = UNHEX(j.o) AND r.token = j.t AND r.home = 0
FOR UPDATE /*!80000 OF r */ SKIP LOCKED

-- dialect/mysql/statements.sql: renew-look
SELECT /* rowlock renew-look */ j.n, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', r.expires_at) = j.d AS extended,
       TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), r.expires_at) AS remaining
FROM JSON_TABLE(?, '$[*]' COLUMNS (n FOR ORDINALITY, k VARCHAR(510) PATH '$.k',
  o CHAR(32) PATH '$.o', t BIGINT PATH '$.t', d BIGINT PATH '$.d')) AS j
STRAIGHT_JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
WHERE r.owner = UNHEX(j.o) AND r.token = j.t AND r.home = 0

-- dialect/mysql/statements.sql: confirm
UPDATE /* rowlock confirm */ `rowlock` SET expires_at = GREATEST(expires_at + INTERVAL 1 MICROSECOND,
  UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND)
WHERE `key` = ? AND owner = ? AND token = ? AND home = 0 AND expires_at > UTC_TIMESTAMP(6)

-- dialect/mysql/statements.sql: release
UPDATE /* rowlock release */ `rowlock` SET owner = NULL, note = '', expires_at = UTC_TIMESTAMP(6)
WHERE `key` = ? AND owner = ? AND ? IN (token, 0) AND home = 0

-- dialect/mysql/statements.sql: hand-over
UPDATE /* rowlock hand-over */ `rowlock` SET token = token + 1, owner = ?, note = ?, acquired_at = UTC_TIMESTAMP(6),
  expires_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
WHERE `key` = ? AND owner = ? AND token = ? AND home = 0 AND token < 9223372036853727231

-- dialect/mysql/statements.sql: inspect
SELECT /* rowlock inspect */ r.`key`, r.owner, r.token, r.note,
  r.owner IS NOT NULL AND r.expires_at > UTC_TIMESTAMP(6) AS held,
       TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), r.expires_at) AS remaining,
       TIMESTAMPDIFF(MICROSECOND, r.acquired_at, UTC_TIMESTAMP(6)) AS age, r.home
FROM (SELECT ? AS bounds, ? AS prefix_length, ? AS held_only) AS p
STRAIGHT_JOIN `rowlock` AS r
WHERE r.`key` > UNHEX(JSON_UNQUOTE(JSON_EXTRACT(p.bounds, '$[0]')))
  AND LEFT(r.`key`, p.prefix_length) = UNHEX(JSON_UNQUOTE(JSON_EXTRACT(p.bounds, '$[1]')))
  AND (p.held_only = 0 OR r.owner IS NOT NULL AND r.expires_at > UTC_TIMESTAMP(6))
ORDER BY r.`key` LIMIT ?

-- dialect/mysql/statements.sql: inspect-keys
SELECT /* rowlock inspect-keys */ r.`key`, r.owner, r.token, r.note,
  r.owner IS NOT NULL AND r.expires_at > UTC_TIMESTAMP(6) AS held,
       TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), r.expires_at) AS remaining,
       TIMESTAMPDIFF(MICROSECOND, r.acquired_at, UTC_TIMESTAMP(6)) AS age, r.home
FROM (SELECT ? AS bounds, ? AS prefix_length, ? AS held_only) AS p
STRAIGHT_JOIN JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$')) AS j
STRAIGHT_JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
WHERE r.`key` > UNHEX(JSON_UNQUOTE(JSON_EXTRACT(p.bounds, '$[0]')))
  AND LEFT(r.`key`, p.prefix_length) = UNHEX(JSON_UNQUOTE(JSON_EXTRACT(p.bounds, '$[1]')))
  AND (p.held_only = 0 OR r.owner IS NOT NULL AND r.expires_at > UTC_TIMESTAMP(6))
ORDER BY r.`key` LIMIT ?

-- dialect/mysql/statements.sql: fence
SELECT /* rowlock fence */ TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at) AS remaining FROM `rowlock`
WHERE `key` = ? AND owner = ? AND token = ? AND home = 0 FOR UPDATE

-- dialect/mysql/statements.sql: fence-extend
UPDATE /* rowlock fence-extend */ `rowlock` SET expires_at = GREATEST(expires_at, UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND)
WHERE `key` = ? AND expires_at > UTC_TIMESTAMP(6)

-- dialect/mysql/statements.sql: release-tx
UPDATE /* rowlock release-tx */ `rowlock` SET owner = NULL, note = '', expires_at = UTC_TIMESTAMP(6)
WHERE `key` = ? AND owner = ? AND token = ? AND home = 0

-- dialect/mysql/statements.sql: instance
SELECT /* rowlock instance */ value FROM `rowlock_meta` WHERE name = 'instance'

-- dialect/mysql/statements.sql: schema-version
SELECT /* rowlock schema-version */ value FROM `rowlock_meta` WHERE name = 'schema_version'

-- dialect/mysql/statements.sql: complete
SELECT /* rowlock complete */ (SELECT count(*) FROM `rowlock_floor`),
  (SELECT count(*) FROM `rowlock_meta` WHERE name = 'instance')

-- dialect/mysql/statements.sql: floor-lock
SELECT /* rowlock floor-lock */ floor FROM `rowlock_floor` WHERE bucket = ? FOR UPDATE

-- dialect/mysql/statements.sql: floor-raise
UPDATE /* rowlock floor-raise */ `rowlock_floor` SET floor = GREATEST(floor, ?) WHERE bucket = ?

-- dialect/mysql/statements.sql: dead
SELECT /* rowlock dead */ `key`, dead FROM (
  SELECT `key`,
    home = 0 AND expires_at <= UTC_TIMESTAMP(6) - INTERVAL p.retention MICROSECOND AS dead,
         ROW_NUMBER() OVER (ORDER BY `key`) AS n
  FROM (SELECT `key`, home, expires_at FROM `rowlock` WHERE `key` > ? ORDER BY `key` LIMIT ?) AS page,
       (SELECT ? AS retention) AS p
) AS w WHERE dead OR n = ? ORDER BY `key`

-- dialect/mysql/statements.sql: dead-lock
SELECT /* rowlock dead-lock */ r.`key`, r.token
FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$')) AS j
STRAIGHT_JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
WHERE r.home = 0 AND r.token < 9223372036853727231
  AND r.expires_at <= UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND
FOR UPDATE /*!80000 OF r */ SKIP LOCKED

-- dialect/mysql/statements.sql: reap
DELETE /* rowlock reap */ r FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$')) AS j
STRAIGHT_JOIN `rowlock` AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)

-- schema/statements/mysql.sql: exists
SELECT /* rowlock exists */ EXISTS (SELECT 1 FROM information_schema.tables
WHERE table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND table_name = ?)

-- schema/statements/mysql.sql: begin
START /* rowlock begin */ TRANSACTION

-- schema/statements/mysql.sql: lock
SELECT /* rowlock lock */ GET_LOCK('rowlock_migrate', 60) <=> 1

-- schema/statements/mysql.sql: commit
COMMIT /* rowlock commit */

-- schema/statements/mysql.sql: rollback
ROLLBACK /* rowlock rollback */

-- schema/statements/mysql.sql: unlock
SELECT /* rowlock unlock */ RELEASE_LOCK('rowlock_migrate') <=> 1
