-- Latches and barriers, for SQLite. A write to a party's row names the id of the generation, so
-- that it has no effect after a reset. A write that repeats another changes the row, because a row
-- that was read proves nothing about durability: see confirm.

-- name: latch-look
-- kind, key
SELECT l.id, l.generation, l.parties, l.state, l.ended,
  (l.expires_at - CAST(unixepoch('subsec') * 1000 AS INTEGER)) * 1000 AS remaining,
  (SELECT COUNT(*) FROM rowlock_party AS p WHERE p.id = l.id AND p.phase = 0) AS counted,
  0 AS gone, 0 AS dead
FROM rowlock_latch AS l WHERE l.kind = ?1 AND l.key = ?2

-- name: latch-make
-- kind, key, id, parties, how long to keep it in µs. It leaves a row that exists as
-- it is.
INSERT INTO rowlock_latch (kind, key, id, generation, parties, made_at, expires_at)
VALUES (?1, ?2, ?3, 1, ?4, CAST(unixepoch('subsec') * 1000 AS INTEGER),
  CAST(unixepoch('subsec') * 1000 AS INTEGER) + (?5 + 999) / 1000)
ON CONFLICT (kind, key) DO NOTHING

-- name: latch-take
-- id, parties, how long to keep it in µs, kind, key. Takes an expired row.
UPDATE rowlock_latch
SET id = ?1, parties = ?2, generation = generation + 1, state = 0, ended = 0,
  made_at = CAST(unixepoch('subsec') * 1000 AS INTEGER),
    expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) + (?3 + 999) / 1000
WHERE kind = ?4 AND key = ?5 AND expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER)

-- name: latch-keep
-- how long to keep it at least in µs, kind, key, id. It always changes the row.
UPDATE rowlock_latch
SET made_at = made_at + 1,
  expires_at = MAX(expires_at, CAST(unixepoch('subsec') * 1000 AS INTEGER) + (?1 + 999) / 1000)
WHERE kind = ?2 AND key = ?3 AND id = ?4
  AND expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)

-- name: latch-reset
-- the next id, how long to keep it in µs, kind, key, id, the least state
UPDATE rowlock_latch
SET id = ?1, generation = generation + 1, ended = state, state = 0,
  made_at = CAST(unixepoch('subsec') * 1000 AS INTEGER),
  expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) + (?2 + 999) / 1000
WHERE kind = ?3 AND key = ?4 AND id = ?5 AND state >= ?6
  AND expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)

-- name: latch-count
-- party, kind, key, id. It locks nothing but the party's own row.
INSERT INTO rowlock_party AS p (id, phase, party, counted_at)
SELECT l.id, 0, ?1, CAST(unixepoch('subsec') * 1000 AS INTEGER) FROM rowlock_latch AS l
WHERE l.kind = ?2 AND l.key = ?3 AND l.id = ?4
  AND l.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)
ON CONFLICT (id, phase, party) DO UPDATE SET counted_at = p.counted_at + 1

-- name: barrier-look
-- kind, key
SELECT l.id, l.generation, l.parties, l.state, l.ended,
  (l.expires_at - CAST(unixepoch('subsec') * 1000 AS INTEGER)) * 1000 AS remaining,
  (SELECT COUNT(*) FROM rowlock_party AS p WHERE p.id = l.id AND p.phase = 0) AS counted,
  (SELECT COUNT(*) FROM rowlock_party AS p WHERE p.id = l.id AND p.phase = 1) AS gone,
  (SELECT COUNT(*) FROM rowlock_party AS p
    WHERE p.id = l.id AND p.phase = 0
     AND p.alive_until <= CAST(unixepoch('subsec') * 1000 AS INTEGER)
     AND NOT EXISTS (SELECT 1 FROM rowlock_party AS g
                     WHERE g.id = p.id AND g.phase = 1 AND g.party = p.party)) AS dead
FROM rowlock_latch AS l WHERE l.kind = ?1 AND l.key = ?2

-- name: barrier-enter
-- party, how long it is alive in µs, kind, key, id
INSERT INTO rowlock_party AS p (id, phase, party, counted_at, alive_until)
SELECT l.id, 0, ?1, CAST(unixepoch('subsec') * 1000 AS INTEGER),
  CAST(unixepoch('subsec') * 1000 AS INTEGER) + (?2 + 999) / 1000
FROM rowlock_latch AS l
WHERE l.kind = ?3 AND l.key = ?4 AND l.id = ?5 AND l.state = 0
  AND l.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)
ON CONFLICT (id, phase, party) DO UPDATE
  SET counted_at = p.counted_at + 1, alive_until = excluded.alive_until

-- name: barrier-beat
-- how long it is alive in µs, id, party. One that has left is none.
UPDATE rowlock_party
SET counted_at = counted_at + 1, alive_until = CAST(unixepoch('subsec') * 1000 AS INTEGER) + (?1 + 999) / 1000
WHERE id = ?2 AND phase = 0 AND party = ?3
  AND NOT EXISTS (SELECT 1 FROM rowlock_party AS g WHERE g.id = ?2 AND g.phase = 1 AND g.party = ?3)

-- name: barrier-leave
-- party, kind, key, id, party
INSERT INTO rowlock_party AS p (id, phase, party, counted_at)
SELECT l.id, 1, ?1, CAST(unixepoch('subsec') * 1000 AS INTEGER) FROM rowlock_latch AS l
WHERE l.kind = ?2 AND l.key = ?3 AND l.id = ?4 AND l.state IN (1, 2)
  AND l.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)
  AND EXISTS (SELECT 1 FROM rowlock_party AS e
              WHERE e.id = l.id AND e.phase = 0 AND e.party = ?5)
ON CONFLICT (id, phase, party) DO UPDATE SET counted_at = p.counted_at + 1

-- name: barrier-open
-- kind, key, id. The state decides between barrier-open and barrier-break for all parties
-- at once.
UPDATE rowlock_latch AS l SET state = 1
WHERE l.kind = ?1 AND l.key = ?2 AND l.id = ?3 AND l.state = 0
  AND (SELECT COUNT(*) FROM rowlock_party AS p WHERE p.id = l.id AND p.phase = 0) >= l.parties
  AND NOT EXISTS (SELECT 1 FROM rowlock_party AS p
                   WHERE p.id = l.id AND p.phase = 0
                    AND p.alive_until <= CAST(unixepoch('subsec') * 1000 AS INTEGER))

-- name: barrier-done
-- kind, key, id
UPDATE rowlock_latch AS l SET state = 2
WHERE l.kind = ?1 AND l.key = ?2 AND l.id = ?3 AND l.state = 1
  AND NOT EXISTS (SELECT 1 FROM rowlock_party AS p
                  WHERE p.id = l.id AND p.phase = 0
                    AND NOT EXISTS (SELECT 1 FROM rowlock_party AS g
                                    WHERE g.id = p.id AND g.phase = 1 AND g.party = p.party))

-- name: barrier-break
-- kind, key, id
UPDATE rowlock_latch AS l SET state = 3
WHERE l.kind = ?1 AND l.key = ?2 AND l.id = ?3 AND l.state IN (0, 1)
  AND EXISTS (SELECT 1 FROM rowlock_party AS p
               WHERE p.id = l.id AND p.phase = 0
                AND p.alive_until <= CAST(unixepoch('subsec') * 1000 AS INTEGER)
                AND NOT EXISTS (SELECT 1 FROM rowlock_party AS g
                                WHERE g.id = p.id AND g.phase = 1 AND g.party = p.party))

-- name: barrier-dead
-- id. The first to die: parties that were told of it stop beating too, and die later.
SELECT p.party FROM rowlock_party AS p
WHERE p.id = ?1 AND p.phase = 0 AND p.alive_until <= CAST(unixepoch('subsec') * 1000 AS INTEGER)
  AND NOT EXISTS (SELECT 1 FROM rowlock_party AS g
                  WHERE g.id = p.id AND g.phase = 1 AND g.party = p.party)
ORDER BY p.alive_until, p.party LIMIT 1

-- name: latch-sweep
-- limit
DELETE FROM rowlock_latch WHERE rowid IN (
  SELECT rowid FROM rowlock_latch
    WHERE expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER) LIMIT ?1)

-- name: latch-next
-- the id to go on after. Returns the next id that has parties, and whether it is a latch's.
SELECT p.id, EXISTS (SELECT 1 FROM rowlock_latch AS l WHERE l.id = p.id) AS live
FROM rowlock_party AS p WHERE p.id > ?1 AND length(p.id) = 16
ORDER BY p.id LIMIT 1

-- name: latch-drop
-- id, limit
DELETE FROM rowlock_party WHERE id = ?1 AND (phase, party) IN (
  SELECT phase, party FROM rowlock_party WHERE id = ?1 LIMIT ?2)
