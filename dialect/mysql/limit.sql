-- The limits of semaphores. What is granted is counted in a generation of the limit. A statement
-- that grants locks the limit to be read until it has committed, and grants nothing if the
-- generation has changed. So a count that was read in a generation misses no grant of an earlier
-- one.

-- name: limit-look
-- name
SELECT slots, peak, generation FROM rowlock_limit WHERE name = ?

-- name: limit-make
-- name, slots, peak
INSERT INTO rowlock_limit (name, slots, peak, generation) VALUES (?, ?, ?, 1)
ON DUPLICATE KEY UPDATE slots = slots

-- name: limit-resize
-- slots, slots, name
UPDATE rowlock_limit SET slots = ?, peak = GREATEST(peak, ?), generation = generation + 1
WHERE name = ?

-- name: apply-any-within
-- As apply-any, with the limit's name and generation after the batch. The limit is locked first,
-- because the derived table of one row is read first.
UPDATE (SELECT d.*, COUNT(*) OVER () AS total
        FROM (SELECT j.n, r.`key` AS k, UNHEX(j.o) AS owner, UNHEX(j.c) AS note, j.d AS ttl
              FROM (SELECT @rowlock_done := ? AS batch) AS b
              STRAIGHT_JOIN (SELECT 1 FROM rowlock_limit WHERE name = ? AND generation = ? LIMIT 1
                LOCK IN SHARE MODE) AS g
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

-- name: apply-within
-- As apply, of hand-overs only, with the limit's name and generation after the batch.
UPDATE (SELECT j.n, r.`key` AS k, UNHEX(j.o) AS owner, UNHEX(j.c) AS note, j.d AS ttl
        FROM (SELECT @rowlock_done := ? AS batch) AS b
        STRAIGHT_JOIN (SELECT 1 FROM rowlock_limit WHERE name = ? AND generation = ? LIMIT 1
          LOCK IN SHARE MODE) AS g
        STRAIGHT_JOIN JSON_TABLE(?, '$[*]' COLUMNS (n FOR ORDINALITY,
          k VARCHAR(510) CHARACTER SET latin1 PATH '$[0]',
          f VARCHAR(32) CHARACTER SET latin1 PATH '$[1]',
          t BIGINT PATH '$[2]', o VARCHAR(32) CHARACTER SET latin1 PATH '$[3]',
          c VARCHAR(768) CHARACTER SET latin1 PATH '$[4]', d BIGINT PATH '$[5]')) AS j
        STRAIGHT_JOIN rowlock AS r FORCE INDEX (PRIMARY) ON r.`key` = UNHEX(j.k)
        WHERE r.placement = @placement AND r.token = j.t AND r.token BETWEEN 0 AND @last_token - 1
          AND r.owner = UNHEX(j.f)
        LIMIT 9223372036854775807 FOR UPDATE /*!80000 OF r */ SKIP LOCKED) AS mine
STRAIGHT_JOIN rowlock AS r FORCE INDEX (PRIMARY) ON r.`key` = mine.k
SET r.owner = mine.owner, r.note = mine.note, r.token = GREATEST(r.token, @era) + 1,
  r.acquired_at = UTC_TIMESTAMP(6),
  r.expires_at = UTC_TIMESTAMP(6)
  + INTERVAL mine.ttl + 0 * LENGTH(@rowlock_done := CONCAT(@rowlock_done, ' ', mine.n)) MICROSECOND
