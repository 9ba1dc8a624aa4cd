-- Statements for a cluster whose memory is a group of MySQL's Group Replication; see
-- paxosbridge/groupreplication. The record of a key is its row: open in the epoch of its token if
-- placement is @placement, and sealed if placement is -2. Rows are never removed. Nothing is
-- granted after an epoch's last token, because the next token would be of another epoch.

-- name: group-take
-- owner, note, ttl in µs, key, key again, the first token of the epoch and the first of the next.
-- It never makes a row. It checks the epoch in the statement that grants, because the key may be
-- sealed and opened again between a read and a grant. As acquire-update, but fences do not exist
-- here, so it takes what has expired at once.
UPDATE rowlock FORCE INDEX (PRIMARY)
SET token = LAST_INSERT_ID(token + 1), owner = ?, note = ?, acquired_at = UTC_TIMESTAMP(6),
  expires_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
WHERE `key` >= ? AND `key` < CONCAT(?, 0x00) AND placement = @placement
  AND (owner IS NULL OR expires_at <= UTC_TIMESTAMP(6))
  AND token >= ? AND token < ? AND token % 1099511627776 < 1099511627775 AND token < @last_token
LIMIT 1

-- name: group-look
-- owner, key
SELECT placement, token, COALESCE(owner = ?, 0) AND expires_at > UTC_TIMESTAMP(6) AS mine,
       owner IS NOT NULL AND expires_at > UTC_TIMESTAMP(6) AS held, LEFT(note, 384),
       TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at) AS remaining
FROM rowlock WHERE `key` = ?

-- name: group-confirm
-- key, owner, token. A primary that is cut off does not know it and still answers reads; to a write
-- it gets the group's answer. So this changes the row, in a column that does no harm.
UPDATE rowlock SET acquired_at = UTC_TIMESTAMP(6)
WHERE `key` = ? AND owner = ? AND token = ? AND placement = @placement AND expires_at > UTC_TIMESTAMP(6)

-- name: group-raise
-- key, placement, the first token of the epoch: opens or seals it, if the row is of an older epoch or there is none.
-- The server runs assignments from left to right, and each sees those before it, so the token comes last.
INSERT INTO rowlock (`key`, placement, token, note, acquired_at, expires_at)
  VALUES (?, ?, ?, '', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE placement = IF(token < VALUES(token), VALUES(placement), placement),
  owner = IF(token < VALUES(token), NULL, owner),
  note = IF(token < VALUES(token), '', note),
    expires_at = IF(token < VALUES(token), VALUES(expires_at), expires_at),
  token = GREATEST(token, VALUES(token))

-- name: group-seal
-- key, owner, token. It reads no clock, as depart.
UPDATE rowlock SET placement = -2, owner = NULL, note = '', expires_at = UTC_TIMESTAMP(6)
WHERE `key` = ? AND owner = ? AND token = ? AND placement = @placement

-- name: group-record
-- key
SELECT placement, token FROM rowlock WHERE `key` = ?

-- name: group-records
-- after, limit. A key that was never opened has no record.
SELECT `key`, placement, token FROM rowlock
WHERE `key` > ? AND (placement = @placement AND token >= 1099511627776 OR placement = -2)
ORDER BY `key` LIMIT ?

-- name: group-arrived
-- key, waiter
SELECT COUNT(*) FROM rowlock_queue WHERE `key` = ? AND waiter = ?

-- name: group-self
-- What a member knows of itself, and how many members it counts and can reach.
SELECT m.member_state, m.member_role,
       (SELECT COUNT(*) FROM performance_schema.replication_group_members) AS members,
       (SELECT COUNT(*) FROM performance_schema.replication_group_members
         WHERE member_state <> 'UNREACHABLE') AS reachable
FROM performance_schema.replication_group_members AS m WHERE m.member_id = @@server_uuid

-- name: group-settings
SHOW GLOBAL VARIABLES
  WHERE Variable_name IN ('group_replication_group_name', 'group_replication_single_primary_mode',
  'group_replication_exit_state_action', 'innodb_flush_log_at_trx_commit', 'sync_binlog',
    'binlog_error_action')
