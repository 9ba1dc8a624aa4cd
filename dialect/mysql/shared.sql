-- Keys that are held by several members at once. The row of such a key has a reader group as its owner and no
-- end: it expires in the year 9999, so that every other statement finds it held. A reader group is called
-- rowlockT and its token. Its members have rows of their own, and only their own statements change those. The
-- reader group of 16 zero bytes are intents: callers that wait for the key exclusively.

-- name: share
-- note, JSON array of {k, o, t, d}: one hexadecimal key, owners, nothing, ttl in µs. A row that another
-- transaction has locked is skipped, unless it is locked to be read. The oldest intent refuses for 10 s, and
-- not for 1 s, and so on. The token comes back as the insert id. One that is a member already makes the
-- statement fail, so that a count of all rows says that this statement has made each.
INSERT INTO rowlock_member (`key`, reader_group, owner, note, joined_at, expires_at)
SELECT r.`key`, r.owner, UNHEX(j.o), ?, UTC_TIMESTAMP(6),
  UTC_TIMESTAMP(6) + INTERVAL j.d + 0 * LAST_INSERT_ID(r.token) MICROSECOND
FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) CHARACTER SET latin1 PATH '$.k',
  o CHAR(32) CHARACTER SET latin1 PATH '$.o', t BIGINT PATH '$.t', d BIGINT PATH '$.d')) AS j
STRAIGHT_JOIN rowlock AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
WHERE r.placement = @placement AND r.owner IS NOT NULL AND r.expires_at = '9999-01-01 00:00:00'
  AND COALESCE((SELECT TIMESTAMPDIFF(MICROSECOND, MIN(w.joined_at), UTC_TIMESTAMP(6)) % 11000000 < 10000000
      FROM rowlock_member AS w WHERE w.`key` = r.`key` AND w.reader_group = UNHEX('00000000000000000000000000000000')
        AND w.expires_at > UTC_TIMESTAMP(6)), 0) = 0
/*M! LOCK IN SHARE MODE SKIP LOCKED */ /*!80000 FOR SHARE OF r SKIP LOCKED */

-- name: share-one
-- owner, note, ttl in µs, key. As share, for one member. Whatever the count, if it is not 0, this
-- statement has written the member's row: the expiry of one that is there already always changes.
INSERT INTO rowlock_member (`key`, reader_group, owner, note, joined_at, expires_at)
SELECT r.`key`, r.owner, ?, ?, UTC_TIMESTAMP(6),
  UTC_TIMESTAMP(6) + INTERVAL ? + 0 * LAST_INSERT_ID(r.token) MICROSECOND
FROM rowlock AS r FORCE INDEX (PRIMARY)
WHERE r.`key` = ? AND r.placement = @placement AND r.owner IS NOT NULL AND r.expires_at = '9999-01-01 00:00:00'
  AND COALESCE((SELECT TIMESTAMPDIFF(MICROSECOND, MIN(w.joined_at), UTC_TIMESTAMP(6)) % 11000000 < 10000000
      FROM rowlock_member AS w WHERE w.`key` = r.`key` AND w.reader_group = UNHEX('00000000000000000000000000000000')
        AND w.expires_at > UTC_TIMESTAMP(6)), 0) = 0
/*M! LOCK IN SHARE MODE SKIP LOCKED */ /*!80000 FOR SHARE OF r SKIP LOCKED */
ON DUPLICATE KEY UPDATE
  expires_at = GREATEST(VALUES(expires_at), rowlock_member.expires_at + INTERVAL 1 MICROSECOND)

-- name: member-look
-- JSON array of hexadecimal keys. Of each key that a reader group holds: how many members live, the
-- longest remaining time in µs and that member's note, and whether an intent refuses new members.
SELECT r.`key`,
  (SELECT COUNT(*) FROM rowlock_member AS m WHERE m.`key` = r.`key` AND m.reader_group = r.owner
    AND m.expires_at > UTC_TIMESTAMP(6)),
  COALESCE((SELECT TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), MAX(m.expires_at))
    FROM rowlock_member AS m WHERE m.`key` = r.`key` AND m.reader_group = r.owner), 0),
  COALESCE((SELECT LEFT(m.note, 384) FROM rowlock_member AS m WHERE m.`key` = r.`key` AND m.reader_group = r.owner
    ORDER BY m.expires_at DESC LIMIT 1), ''),
  COALESCE((SELECT TIMESTAMPDIFF(MICROSECOND, MIN(w.joined_at), UTC_TIMESTAMP(6)) % 11000000 < 10000000
    FROM rowlock_member AS w WHERE w.`key` = r.`key` AND w.reader_group = UNHEX('00000000000000000000000000000000')
      AND w.expires_at > UTC_TIMESTAMP(6)), 0)
FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) CHARACTER SET latin1 PATH '$')) AS j
STRAIGHT_JOIN rowlock AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
WHERE r.placement = @placement AND r.owner IS NOT NULL AND r.expires_at = '9999-01-01 00:00:00'

-- name: member-others
-- JSON array of hexadecimal keys. Those that a reader group without a live member holds, and
-- whether an intent for the key lives.
SELECT r.`key`, EXISTS (SELECT 1 FROM rowlock_member AS w WHERE w.`key` = r.`key`
  AND w.reader_group = UNHEX('00000000000000000000000000000000') AND w.expires_at > UTC_TIMESTAMP(6))
FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) CHARACTER SET latin1 PATH '$')) AS j
STRAIGHT_JOIN rowlock AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
WHERE r.placement = @placement AND r.owner IS NOT NULL AND r.expires_at = '9999-01-01 00:00:00'
  AND (SELECT COUNT(*) FROM rowlock_member AS m FORCE INDEX (PRIMARY)
    WHERE m.`key` = r.`key` AND m.reader_group = r.owner AND m.expires_at > UTC_TIMESTAMP(6)) = 0

-- name: member-find
-- JSON array as for share. The members' reader groups.
SELECT m.`key`, m.owner, m.reader_group FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) CHARACTER SET latin1 PATH '$.k',
  o CHAR(32) CHARACTER SET latin1 PATH '$.o', t BIGINT PATH '$.t', d BIGINT PATH '$.d')) AS j
STRAIGHT_JOIN rowlock_member AS m FORCE INDEX (PRIMARY)
  ON m.`key` = UNHEX(j.k) AND m.owner = UNHEX(j.o)
WHERE m.reader_group <> UNHEX('00000000000000000000000000000000')

-- name: member-renew
-- JSON array of {k, o, t, d}: hexadecimal key and owner, token, ttl in µs. A member that has
-- expired stays so. One that the holder's own transaction has locked is skipped.
UPDATE (SELECT m.`key` AS k, m.reader_group, m.owner, j.d AS ttl
        FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) CHARACTER SET latin1 PATH '$.k',
  o CHAR(32) CHARACTER SET latin1 PATH '$.o', t BIGINT PATH '$.t', d BIGINT PATH '$.d')) AS j
        STRAIGHT_JOIN rowlock_member AS m FORCE INDEX (PRIMARY) ON m.`key` = UNHEX(j.k)
          AND m.reader_group = UNHEX(CONCAT('726F776C6F636B54', LPAD(HEX(j.t), 16, '0')))
          AND m.owner = UNHEX(j.o)
        WHERE m.expires_at > UTC_TIMESTAMP(6)
        LIMIT 9223372036854775807 FOR UPDATE /*!80000 OF m */ SKIP LOCKED) AS mine
STRAIGHT_JOIN rowlock_member AS m FORCE INDEX (PRIMARY)
  ON m.`key` = mine.k AND m.reader_group = mine.reader_group AND m.owner = mine.owner
SET m.expires_at = UTC_TIMESTAMP(6) + INTERVAL mine.ttl MICROSECOND

-- name: member-left
-- JSON array as for member-renew. What remains of each member in µs, as committed.
SELECT m.`key`, m.owner, m.reader_group, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), m.expires_at)
FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) CHARACTER SET latin1 PATH '$.k',
  o CHAR(32) CHARACTER SET latin1 PATH '$.o', t BIGINT PATH '$.t', d BIGINT PATH '$.d')) AS j
STRAIGHT_JOIN rowlock_member AS m FORCE INDEX (PRIMARY) ON m.`key` = UNHEX(j.k)
  AND m.reader_group = UNHEX(CONCAT('726F776C6F636B54', LPAD(HEX(j.t), 16, '0')))
  AND m.owner = UNHEX(j.o)

-- name: member-leave
-- JSON array as for member-renew, and its length: all of them leave, or none. As apply-all: the
-- window counts what could be locked before the statement removes anything.
DELETE m FROM (SELECT d.*, COUNT(*) OVER () AS n
        FROM (SELECT m.`key` AS k, m.reader_group, m.owner
              FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) CHARACTER SET latin1 PATH '$.k',
  o CHAR(32) CHARACTER SET latin1 PATH '$.o', t BIGINT PATH '$.t', d BIGINT PATH '$.d')) AS j
              STRAIGHT_JOIN rowlock_member AS m FORCE INDEX (PRIMARY) ON m.`key` = UNHEX(j.k)
                AND m.reader_group = UNHEX(CONCAT('726F776C6F636B54', LPAD(HEX(j.t), 16, '0')))
                AND m.owner = UNHEX(j.o)
              LIMIT 9223372036854775807 FOR UPDATE /*!80000 OF m */) AS d) AS mine
STRAIGHT_JOIN rowlock_member AS m FORCE INDEX (PRIMARY)
  ON m.`key` = mine.k AND m.reader_group = mine.reader_group AND m.owner = mine.owner AND mine.n = ?

-- name: member-leave-one
-- key, reader group, owner
DELETE FROM rowlock_member WHERE `key` = ? AND reader_group = ? AND owner = ?

-- name: member-rest
-- key, reader group. Whether a member of the reader group lives, in a statement after the commit of
-- member-leave-one: of two members that leave at once, the last sees none.
SELECT 1 FROM rowlock_member FORCE INDEX (PRIMARY)
WHERE `key` = ? AND reader_group = ? AND expires_at > UTC_TIMESTAMP(6) LIMIT 1

-- name: member-leave-tx
-- key, reader group, owner
DELETE FROM rowlock_member WHERE `key` = ? AND reader_group = ? AND owner = ?

-- name: member-dead
-- retention in µs, limit. Members and intents that have been dead for so long.
SELECT `key`, owner, reader_group FROM rowlock_member
WHERE expires_at <= UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND LIMIT ?

-- name: intend
-- waiter, life in µs, keys as a JSON array. An intent that lives keeps its age: assignments run from
-- left to right. All begin at multiples of 11 s: readers of several keys need them to admit at once.
INSERT INTO rowlock_member (`key`, reader_group, owner, joined_at, expires_at)
SELECT UNHEX(j.k), UNHEX('00000000000000000000000000000000'), ?,
  UTC_TIMESTAMP() + INTERVAL 5 SECOND - INTERVAL (UNIX_TIMESTAMP() + 5) % 11 SECOND,
  UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) CHARACTER SET latin1 PATH '$')) AS j WHERE TRUE
ON DUPLICATE KEY UPDATE
  joined_at = IF(rowlock_member.expires_at > UTC_TIMESTAMP(6), rowlock_member.joined_at, VALUES(joined_at)),
  expires_at = VALUES(expires_at)

-- name: unintend
-- keys as a JSON array, waiter
DELETE m FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) CHARACTER SET latin1 PATH '$')) AS j
STRAIGHT_JOIN rowlock_member AS m FORCE INDEX (PRIMARY)
  ON m.`key` = UNHEX(j.k) AND m.reader_group = UNHEX('00000000000000000000000000000000') AND m.owner = ?

-- name: readers-lock
-- key. It conflicts with a member that joins, and with every member's fence, and skips the row
-- then. Under READ COMMITTED the statements after it see what was committed before.
SELECT owner FROM rowlock
WHERE `key` = ? AND placement = @placement AND owner IS NOT NULL AND expires_at = '9999-01-01 00:00:00'
FOR UPDATE SKIP LOCKED

-- name: readers-clear
-- key, reader group, of a row that readers-lock has locked. It waits for a renewal that is under
-- way, and leaves what that has extended.
DELETE FROM rowlock_member WHERE `key` = ? AND reader_group = ? AND expires_at <= UTC_TIMESTAMP(6)

-- name: readers-left
-- key, reader group. A locking read, which is current under every isolation level.
SELECT 1 FROM rowlock_member WHERE `key` = ? AND reader_group = ? LIMIT 1 LOCK IN SHARE MODE

-- name: readers-end
-- key, reader group
UPDATE rowlock SET owner = NULL, note = '', expires_at = UTC_TIMESTAMP(6)
WHERE `key` = ? AND owner = ? AND placement = @placement

-- name: readers-make
-- reader group, key, owner, token. The holder's row becomes a reader group's.
UPDATE rowlock SET owner = ?, expires_at = '9999-01-01 00:00:00'
WHERE `key` = ? AND owner = ? AND token = ? AND placement = @placement AND expires_at > UTC_TIMESTAMP(6)

-- name: readers-first
-- owner, ttl in µs, key, reader group, of the row that readers-make has changed
INSERT INTO rowlock_member (`key`, reader_group, owner, note, joined_at, expires_at)
SELECT r.`key`, r.owner, ?, r.note, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
FROM rowlock AS r WHERE r.`key` = ? AND r.owner = ?

-- name: readers-idle
-- limit. Keys that a reader group without a live member holds.
SELECT r.`key` FROM rowlock AS r
WHERE r.placement = @placement AND r.owner IS NOT NULL AND r.expires_at = '9999-01-01 00:00:00'
  AND NOT EXISTS (SELECT 1 FROM rowlock_member AS m WHERE m.`key` = r.`key` AND m.reader_group = r.owner
    AND m.expires_at > UTC_TIMESTAMP(6))
LIMIT ?

-- name: readers-fence
-- key, reader group, token. Members' fences pass side by side. Whatever ends the reader group skips the row.
SELECT 1 FROM rowlock WHERE `key` = ? AND owner = ? AND token = ? AND placement = @placement
LOCK IN SHARE MODE

-- name: late-readers
-- Replaces @late for a key that readers share, none of whom has a lease any more.
r.expires_at = '9999-01-01 00:00:00' AND NOT EXISTS (SELECT 1 FROM rowlock_member AS m
  WHERE m.`key` = r.`key` AND m.reader_group = r.owner AND m.expires_at > UTC_TIMESTAMP(6))

-- name: force-members
-- key, reader group
DELETE FROM rowlock_member WHERE `key` = ? AND reader_group = ?
