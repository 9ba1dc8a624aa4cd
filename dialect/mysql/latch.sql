-- Latches and barriers, for MySQL and MariaDB. A write to a party's row names the id of the
-- generation, so that it has no effect after a reset. A write that repeats another changes the row,
-- because a row that was read proves nothing about durability: see confirm.

-- name: latch-look
-- kind, key
SELECT l.id, l.generation, l.parties, l.state, l.ended,
  TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), l.expires_at) AS remaining,
  (SELECT COUNT(*) FROM rowlock_party AS p WHERE p.id = l.id AND p.phase = 0) AS counted,
  0 AS gone, 0 AS dead
FROM rowlock_latch AS l WHERE l.kind = ? AND l.`key` = ?

-- name: latch-make
-- kind, key, id, parties, how long to keep it in µs. It leaves a row that exists as it is.
INSERT INTO rowlock_latch (kind, `key`, id, generation, parties, made_at, expires_at)
VALUES (?, ?, ?, 1, ?, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND)
ON DUPLICATE KEY UPDATE generation = generation

-- name: latch-take
-- id, parties, how long to keep it in µs, kind, key. Takes an expired row.
UPDATE rowlock_latch
SET id = ?, parties = ?, generation = generation + 1, state = 0, ended = 0,
  made_at = UTC_TIMESTAMP(6), expires_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
WHERE kind = ? AND `key` = ? AND expires_at <= UTC_TIMESTAMP(6)

-- name: latch-keep
-- how long to keep it at least in µs, kind, key, id. It always changes the row.
UPDATE rowlock_latch
SET made_at = made_at + INTERVAL 1 MICROSECOND,
  expires_at = GREATEST(expires_at, UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND)
WHERE kind = ? AND `key` = ? AND id = ? AND expires_at > UTC_TIMESTAMP(6)

-- name: latch-reset
-- the next id, how long to keep it in µs, kind, key, id, the least state
UPDATE rowlock_latch
SET id = ?, generation = generation + 1, ended = state, state = 0, made_at = UTC_TIMESTAMP(6),
  expires_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
WHERE kind = ? AND `key` = ? AND id = ? AND state >= ? AND expires_at > UTC_TIMESTAMP(6)

-- name: latch-count
-- party, kind, key, id. The session is READ COMMITTED, so that the SELECT locks nothing.
INSERT INTO rowlock_party (id, phase, party, counted_at)
SELECT l.id, 0, ?, UTC_TIMESTAMP(6) FROM rowlock_latch AS l
WHERE l.kind = ? AND l.`key` = ? AND l.id = ? AND l.expires_at > UTC_TIMESTAMP(6)
ON DUPLICATE KEY UPDATE counted_at = counted_at + INTERVAL 1 MICROSECOND

-- name: latch-put
-- id, party. For a transaction of the caller's, after latch-look. Under REPEATABLE READ latch-count
-- would lock the latch's row until that transaction ends.
INSERT INTO rowlock_party (id, phase, party, counted_at)
VALUES (?, 0, ?, UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE counted_at = counted_at + INTERVAL 1 MICROSECOND

-- name: barrier-look
-- kind, key
SELECT l.id, l.generation, l.parties, l.state, l.ended,
  TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), l.expires_at) AS remaining,
  (SELECT COUNT(*) FROM rowlock_party AS p WHERE p.id = l.id AND p.phase = 0) AS counted,
  (SELECT COUNT(*) FROM rowlock_party AS p WHERE p.id = l.id AND p.phase = 1) AS gone,
  (SELECT COUNT(*) FROM rowlock_party AS p
   WHERE p.id = l.id AND p.phase = 0 AND p.alive_until <= UTC_TIMESTAMP(6)
     AND NOT EXISTS (SELECT 1 FROM rowlock_party AS g
                     WHERE g.id = p.id AND g.phase = 1 AND g.party = p.party)) AS dead
FROM rowlock_latch AS l WHERE l.kind = ? AND l.`key` = ?

-- name: barrier-enter
-- party, how long it is alive in µs, kind, key, id
INSERT INTO rowlock_party (id, phase, party, counted_at, alive_until)
SELECT l.id, 0, ?, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
FROM rowlock_latch AS l
WHERE l.kind = ? AND l.`key` = ? AND l.id = ? AND l.state = 0 AND l.expires_at > UTC_TIMESTAMP(6)
ON DUPLICATE KEY UPDATE counted_at = counted_at + INTERVAL 1 MICROSECOND,
  alive_until = VALUES(alive_until)

-- name: barrier-beat
-- how long it is alive in µs, id, party. One that has left is none.
UPDATE rowlock_party AS p LEFT JOIN rowlock_party AS g ON g.id = p.id AND g.phase = 1 AND g.party = p.party
SET p.counted_at = p.counted_at + INTERVAL 1 MICROSECOND,
  p.alive_until = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
WHERE p.id = ? AND p.phase = 0 AND p.party = ? AND g.id IS NULL

-- name: barrier-leave
-- party, kind, key, id, party
INSERT INTO rowlock_party (id, phase, party, counted_at)
SELECT l.id, 1, ?, UTC_TIMESTAMP(6) FROM rowlock_latch AS l
WHERE l.kind = ? AND l.`key` = ? AND l.id = ? AND l.state IN (1, 2)
  AND l.expires_at > UTC_TIMESTAMP(6)
  AND EXISTS (SELECT 1 FROM rowlock_party AS p
              WHERE p.id = l.id AND p.phase = 0 AND p.party = ?)
ON DUPLICATE KEY UPDATE counted_at = counted_at + INTERVAL 1 MICROSECOND

-- name: barrier-open
-- kind, key, id. The state decides between barrier-open and barrier-break for all parties at once.
UPDATE rowlock_latch AS l SET l.state = 1
WHERE l.kind = ? AND l.`key` = ? AND l.id = ? AND l.state = 0
  AND (SELECT COUNT(*) FROM rowlock_party AS p WHERE p.id = l.id AND p.phase = 0) >= l.parties
  AND NOT EXISTS (SELECT 1 FROM rowlock_party AS p
                  WHERE p.id = l.id AND p.phase = 0 AND p.alive_until <= UTC_TIMESTAMP(6))

-- name: barrier-done
-- kind, key, id
UPDATE rowlock_latch AS l SET l.state = 2
WHERE l.kind = ? AND l.`key` = ? AND l.id = ? AND l.state = 1
  AND NOT EXISTS (SELECT 1 FROM rowlock_party AS p
                  WHERE p.id = l.id AND p.phase = 0
                    AND NOT EXISTS (SELECT 1 FROM rowlock_party AS g
                                    WHERE g.id = p.id AND g.phase = 1 AND g.party = p.party))

-- name: barrier-break
-- kind, key, id
UPDATE rowlock_latch AS l SET l.state = 3
WHERE l.kind = ? AND l.`key` = ? AND l.id = ? AND l.state IN (0, 1)
  AND EXISTS (SELECT 1 FROM rowlock_party AS p
              WHERE p.id = l.id AND p.phase = 0 AND p.alive_until <= UTC_TIMESTAMP(6)
                AND NOT EXISTS (SELECT 1 FROM rowlock_party AS g
                                WHERE g.id = p.id AND g.phase = 1 AND g.party = p.party))

-- name: barrier-dead
-- id. The first to die: parties that were told of it stop beating too, and die later.
SELECT p.party FROM rowlock_party AS p
WHERE p.id = ? AND p.phase = 0 AND p.alive_until <= UTC_TIMESTAMP(6)
  AND NOT EXISTS (SELECT 1 FROM rowlock_party AS g
                  WHERE g.id = p.id AND g.phase = 1 AND g.party = p.party)
ORDER BY p.alive_until, p.party LIMIT 1

-- name: latch-sweep
-- limit. The derived table leaves out what is locked; a DELETE alone would wait for it.
DELETE l FROM (SELECT kind AS n, `key` AS k FROM rowlock_latch
               WHERE expires_at <= UTC_TIMESTAMP(6) LIMIT ? FOR UPDATE SKIP LOCKED) AS dead
STRAIGHT_JOIN rowlock_latch AS l FORCE INDEX (PRIMARY) ON l.kind = dead.n AND l.`key` = dead.k

-- name: latch-next
-- the id to go on after. Returns the next id that has parties, and whether it is a latch's.
SELECT p.id, EXISTS (SELECT 1 FROM rowlock_latch AS l WHERE l.id = p.id) AS live
FROM rowlock_party AS p FORCE INDEX (PRIMARY)
WHERE p.id > ? ORDER BY p.id LIMIT 1

-- name: latch-drop
-- id, limit
DELETE FROM rowlock_party WHERE id = ? LIMIT ?
