-- Eras. Each statement that grants gives a token above that of the row and above the start of its
-- session's era, @era. A server that has forgotten grants, because a replica that lagged was promoted
-- or a backup was restored, has a history of its own, and the first session that meets it begins an
-- era above every token that was granted before.

-- name: era-session
-- schema, table. The session keeps its server's history. A proxy may give a client another session,
-- on another server or on the same one after a restore. That has no such variable; and if the proxy
-- repeats the client's SET there, it has another value. Every restore of the server's files starts it
-- again, and a restore of the table alone makes it anew. Uptime and UNIX_TIMESTAMP() are both of the
-- moment when the statement began.
SET @rowlock_history = (SELECT CONCAT('era/', @@server_uuid, '/',
  UNIX_TIMESTAMP() - (SELECT CAST(VARIABLE_VALUE AS SIGNED)
    FROM performance_schema.global_status WHERE VARIABLE_NAME = 'Uptime'), '/',
  COALESCE((SELECT UNIX_TIMESTAMP(t.CREATE_TIME) FROM information_schema.TABLES AS t
    WHERE t.TABLE_SCHEMA = COALESCE(NULLIF(?, ''), DATABASE()) AND t.TABLE_NAME = ?), '-')))

-- name: era-session-mariadb
-- As era-session. MariaDB servers have no names of their own that differ for certain.
SET @rowlock_history = (SELECT CONCAT('era/', @@hostname, '/', @@port, '/', @@server_id, '/',
  UNIX_TIMESTAMP() - (SELECT CAST(VARIABLE_VALUE AS SIGNED)
    FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'Uptime'), '/',
  COALESCE((SELECT UNIX_TIMESTAMP(t.CREATE_TIME) FROM information_schema.TABLES AS t
    WHERE t.TABLE_SCHEMA = COALESCE(NULLIF(?, ''), DATABASE()) AND t.TABLE_NAME = ?), '-')))

-- name: era-look
-- The session's history, the newest start (-1: none), how many histories are recorded, whether this
-- is the newest, whether the server takes no writes, and the larger compatible_from of two sets.
-- A history that is known and not the newest is that of a server to which others have failed back.
SELECT @rowlock_history, COALESCE((SELECT MAX(start) FROM rowlock_meta), -1),
  (SELECT COUNT(*) FROM rowlock_meta WHERE name LIKE 'era/%'),
  COALESCE((SELECT name FROM rowlock_meta WHERE name LIKE 'era/%' ORDER BY start DESC LIMIT 1)
    = @rowlock_history, 0), CAST(@@global.read_only AS CHAR) NOT IN ('0', 'OFF'),
  (SELECT value FROM rowlock_meta WHERE name IN ('compatible_from', 'compatible_from/shared') ORDER BY length(value) DESC, value DESC LIMIT 1)

-- name: era-make
-- The row that era-lock locks, if it is gone.
INSERT IGNORE INTO rowlock_meta (name, start, since) VALUES ('eras', 0, UTC_TIMESTAMP(6))

-- name: era-lock
-- One session at a time begins an era.
UPDATE rowlock_meta SET start = start WHERE name = 'eras'

-- name: era-fresh
-- Whether no key was ever granted, and the tables were made within the last five minutes.
SELECT NOT EXISTS (SELECT 1 FROM rowlock) AND (SELECT MAX(floor) FROM rowlock_floor) = 0
  AND (SELECT since FROM rowlock_meta WHERE name = 'eras') > UTC_TIMESTAMP(6) - INTERVAL 5 MINUTE

-- name: era-clock
-- In µs since 1970
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))

-- name: era-write
-- history, start
INSERT INTO rowlock_meta (name, start, since) VALUES (?, ?, UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE start = VALUES(start), since = VALUES(since)

-- name: era-kept
-- how many to keep: the start of the newest of the others
SELECT start FROM rowlock_meta WHERE name LIKE 'era/%' ORDER BY start DESC LIMIT ?, 1

-- name: era-drop
-- start
DELETE FROM rowlock_meta WHERE name LIKE 'era/%' AND start <= ?
