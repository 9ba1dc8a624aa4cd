-- The statements for MySQL and MariaDB. The section names are the same in every dialect, and the server sees each as
-- a comment after the verb: SELECT /* rowlock look */ …. Three names are filled in. @placement is the placement of
-- the rows that these statements may change: 0 for leases, otherwise see lease.PlacementTransaction. @last_token is the
-- largest token that is ever granted, lease.MaxToken - 1. @era is the start of the session's era, which each of its
-- tokens is above; see era.sql.
--
-- Time is UTC_TIMESTAMP(6), because NOW() depends on the session's time zone, and a bare DATETIME
-- cuts to seconds. It is frozen when the statement begins, which is the safe side of both
-- comparisons. ON DUPLICATE KEY UPDATE is not used: its assignments run left to right and see each
-- other, and it counts 0, 1 or 2 rows. MariaDB alone reads /*M! … */. MySQL alone reads
-- /*!80000 … */ (MariaDB skips these versions), because MySQL would otherwise lock the JSON_TABLE
-- too, and cannot.

-- name: acquire-update
-- owner, note, ttl in µs, key, key again. The token comes back as the statement's insert id. Only a
-- row without owner matches, and such a row cannot be fenced. The key is given as a range that has
-- room for this one key. Of a range, and not of a single key, InnoDB first reads a locked row as it
-- was committed, and waits only if that matches (a semi-consistent read, under READ COMMITTED). So
-- the statement does not wait for a fence. LIMIT keeps it off the next row. A wait is only for
-- another taker's commit, and MariaDB can be told not to wait even for that. The setting must not
-- be the session's, because a transaction that skipped a locked row under it fails to commit (error
-- 1180, seen with 10.11).
/*M! SET STATEMENT innodb_lock_wait_timeout = 0 FOR */ UPDATE rowlock FORCE INDEX (PRIMARY)
SET token = LAST_INSERT_ID(GREATEST(token, @era) + 1), owner = ?, note = ?, acquired_at = UTC_TIMESTAMP(6),
  expires_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
WHERE `key` >= ? AND `key` < CONCAT(?, 0x00) AND placement = @placement AND owner IS NULL
  AND token BETWEEN 0 AND @last_token - 1
LIMIT 1

-- name: acquire-expired
-- owner, note, ttl in µs, key. As acquire-update, for a row that looked expired. Its previous
-- holder may be inside a fencing transaction, so the statement skips a locked row at once. The
-- derived table makes this slower, and possible.
UPDATE rowlock SET token = LAST_INSERT_ID(GREATEST(token, @era) + 1), owner = ?, note = ?,
  acquired_at = UTC_TIMESTAMP(6), expires_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
WHERE `key` = (SELECT k FROM (SELECT `key` AS k FROM rowlock
  WHERE `key` = ? AND placement = @placement AND (owner IS NULL OR expires_at <= UTC_TIMESTAMP(6))
    AND token BETWEEN 0 AND @last_token - 1
  FOR UPDATE SKIP LOCKED) AS d)

-- name: acquire-insert
-- key, owner, note, ttl in µs, bucket, key. The statement share-locks the floor, so that the
-- reaper, which locks it exclusively before it deletes, cannot come between. A consistent read sees
-- an existing row, because the insert would wait for a transaction that has it locked, such as a
-- holder's that unlocks in a transaction. If two insert at once, one gets error 1062, which no
-- server logs.
INSERT INTO rowlock (`key`, owner, note, token, acquired_at, expires_at, placement)
SELECT ?, ?, ?, LAST_INSERT_ID(GREATEST(f.floor, @era) + 1), UTC_TIMESTAMP(6),
  UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND, @placement
FROM rowlock_floor AS f WHERE f.bucket = ? AND f.floor < @last_token
  AND NOT EXISTS (SELECT 1 FROM rowlock AS r WHERE r.`key` = ?)
LOCK IN SHARE MODE

-- name: seize
-- key. Whether no other transaction has the row locked: if an attempt in the same transaction finds
-- it free or expired, and does not change it, then a trigger keeps it as it is.
SELECT 1 FROM rowlock WHERE `key` = ? FOR UPDATE SKIP LOCKED

-- name: look
-- owner, key. A consistent read, which locks nothing and waits for no lock.
SELECT CASE WHEN placement <> @placement THEN 4
            WHEN owner = ? AND expires_at > UTC_TIMESTAMP(6) THEN 7
            WHEN owner IS NOT NULL AND expires_at > UTC_TIMESTAMP(6) THEN 0
            WHEN token NOT BETWEEN 0 AND @last_token - 1 THEN 3
            WHEN owner IS NOT NULL THEN 5
            ELSE 2 END AS state,
       token, LEFT(note, 384), TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at) AS remaining
FROM rowlock WHERE `key` = ?

-- name: rows
-- JSON array of hexadecimal keys. What a batch finds, by a consistent read.
SELECT j.n, r.placement = @placement AS placement, r.owner, r.token, LEFT(r.note, 384),
  TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), r.expires_at) AS remaining
FROM JSON_TABLE(?, '$[*]' COLUMNS (n FOR ORDINALITY,
  k VARCHAR(510) CHARACTER SET latin1 PATH '$')) AS j
STRAIGHT_JOIN rowlock AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)

-- name: apply
-- batch, JSON array of [k, f, t, o, c, d]: hexadecimal key and present owner ('': free), present
-- token, next owner ('': free), hexadecimal note, ttl in µs; keys in order. As renew: one
-- statement, which locks in the array's order what no other transaction has locked. Every token was
-- read or expected before, so that the granted token is known. The owner or the token of every row
-- changes, so that a driver which counts changed rows and one which counts matched rows agree.
--
-- MySQL has no UPDATE … RETURNING, so the statement notes which changes it makes. It evaluates the
-- assignments once for each row that it changes, and for no other, and one of them appends the
-- change's number to @rowlock_done. The table b has one row and is read before all others. It
-- begins the note with the batch's name, which identifies the note.
UPDATE (SELECT j.n, r.`key` AS k, UNHEX(NULLIF(j.o, '')) AS owner, UNHEX(j.c) AS note, j.d AS ttl
        FROM (SELECT @rowlock_done := ? AS batch) AS b
        STRAIGHT_JOIN JSON_TABLE(?, '$[*]' COLUMNS (n FOR ORDINALITY,
          k VARCHAR(510) CHARACTER SET latin1 PATH '$[0]',
          f VARCHAR(32) CHARACTER SET latin1 PATH '$[1]',
          t BIGINT PATH '$[2]', o VARCHAR(32) CHARACTER SET latin1 PATH '$[3]',
          c VARCHAR(768) CHARACTER SET latin1 PATH '$[4]', d BIGINT PATH '$[5]')) AS j
        STRAIGHT_JOIN rowlock AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
        WHERE r.placement = @placement AND r.token = j.t
          AND (j.f = '' AND (r.owner IS NULL OR r.expires_at <= UTC_TIMESTAMP(6))
            OR r.owner = UNHEX(j.f))
        LIMIT 9223372036854775807 FOR UPDATE /*!80000 OF r */ SKIP LOCKED) AS mine
STRAIGHT_JOIN rowlock AS r FORCE INDEX (PRIMARY) ON r.`key` = mine.k
SET r.owner = mine.owner, r.note = mine.note,
  r.token = IF(mine.owner IS NULL, r.token, GREATEST(r.token, @era) + 1),
  r.acquired_at = IF(mine.owner IS NULL, r.acquired_at, UTC_TIMESTAMP(6)),
  r.expires_at = UTC_TIMESTAMP(6)
  + INTERVAL mine.ttl + 0 * LENGTH(@rowlock_done := CONCAT(@rowlock_done, ' ', mine.n)) MICROSECOND

-- name: applied
-- JSON array of hexadecimal keys. As rows, and a row 0 with the note of apply. The note comes from
-- the session and not from a row, so that it says what this session did, whatever has changed the
-- rows since.
SELECT 0 AS n, 0 AS placement, NULL AS owner, 0 AS token, COALESCE(@rowlock_done, '') AS note,
  0 AS remaining
UNION ALL
SELECT j.n, r.placement = @placement, r.owner, r.token, LEFT(r.note, 384),
  TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), r.expires_at)
FROM JSON_TABLE(?, '$[*]' COLUMNS (n FOR ORDINALITY,
  k VARCHAR(510) CHARACTER SET latin1 PATH '$')) AS j
STRAIGHT_JOIN rowlock AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)

-- name: apply-all
-- JSON array as for apply, and its length. The window counts what could be locked before the
-- statement writes anything, so that the count of rows says whether all were changed, or none.
UPDATE (SELECT d.*, COUNT(*) OVER () AS n
        FROM (SELECT r.`key` AS k, UNHEX(NULLIF(j.o, '')) AS owner, UNHEX(j.c) AS note, j.d AS ttl
              FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) CHARACTER SET latin1 PATH '$[0]',
                f VARCHAR(32) CHARACTER SET latin1 PATH '$[1]',
                t BIGINT PATH '$[2]', o VARCHAR(32) CHARACTER SET latin1 PATH '$[3]',
                c VARCHAR(768) CHARACTER SET latin1 PATH '$[4]', d BIGINT PATH '$[5]')) AS j
              STRAIGHT_JOIN rowlock AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
              WHERE r.placement = @placement AND r.token = j.t
                AND (j.f = '' AND (r.owner IS NULL OR r.expires_at <= UTC_TIMESTAMP(6))
                  OR r.owner = UNHEX(j.f))
              LIMIT 9223372036854775807 FOR UPDATE /*!80000 OF r */ SKIP LOCKED) AS d) AS mine
STRAIGHT_JOIN rowlock AS r FORCE INDEX (PRIMARY) ON r.`key` = mine.k AND mine.n = ?
SET r.owner = mine.owner, r.note = mine.note,
  r.token = IF(mine.owner IS NULL, r.token, GREATEST(r.token, @era) + 1),
  r.acquired_at = IF(mine.owner IS NULL, r.acquired_at, UTC_TIMESTAMP(6)),
  r.expires_at = UTC_TIMESTAMP(6) + INTERVAL mine.ttl MICROSECOND

-- name: apply-any
-- batch, JSON array as for apply, how many to take, and that number again: so many, or none. As
-- apply, it locks in the array's order what no other transaction has locked, and LIMIT stops it at
-- the last that it takes. The window counts before the statement writes anything. The number of the
-- change comes back as the statement's insert id, which is enough for one; the note has them all.
UPDATE (SELECT d.*, COUNT(*) OVER () AS total
        FROM (SELECT j.n, r.`key` AS k, UNHEX(j.o) AS owner, UNHEX(j.c) AS note, j.d AS ttl
              FROM (SELECT @rowlock_done := ? AS batch) AS b
              STRAIGHT_JOIN JSON_TABLE(?, '$[*]' COLUMNS (n FOR ORDINALITY,
                k VARCHAR(510) CHARACTER SET latin1 PATH '$[0]',
                t BIGINT PATH '$[2]', o VARCHAR(32) CHARACTER SET latin1 PATH '$[3]',
                c VARCHAR(768) CHARACTER SET latin1 PATH '$[4]', d BIGINT PATH '$[5]')) AS j
              STRAIGHT_JOIN rowlock AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
              WHERE r.placement = @placement AND r.token = j.t
                AND (r.owner IS NULL OR r.expires_at <= UTC_TIMESTAMP(6))
              LIMIT ? FOR UPDATE /*!80000 OF r */ SKIP LOCKED) AS d) AS mine
STRAIGHT_JOIN rowlock AS r FORCE INDEX (PRIMARY) ON r.`key` = mine.k AND mine.total = ?
SET r.owner = mine.owner, r.note = mine.note, r.token = GREATEST(r.token, @era) + 1,
  r.acquired_at = UTC_TIMESTAMP(6),
  r.expires_at = UTC_TIMESTAMP(6)
  + INTERVAL mine.ttl + 0 * LENGTH(@rowlock_done := CONCAT(@rowlock_done, ' ', mine.n))
    + 0 * LAST_INSERT_ID(mine.n) MICROSECOND

-- name: create
-- JSON array as for apply, with the bucket b as the last of each. As acquire-insert, it share-locks
-- the floors, and a consistent read sees an existing row. It counts the rows, because the server
-- may make NOT EXISTS into a join that reads the whole table.
INSERT INTO rowlock (`key`, owner, note, token, acquired_at, expires_at, placement)
SELECT UNHEX(j.k), UNHEX(NULLIF(j.o, '')), UNHEX(j.c),
       IF(j.o = '', f.floor, GREATEST(f.floor, @era) + 1), UTC_TIMESTAMP(6),
       UTC_TIMESTAMP(6) + INTERVAL j.d MICROSECOND, @placement
FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) CHARACTER SET latin1 PATH '$[0]',
  o VARCHAR(32) CHARACTER SET latin1 PATH '$[3]',
  c VARCHAR(768) CHARACTER SET latin1 PATH '$[4]', d BIGINT PATH '$[5]',
  b SMALLINT PATH '$[6]')) AS j
STRAIGHT_JOIN rowlock_floor AS f FORCE INDEX (PRIMARY) ON f.bucket = j.b
WHERE f.floor < @last_token
  AND (SELECT COUNT(*) FROM rowlock AS r FORCE INDEX (PRIMARY) WHERE r.`key` = UNHEX(j.k)) = 0
/*M! LOCK IN SHARE MODE */ /*!80000 FOR SHARE OF f */

-- name: renew
-- JSON array of {k, o, t, d}: hexadecimal key and owner, token, ttl in µs; keys in order. One
-- statement and no transaction: a client that vanishes between BEGIN and COMMIT would have its rows
-- locked until the server ends its session, which on MySQL takes hours. The derived table leaves
-- out what is locked, such as the rows of the holder's own fence, for which an UPDATE would wait.
-- This statement locks and changes what it finds. LIMIT keeps the derived table from being merged
-- into the UPDATE. STRAIGHT_JOIN locks in the array's order, so that overlapping batches cannot
-- deadlock. FORCE INDEX keeps the optimizer from scanning, and locking, a table that it thinks
-- small. The clock comes back as the statement's insert id.
UPDATE (SELECT r.`key` AS k, j.d AS ttl
        FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$.k', o CHAR(32) PATH '$.o',
          t BIGINT PATH '$.t', d BIGINT PATH '$.d')) AS j
        STRAIGHT_JOIN rowlock AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
        WHERE r.owner = UNHEX(j.o) AND r.token = j.t AND r.placement = @placement
          AND r.expires_at > UTC_TIMESTAMP(6)
        LIMIT 9223372036854775807 FOR UPDATE /*!80000 OF r */ SKIP LOCKED) AS mine
STRAIGHT_JOIN rowlock AS r FORCE INDEX (PRIMARY) ON r.`key` = mine.k
SET r.expires_at = UTC_TIMESTAMP(6)
  + INTERVAL mine.ttl + 0 * LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01',
    UTC_TIMESTAMP(6))) MICROSECOND

-- name: renew-lock
-- JSON array of {k, o, t, d}: as for renew, but d is the expiry that renew gave, in µs of the
-- clock. Returns those that can be locked. An expired row that can be locked is lost. The locks
-- last only as long as the statement.
SELECT j.n, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', r.expires_at) = j.d AS extended,
       TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), r.expires_at) AS remaining,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) AS clock
FROM JSON_TABLE(?, '$[*]' COLUMNS (n FOR ORDINALITY, k VARCHAR(510) PATH '$.k',
  o CHAR(32) PATH '$.o', t BIGINT PATH '$.t', d BIGINT PATH '$.d')) AS j
STRAIGHT_JOIN rowlock AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
WHERE r.owner = UNHEX(j.o) AND r.token = j.t AND r.placement = @placement
FOR UPDATE /*!80000 OF r */ SKIP LOCKED

-- name: renew-look
-- JSON array as for renew-lock. Returns those that could not be locked and still name this owner
-- and token, and what remains of them. A consistent read, which sees what is committed.
SELECT j.n, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', r.expires_at) = j.d AS extended,
       TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), r.expires_at) AS remaining
FROM JSON_TABLE(?, '$[*]' COLUMNS (n FOR ORDINALITY, k VARCHAR(510) PATH '$.k',
  o CHAR(32) PATH '$.o', t BIGINT PATH '$.t', d BIGINT PATH '$.d')) AS j
STRAIGHT_JOIN rowlock AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
WHERE r.owner = UNHEX(j.o) AND r.token = j.t AND r.placement = @placement

-- name: confirm
-- ttl in µs or 0, key, owner, token. The lease was read to be its owner's, and a read proves
-- nothing about durability: a commit that waits for a replica can be visible and on this server
-- alone. This commit comes after it in the log, so that its acknowledgement covers both. It always
-- changes the row, because a statement that changes nothing commits nothing. It never shortens the
-- lease, and extends it by the clock's resolution or to the ttl from now.
UPDATE rowlock SET expires_at = GREATEST(expires_at + INTERVAL 1 MICROSECOND,
  UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND)
WHERE `key` = ? AND owner = ? AND token = ? AND placement = @placement AND expires_at > UTC_TIMESTAMP(6)

-- name: raise
-- token, key, owner, token so far, token. A lease gets a larger token, or has it from an
-- earlier try. The row always changes, because a statement that changes nothing commits nothing,
-- and an earlier try may not have been acknowledged.
UPDATE rowlock SET token = ?, expires_at = expires_at + INTERVAL 1 MICROSECOND
WHERE `key` = ? AND owner = ? AND token IN (?, ?) AND placement = @placement
  AND expires_at > UTC_TIMESTAMP(6)

-- name: release
-- door, key, owner, token, or 0 for any token of this owner. The answer to an UPDATE carries
-- LAST_INSERT_ID: 1 if any process listens. To ask that costs nothing that can be measured.
UPDATE rowlock SET owner = NULL, expires_at = UTC_TIMESTAMP(6),
  note = IF(LAST_INSERT_ID(IS_USED_LOCK(?) IS NOT NULL), '', '')
WHERE `key` = ? AND owner = ? AND ? IN (token, 0) AND placement = @placement

-- name: release-awaited
-- door, key, process, and the rest as for release, where a process listened at the release before.
-- The answer has 2 besides if another process waits for the key. At READ COMMITTED the subquery
-- locks nothing. It takes as long as the rest of the statement.
UPDATE rowlock SET owner = NULL, expires_at = UTC_TIMESTAMP(6),
  note = IF(LAST_INSERT_ID((IS_USED_LOCK(?) IS NOT NULL) + 2 * EXISTS (
    SELECT 1 FROM rowlock_queue AS q FORCE INDEX (PRIMARY)
    WHERE q.`key` = ? AND NOT (q.waiter <=> ?) AND q.alive_until > UTC_TIMESTAMP(6))), '', '')
WHERE `key` = ? AND owner = ? AND ? IN (token, 0) AND placement = @placement

-- name: hand-over
-- next owner, note, ttl in µs, key, present owner and token
UPDATE rowlock SET token = GREATEST(token, @era) + 1, owner = ?, note = ?, acquired_at = UTC_TIMESTAMP(6),
  expires_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
WHERE `key` = ? AND owner = ? AND token = ? AND placement = @placement AND token BETWEEN 0 AND @last_token - 1

-- name: inspect
-- the key before the first, the last that is possible, held only, limit. What cannot
-- be read counts as held.
SELECT r.`key`, r.owner, r.token, LEFT(r.note, 384),
  r.owner IS NOT NULL AND r.expires_at > UTC_TIMESTAMP(6) AS held,
       TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), r.expires_at) AS remaining,
       TIMESTAMPDIFF(MICROSECOND, r.acquired_at, UTC_TIMESTAMP(6)) AS age, r.placement
FROM rowlock AS r
WHERE r.`key` > ? AND r.`key` <= ?
  AND (? = 0 OR r.owner IS NOT NULL AND (r.expires_at > UTC_TIMESTAMP(6)
    OR TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), r.expires_at) IS NULL))
ORDER BY r.`key` LIMIT ?

-- name: inspect-keys
-- keys as a JSON array, each once, and the rest as for inspect. This is not one statement with
-- inspect, because "no list, or in it" reads the whole table, and the list again for each row.
SELECT r.`key`, r.owner, r.token, LEFT(r.note, 384),
  r.owner IS NOT NULL AND r.expires_at > UTC_TIMESTAMP(6) AS held,
       TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), r.expires_at) AS remaining,
       TIMESTAMPDIFF(MICROSECOND, r.acquired_at, UTC_TIMESTAMP(6)) AS age, r.placement
FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$')) AS j
STRAIGHT_JOIN rowlock AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
WHERE r.`key` > ? AND r.`key` <= ?
  AND (? = 0 OR r.owner IS NOT NULL AND (r.expires_at > UTC_TIMESTAMP(6)
    OR TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), r.expires_at) IS NULL))
ORDER BY r.`key` LIMIT ?

-- name: fence
-- key, owner, token. Triggers of protected tables believe a mark of their session and of the row's
-- token, while the row has an owner, which release-tx clears. Numbers change a row in place. The
-- time changes for a driver that counts changed rows: the session may have marked the row before.
UPDATE rowlock SET fenced_by = CONNECTION_ID(), fenced_token = token,
  acquired_at = acquired_at + INTERVAL 1 MICROSECOND
WHERE `key` = ? AND owner = ? AND token = ? AND placement = @placement

-- name: fence-lock
-- key, owner, token. The fence of a transaction that may not write, without a mark.
SELECT 1 FROM rowlock WHERE `key` = ? AND owner = ? AND token = ? AND placement = @placement FOR UPDATE

-- name: fence-end
-- key. For a transaction that keeps the lock: a mark that is committed is believed in the next.
UPDATE rowlock SET fenced_by = 0 WHERE `key` = ? AND fenced_by = CONNECTION_ID()

-- name: fence-extend
-- ttl in µs, key, of a row that fence has locked. A separate statement, because UTC_TIMESTAMP is
-- that of a statement's beginning: after a wait for the row, an expired lease would look alive.
UPDATE rowlock SET expires_at = GREATEST(expires_at, UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND)
WHERE `key` = ? AND expires_at > UTC_TIMESTAMP(6)

-- name: release-tx
-- key, owner, token
UPDATE rowlock SET owner = NULL, note = '', expires_at = UTC_TIMESTAMP(6)
WHERE `key` = ? AND owner = ? AND token = ? AND placement = @placement

-- name: fenced-here
-- No transaction before has fenced by a token that is as young.
AND fenced_by = CONNECTION_ID() AND fenced_token = token

-- name: instance
SELECT value FROM rowlock_meta WHERE name = 'instance'

-- name: schema-version
SELECT v.value, f.value, v.name FROM rowlock_meta AS v LEFT JOIN rowlock_meta AS f
  ON f.name = REPLACE(v.name, 'schema_version', 'compatible_from') WHERE substr(v.name, 1, 14) = 'schema_version' ORDER BY v.name LIMIT 100

-- name: complete
SELECT count(*) FROM rowlock_floor

-- name: floor-lock
-- bucket
SELECT floor FROM rowlock_floor WHERE bucket = ? FOR UPDATE

-- name: floor-raise
-- floor, bucket
UPDATE rowlock_floor SET floor = GREATEST(floor, ?) WHERE bucket = ?

-- name: dead
-- after, number of rows to read, retention in µs, that number again. It walks the primary key,
-- because every renewal would write an index on the expiry. The result always has the last row that
-- was read, dead or not, from which the walk goes on.
SELECT `key`, dead FROM (
  SELECT `key`,
    placement = @placement AND expires_at <= UTC_TIMESTAMP(6) - INTERVAL p.retention MICROSECOND AS dead,
         ROW_NUMBER() OVER (ORDER BY `key`) AS n
  FROM (SELECT `key`, placement, expires_at FROM rowlock WHERE `key` > ? ORDER BY `key` LIMIT ?) AS page,
       (SELECT ? AS retention) AS p
) AS w WHERE dead OR n = ? ORDER BY `key`

-- name: dead-lock
-- keys as a JSON array, retention in µs. A row whose tokens have run out stays, because its floor
-- would exhaust the whole bucket.
SELECT r.`key`, r.token
FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$')) AS j
STRAIGHT_JOIN rowlock AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
WHERE r.placement = @placement AND r.token BETWEEN 0 AND @last_token - 1
  AND r.expires_at <= UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND
FOR UPDATE /*!80000 OF r */ SKIP LOCKED

-- name: reap
-- keys as a JSON array: rows that dead-lock has locked in this transaction
DELETE r FROM JSON_TABLE(?, '$[*]' COLUMNS (k VARCHAR(510) PATH '$')) AS j
STRAIGHT_JOIN rowlock AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
