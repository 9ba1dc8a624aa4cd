-- Latches and barriers, for Postgres. A write to a party's row names the id of the generation, so
-- that it has no effect after a reset. A write that repeats another changes the row, because a row
-- that was read proves nothing about durability: see confirm.

-- name: latch-look
-- $1 kind, $2 key
SELECT l.id, l.generation, l.parties, l.state, l.ended,
  CASE WHEN isfinite(l.expires_at)
         THEN (extract(epoch FROM l.expires_at - clock_timestamp()) * 1000000)::bigint END AS remaining,
  (SELECT count(*) FROM rowlock_party AS p WHERE p.id = l.id AND p.phase = 0) AS counted,
  0 AS gone, 0 AS dead
FROM rowlock_latch AS l WHERE l.kind = $1 AND l.key = $2

-- name: latch-make
-- $1 kind, $2 key, $3 id, $4 parties, $5 how long to keep it in µs. It leaves a row that exists as
-- it is.
INSERT INTO rowlock_latch (kind, key, id, generation, parties, made_at, expires_at)
VALUES ($1, $2, $3, 1, $4, clock_timestamp(),
  clock_timestamp() + $5::bigint * interval '1 microsecond')
ON CONFLICT (kind, key) DO NOTHING

-- name: latch-take
-- $1 id, $2 parties, $3 how long to keep it in µs, $4 kind, $5 key. Takes an expired row.
UPDATE rowlock_latch
SET id = $1, parties = $2, generation = generation + 1, state = 0, ended = 0,
  made_at = clock_timestamp(),
  expires_at = clock_timestamp() + $3::bigint * interval '1 microsecond'
WHERE kind = $4 AND key = $5 AND expires_at <= clock_timestamp()

-- name: latch-keep
-- $1 how long to keep it at least in µs, $2 kind, $3 key, $4 id. It always changes the row.
UPDATE rowlock_latch
SET made_at = made_at + interval '1 microsecond',
  expires_at = greatest(expires_at, clock_timestamp() + $1::bigint * interval '1 microsecond')
WHERE kind = $2 AND key = $3 AND id = $4 AND expires_at > clock_timestamp()

-- name: latch-reset
-- $1 the next id, $2 how long to keep it in µs, $3 kind, $4 key, $5 id, $6 the least state
UPDATE rowlock_latch
SET id = $1, generation = generation + 1, ended = state, state = 0, made_at = clock_timestamp(),
  expires_at = clock_timestamp() + $2::bigint * interval '1 microsecond'
WHERE kind = $3 AND key = $4 AND id = $5 AND state >= $6 AND expires_at > clock_timestamp()

-- name: latch-count
-- $1 party, $2 kind, $3 key, $4 id. It locks nothing but the party's own row.
INSERT INTO rowlock_party AS p (id, phase, party, counted_at)
SELECT l.id, 0, $1::bytea, clock_timestamp() FROM rowlock_latch AS l
WHERE l.kind = $2 AND l.key = $3 AND l.id = $4 AND l.expires_at > clock_timestamp()
ON CONFLICT (id, phase, party) DO UPDATE SET counted_at = p.counted_at + interval '1 microsecond'

-- name: barrier-look
-- $1 kind, $2 key
SELECT l.id, l.generation, l.parties, l.state, l.ended,
  CASE WHEN isfinite(l.expires_at)
         THEN (extract(epoch FROM l.expires_at - clock_timestamp()) * 1000000)::bigint END AS remaining,
  (SELECT count(*) FROM rowlock_party AS p WHERE p.id = l.id AND p.phase = 0) AS counted,
  (SELECT count(*) FROM rowlock_party AS p WHERE p.id = l.id AND p.phase = 1) AS gone,
  (SELECT count(*) FROM rowlock_party AS p
   WHERE p.id = l.id AND p.phase = 0 AND p.alive_until <= clock_timestamp()
     AND NOT EXISTS (SELECT 1 FROM rowlock_party AS g
                     WHERE g.id = p.id AND g.phase = 1 AND g.party = p.party)) AS dead
FROM rowlock_latch AS l WHERE l.kind = $1 AND l.key = $2

-- name: barrier-enter
-- $1 party, $2 how long it is alive in µs, $3 kind, $4 key, $5 id. Without FOR SHARE it could commit
-- after the opening, and be missed by a barrier-done that waits for the row with an older snapshot.
INSERT INTO rowlock_party AS p (id, phase, party, counted_at, alive_until)
SELECT l.id, 0, $1::bytea, clock_timestamp(),
  clock_timestamp() + $2::bigint * interval '1 microsecond'
FROM rowlock_latch AS l WHERE l.kind = $3 AND l.key = $4 AND l.id = $5
  AND l.state = 0 AND l.expires_at > clock_timestamp() FOR SHARE
ON CONFLICT (id, phase, party) DO UPDATE
  SET counted_at = p.counted_at + interval '1 microsecond', alive_until = excluded.alive_until

-- name: barrier-beat
-- $1 how long it is alive in µs, $2 id, $3 party. One that has left is none.
UPDATE rowlock_party
SET counted_at = counted_at + interval '1 microsecond', alive_until = clock_timestamp() + $1::bigint * interval '1 microsecond'
WHERE id = $2 AND phase = 0 AND party = $3
  AND NOT EXISTS (SELECT 1 FROM rowlock_party AS g WHERE g.id = $2 AND g.phase = 1 AND g.party = $3)

-- name: barrier-leave
-- $1 party, $2 kind, $3 key, $4 id, $5 party
INSERT INTO rowlock_party AS p (id, phase, party, counted_at)
SELECT l.id, 1, $1::bytea, clock_timestamp() FROM rowlock_latch AS l
WHERE l.kind = $2 AND l.key = $3 AND l.id = $4 AND l.state IN (1, 2)
  AND l.expires_at > clock_timestamp()
  AND EXISTS (SELECT 1 FROM rowlock_party AS e
              WHERE e.id = l.id AND e.phase = 0 AND e.party = $5::bytea)
ON CONFLICT (id, phase, party) DO UPDATE SET counted_at = p.counted_at + interval '1 microsecond'

-- name: barrier-open
-- $1 kind, $2 key, $3 id. For all parties at once the state decides: this or barrier-break.
UPDATE rowlock_latch AS l SET state = 1
WHERE l.kind = $1 AND l.key = $2 AND l.id = $3 AND l.state = 0
  AND (SELECT count(*) FROM rowlock_party AS p WHERE p.id = l.id AND p.phase = 0) >= l.parties
  AND NOT EXISTS (SELECT 1 FROM rowlock_party AS p
                  WHERE p.id = l.id AND p.phase = 0 AND p.alive_until <= clock_timestamp())

-- name: barrier-done
-- $1 kind, $2 key, $3 id
UPDATE rowlock_latch AS l SET state = 2
WHERE l.kind = $1 AND l.key = $2 AND l.id = $3 AND l.state = 1
  AND NOT EXISTS (SELECT 1 FROM rowlock_party AS p
                  WHERE p.id = l.id AND p.phase = 0
                    AND NOT EXISTS (SELECT 1 FROM rowlock_party AS g
                                    WHERE g.id = p.id AND g.phase = 1 AND g.party = p.party))

-- name: barrier-break
-- $1 kind, $2 key, $3 id
UPDATE rowlock_latch AS l SET state = 3
WHERE l.kind = $1 AND l.key = $2 AND l.id = $3 AND l.state IN (0, 1)
  AND EXISTS (SELECT 1 FROM rowlock_party AS p
              WHERE p.id = l.id AND p.phase = 0 AND p.alive_until <= clock_timestamp()
                AND NOT EXISTS (SELECT 1 FROM rowlock_party AS g
                                WHERE g.id = p.id AND g.phase = 1 AND g.party = p.party))

-- name: barrier-dead
-- $1 id. The first to die: parties that were told of it stop beating too, and die later.
SELECT p.party FROM rowlock_party AS p
WHERE p.id = $1 AND p.phase = 0 AND p.alive_until <= clock_timestamp()
  AND NOT EXISTS (SELECT 1 FROM rowlock_party AS g
                  WHERE g.id = p.id AND g.phase = 1 AND g.party = p.party)
ORDER BY p.alive_until, p.party LIMIT 1

-- name: latch-sweep
-- $1 limit
DELETE FROM rowlock_latch AS l
USING (SELECT kind, key FROM rowlock_latch WHERE expires_at <= statement_timestamp()
       LIMIT $1 FOR UPDATE SKIP LOCKED) AS dead
WHERE l.kind = dead.kind AND l.key = dead.key

-- name: latch-next
-- $1 the id to go on after. Returns the next id that has parties, and whether it is a latch's.
SELECT p.id, EXISTS (SELECT 1 FROM rowlock_latch AS l WHERE l.id = p.id)::int AS live
FROM rowlock_party AS p WHERE p.id > $1 AND octet_length(p.id) = 16
ORDER BY p.id LIMIT 1

-- name: latch-drop
-- $1 id, $2 limit
DELETE FROM rowlock_party AS p
USING (SELECT id, phase, party FROM rowlock_party WHERE id = $1 LIMIT $2) AS dead
WHERE p.id = dead.id AND p.phase = dead.phase AND p.party = dead.party
