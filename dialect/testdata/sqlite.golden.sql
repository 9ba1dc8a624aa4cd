-- Every statement as the server gets it.
-- Written by: go test ./dialect -run Golden -update

-- dialect/sqlite/cas.sql: cas-setup
SELECT /* rowlock cas-setup */ 0

-- dialect/sqlite/cas.sql: cas-look
SELECT /* rowlock cas-look */ CASE WHEN placement <> 0 THEN 4
            WHEN owner = ? AND expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER) THEN 7
            WHEN owner IS NOT NULL AND expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)
              THEN 0
            WHEN token NOT BETWEEN 0 AND 9223372036853727231 - 1 THEN 3
            WHEN owner IS NOT NULL THEN 5
            ELSE 2 END AS state,
       token, substr(note, 1, 384), (expires_at - CAST(unixepoch('subsec') * 1000 AS INTEGER)) * 1000 AS remaining,
         owner, expires_at AS expires
FROM "rowlock" WHERE key = ?

-- dialect/sqlite/cas.sql: cas-take-free
UPDATE /* rowlock cas-take-free */ "rowlock"
SET owner = ?, note = ?, expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
  + (? + 999) / 1000,
    acquired_at = CAST(unixepoch('subsec') * 1000 AS INTEGER), token = max(? - 1, @era) + 1
WHERE key = ? AND placement = 0 AND token = ? AND owner IS NULL

-- dialect/sqlite/cas.sql: cas-take
UPDATE /* rowlock cas-take */ "rowlock"
SET owner = ?, note = ?, expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
  + (? + 999) / 1000,
    acquired_at = CAST(unixepoch('subsec') * 1000 AS INTEGER), token = max(? - 1, @era) + 1
WHERE key = ? AND placement = 0 AND token = ? AND owner = ? AND expires_at = ?
  AND expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER)

-- dialect/sqlite/cas.sql: cas-insert
INSERT /* rowlock cas-insert */ INTO "rowlock" (key, owner, note, token, acquired_at, expires_at, placement)
SELECT ?, ?, ?, max(floor, @era) + 1, CAST(unixepoch('subsec') * 1000 AS INTEGER),
       CAST(unixepoch('subsec') * 1000 AS INTEGER) + (? + 999) / 1000, 0
FROM "rowlock_floor" WHERE bucket = ? AND floor < 9223372036853727231 - 1
ON CONFLICT (key) DO NOTHING

-- dialect/sqlite/cas.sql: cas-made
SELECT /* rowlock cas-made */ r.token, f.floor FROM "rowlock" AS r, "rowlock_floor" AS f WHERE f.bucket = ? AND r.key = ?

-- dialect/sqlite/cas.sql: cas-raise
UPDATE /* rowlock cas-raise */ "rowlock" SET token = max(? - 1, @era) + 1 WHERE key = ?

-- dialect/sqlite/cas.sql: cas-fence
UPDATE /* rowlock cas-fence */ "rowlock" SET token = token WHERE key = ? AND owner = ? AND token = ? AND placement = 0

-- dialect/sqlite/cas.sql: cas-floor
SELECT /* rowlock cas-floor */ floor FROM "rowlock_floor" WHERE bucket = ?

-- dialect/sqlite/cas.sql: cas-dead
SELECT /* rowlock cas-dead */ coalesce(max(r.token), -1) FROM json_each(?) AS j JOIN "rowlock" AS r ON r.key = unhex(j.value)
WHERE r.placement = 0 AND r.token BETWEEN 0 AND 9223372036853727231 - 1
  AND r.expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER) - ? / 1000

-- dialect/sqlite/cas.sql: cas-reap
DELETE /* rowlock cas-reap */ FROM "rowlock"
WHERE key IN (SELECT unhex(value) FROM json_each(?)) AND placement = 0
  AND expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER) - ? / 1000 AND token <= ?

-- dialect/sqlite/cas.sql: cas-drop-dead
DELETE /* rowlock cas-drop-dead */ FROM "rowlock_queue"
WHERE key = ? AND waiter = ? AND alive_until
  <= CAST(unixepoch('subsec') * 1000 AS INTEGER) - ? / 1000

-- dialect/sqlite/doctor.sql: doctor-expired
SELECT /* rowlock doctor-expired */ key, substr(note, 1, 384), token,
  (CAST(unixepoch('subsec') * 1000 AS INTEGER) - expires_at) * 1000 AS age
FROM "rowlock"
WHERE placement = 0 AND owner IS NOT NULL
  AND expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER) AND instr(note, char(11)) = 0
LIMIT ?1

-- dialect/sqlite/doctor.sql: doctor-left
SELECT /* rowlock doctor-left */ count(*), coalesce(sum(CASE WHEN age > ?1 THEN 1 ELSE 0 END), 0),
  coalesce(max(age), 0)
FROM (SELECT (CAST(unixepoch('subsec') * 1000 AS INTEGER) - @column) * 1000 AS age
  FROM @table WHERE @column <= CAST(unixepoch('subsec') * 1000 AS INTEGER)
  LIMIT ?2) AS d

-- dialect/sqlite/doctor.sql: doctor-waits
SELECT /* rowlock doctor-waits */ w.caller, h.caller AS holder, w.key, substr(w.note, 1, 384), w.process,
  (CAST(unixepoch('subsec') * 1000 AS INTEGER) - w.since) * 1000 AS waited
FROM "rowlock_wait" AS w
JOIN "rowlock" AS r ON r.key = w.key AND r.placement = 0
  AND r.owner IS NOT NULL AND r.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)
  AND (r.token = w.awaits OR r.token = -w.awaits AND r.expires_at < 253370764800000)
JOIN "rowlock_wait" AS h ON h.key = r.key AND h.token = r.token AND h.process = w.process
  AND h.alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE w.token = 0 AND w.alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER)
LIMIT ?1

-- dialect/sqlite/doctor.sql: doctor-bad
SELECT /* rowlock doctor-bad */ @key, what FROM (
  SELECT @key, CASE @tests END AS what FROM @table
) AS b WHERE what IS NOT NULL LIMIT ?1

-- dialect/sqlite/doctor.sql: doctor-bad-bytes
(length(@column) NOT @bounds)

-- dialect/sqlite/doctor.sql: doctor-bad-number
(typeof(@column) <> 'integer' OR @column NOT BETWEEN @bounds)

-- dialect/sqlite/doctor.sql: doctor-bad-time
(typeof(@column) <> 'integer' OR @column NOT BETWEEN -62135596800000 AND 253402300799999)

-- dialect/sqlite/doctor.sql: doctor-bad-note
(typeof(@column) <> 'text' OR length(CAST(@column AS BLOB)) > 384)

-- dialect/sqlite/doctor.sql: doctor-bad-far
(@column > CAST(unixepoch('subsec') * 1000 AS INTEGER) + @bounds * 86400000)

-- dialect/sqlite/doctor.sql: doctor-bad-lease
(owner IS NOT NULL AND @column <> 253370764800000 AND @column > CAST(unixepoch('subsec') * 1000 AS INTEGER) + @bounds * 86400000)

-- dialect/sqlite/era.sql: era-look
SELECT /* rowlock era-look */ ?1, coalesce((SELECT max(start) FROM "rowlock_meta"), -1), (SELECT count(*) FROM "rowlock_meta" WHERE name LIKE 'era/%'),
  (SELECT count(*) FROM "rowlock_meta" WHERE name = ?1), 0,
  (SELECT value FROM "rowlock_meta" WHERE name IN ('compatible_from', 'compatible_from/shared') ORDER BY length(value) DESC, value DESC LIMIT 1)

-- dialect/sqlite/era.sql: era-make
INSERT /* rowlock era-make */ INTO "rowlock_meta" (name, start, since)
VALUES ('eras', 0, CAST(unixepoch('subsec') * 1000 AS INTEGER)) ON CONFLICT (name) DO NOTHING

-- dialect/sqlite/era.sql: era-lock
UPDATE /* rowlock era-lock */ "rowlock_meta" SET start = start WHERE name = 'eras'

-- dialect/sqlite/era.sql: era-fresh
SELECT /* rowlock era-fresh */ NOT EXISTS (SELECT 1 FROM "rowlock") AND (SELECT max(floor) FROM "rowlock_floor") = 0
  AND (SELECT since FROM "rowlock_meta" WHERE name = 'eras')
    > CAST(unixepoch('subsec') * 1000 AS INTEGER) - 300000

-- dialect/sqlite/era.sql: era-clock
SELECT /* rowlock era-clock */ CAST(unixepoch('subsec') * 1000 AS INTEGER) * 1000

-- dialect/sqlite/era.sql: era-write
INSERT /* rowlock era-write */ INTO "rowlock_meta" (name, start, since)
VALUES (?, ?, CAST(unixepoch('subsec') * 1000 AS INTEGER))
ON CONFLICT (name) DO UPDATE SET start = excluded.start, since = excluded.since

-- dialect/sqlite/era.sql: era-kept
SELECT /* rowlock era-kept */ start FROM "rowlock_meta" WHERE name LIKE 'era/%' ORDER BY start DESC LIMIT 1 OFFSET ?

-- dialect/sqlite/era.sql: era-drop
DELETE /* rowlock era-drop */ FROM "rowlock_meta" WHERE name LIKE 'era/%' AND start <= ?

-- dialect/sqlite/force.sql: force-lock
UPDATE /* rowlock force-lock */ "rowlock" SET placement = placement WHERE key = ? AND placement = 0 AND owner IS NOT NULL
RETURNING owner, token, substr(note, 1, 384)

-- dialect/sqlite/force.sql: force-placement
SELECT /* rowlock force-placement */ count(*) FROM "rowlock" WHERE key = ? AND placement <> 0

-- dialect/sqlite/force.sql: force-end
UPDATE /* rowlock force-end */ "rowlock" SET owner = NULL, note = '', token = min(?, 9223372036853727231),
  expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE key = ? AND owner = ? AND token = ? AND placement = 0

-- dialect/sqlite/force.sql: force-lock-bad
UPDATE /* rowlock force-lock-bad */ "rowlock" SET placement = placement WHERE key = ? RETURNING key

-- dialect/sqlite/force.sql: force-repair
UPDATE /* rowlock force-repair */ "rowlock" SET owner = NULL, note = '', token = ?, acquired_at = CAST(unixepoch('subsec') * 1000 AS INTEGER),
  expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER), placement = 0
WHERE key = ? AND (placement = 0 OR placement IS NULL OR placement < -1 OR typeof(placement) <> 'integer')

-- dialect/sqlite/force.sql: force-tickets
DELETE /* rowlock force-tickets */ FROM "rowlock_queue"
WHERE key = ? AND (typeof(alive_until) <> 'integer'
  OR alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER) + 86400000
  OR typeof(waiter) <> 'blob' OR length(waiter) <> 16)

-- dialect/sqlite/force.sql: force-record
INSERT /* rowlock force-record */ INTO "rowlock_forced" (key, at, id, actor, reason, asked, owner, token, note, raised)
SELECT r.key, CAST(unixepoch('subsec') * 1000 AS INTEGER), ?, ? || char(9), ?, ?, ?, ?, ?, r.token
FROM "rowlock" AS r WHERE r.key = ?

-- dialect/sqlite/force.sql: force-find
SELECT /* rowlock force-find */ key, at * 1000, id, substr(actor, 1, 384), substr(reason, 1, 1000), asked, owner, token, substr(note, 1, 384), raised
FROM "rowlock_forced" WHERE key = ? AND id = ?

-- dialect/sqlite/force.sql: force-confirm
UPDATE /* rowlock force-confirm */ "rowlock" SET acquired_at = acquired_at + 1 WHERE key = ?

-- dialect/sqlite/force.sql: force-list
SELECT /* rowlock force-list */ key, at * 1000, id, substr(actor, 1, 384), substr(reason, 1, 1000), asked, owner, token, substr(note, 1, 384), raised FROM "rowlock_forced"
WHERE substr(key, 1, ?) = ? AND (at * 1000, raised, id) < (?, ?, ?)
ORDER BY at DESC, raised DESC, id DESC LIMIT ?

-- dialect/sqlite/force.sql: force-list-key
SELECT /* rowlock force-list-key */ key, at * 1000, id, substr(actor, 1, 384), substr(reason, 1, 1000), asked, owner, token, substr(note, 1, 384), raised FROM "rowlock_forced"
WHERE key = ? AND (at * 1000, raised, id) < (?, ?, ?)
ORDER BY at DESC, raised DESC, id DESC LIMIT ?

-- dialect/sqlite/graph.sql: wait-note
INSERT /* rowlock wait-note */ INTO "rowlock_wait" (caller, key, token, awaits, process, note, since, alive_until)
SELECT unhex(j.value ->> 'o'), unhex(j.value ->> 'k'), max(j.value ->> 't', 0),
  iif(j.value ->> 't' > 0, 0, coalesce((SELECT iif(j.value ->> 't' = 0, r.token, -r.token)
    FROM "rowlock" AS r WHERE r.key = unhex(j.value ->> 'k')), 0)), ?1, CAST(?2 AS TEXT),
  CAST(unixepoch('subsec') * 1000 AS INTEGER) - (j.value ->> 'd') / 1000,
  CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?3 / 1000
FROM json_each(?4) AS j WHERE true
ON CONFLICT (caller, key, token) DO UPDATE SET awaits = excluded.awaits,
  alive_until = min(excluded.alive_until, since + excluded.alive_until - excluded.since)

-- dialect/sqlite/graph.sql: wait-erase
DELETE /* rowlock wait-erase */ FROM "rowlock_wait" WHERE (caller, key, token) IN
  (SELECT unhex(value ->> 'o'), unhex(value ->> 'k'), max(value ->> 't', 0) FROM json_each(?))

-- dialect/sqlite/graph.sql: wait-edges
WITH /* rowlock wait-edges */ RECURSIVE reached (caller) AS (
  SELECT unhex(value) FROM json_each(?1)
  UNION
  SELECT h.caller FROM reached AS f
  CROSS JOIN "rowlock_wait" AS w ON w.caller = f.caller AND w.token = 0 AND w.process = ?2
    AND w.alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER)
  CROSS JOIN "rowlock" AS r ON r.key = w.key AND r.placement = 0
    AND r.owner IS NOT NULL AND r.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)
    AND (r.token = w.awaits OR r.token = -w.awaits AND r.expires_at < 253370764800000)
  CROSS JOIN "rowlock_wait" AS h ON h.key = r.key AND h.token = r.token AND h.process = w.process
    AND h.alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER)
)
SELECT w.caller, h.caller AS holder, w.key, r.token, substr(w.note, 1, 384), w.since * 1000 AS since,
  w.alive_until * 1000 AS expires,
  (CAST(unixepoch('subsec') * 1000 AS INTEGER) - w.since) * 1000 AS waited
FROM reached AS f
CROSS JOIN "rowlock_wait" AS w ON w.caller = f.caller AND w.token = 0 AND w.process = ?2
  AND w.alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER)
CROSS JOIN "rowlock" AS r ON r.key = w.key AND r.placement = 0
  AND r.owner IS NOT NULL AND r.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)
  AND (r.token = w.awaits OR r.token = -w.awaits AND r.expires_at < 253370764800000)
CROSS JOIN "rowlock_wait" AS h ON h.key = r.key AND h.token = r.token AND h.process = w.process
  AND h.alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER)
LIMIT ?3

-- dialect/sqlite/graph.sql: wait-dead
SELECT /* rowlock wait-dead */ EXISTS (SELECT 1 FROM "rowlock_wait"
  WHERE alive_until <= CAST(unixepoch('subsec') * 1000 AS INTEGER) - ? / 1000)

-- dialect/sqlite/graph.sql: wait-reap
DELETE /* rowlock wait-reap */ FROM "rowlock_wait"
WHERE alive_until <= CAST(unixepoch('subsec') * 1000 AS INTEGER) - ? / 1000

-- dialect/sqlite/hints.sql: register
INSERT /* rowlock register */ INTO "rowlock_queue" (key, waiter, note, alive_until)
SELECT unhex(j.value), p.waiter, p.note, CAST(unixepoch('subsec') * 1000 AS INTEGER) + p.ms
FROM (SELECT ? AS waiter, ? AS note, (? + 999) / 1000 AS ms) AS p, json_each(?) AS j WHERE true
ON CONFLICT (key, waiter) DO UPDATE SET note = excluded.note, alive_until = excluded.alive_until

-- dialect/sqlite/hints.sql: unregister
DELETE /* rowlock unregister */ FROM "rowlock_queue"
  WHERE key IN (SELECT unhex(value) FROM json_each(?)) AND waiter = ? AND rank IS NULL

-- dialect/sqlite/hints.sql: awaited
SELECT /* rowlock awaited */ EXISTS (SELECT 1 FROM "rowlock_queue" AS q
               WHERE q.key = unhex(j.value) AND q.waiter <> p.waiter
                 AND q.alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER)) AS awaited
FROM (SELECT ? AS waiter) AS p, json_each(?) AS j ORDER BY j.key

-- dialect/sqlite/hints.sql: waiting
SELECT /* rowlock waiting */ (SELECT count(*) FROM (SELECT 1 FROM "rowlock_queue" AS q
        WHERE q.key = unhex(j.value) AND q.rank IS NULL
          AND q.alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER) LIMIT 100))
FROM json_each(?) AS j ORDER BY j.key

-- dialect/sqlite/hints.sql: version
PRAGMA /* rowlock version */ data_version

-- dialect/sqlite/hold.sql: write-lock
UPDATE /* rowlock write-lock */ "rowlock_hold" SET made_at = made_at WHERE key = x''

-- dialect/sqlite/latch.sql: latch-look
SELECT /* rowlock latch-look */ l.id, l.generation, l.parties, l.state, l.ended,
  (l.expires_at - CAST(unixepoch('subsec') * 1000 AS INTEGER)) * 1000 AS remaining,
  (SELECT COUNT(*) FROM "rowlock_party" AS p WHERE p.id = l.id AND p.phase = 0) AS counted,
  0 AS gone, 0 AS dead
FROM "rowlock_latch" AS l WHERE l.kind = ?1 AND l.key = ?2

-- dialect/sqlite/latch.sql: latch-make
INSERT /* rowlock latch-make */ INTO "rowlock_latch" (kind, key, id, generation, parties, made_at, expires_at)
VALUES (?1, ?2, ?3, 1, ?4, CAST(unixepoch('subsec') * 1000 AS INTEGER),
  CAST(unixepoch('subsec') * 1000 AS INTEGER) + (?5 + 999) / 1000)
ON CONFLICT (kind, key) DO NOTHING

-- dialect/sqlite/latch.sql: latch-take
UPDATE /* rowlock latch-take */ "rowlock_latch"
SET id = ?1, parties = ?2, generation = generation + 1, state = 0, ended = 0,
  made_at = CAST(unixepoch('subsec') * 1000 AS INTEGER),
    expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) + (?3 + 999) / 1000
WHERE kind = ?4 AND key = ?5 AND expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER)

-- dialect/sqlite/latch.sql: latch-keep
UPDATE /* rowlock latch-keep */ "rowlock_latch"
SET made_at = made_at + 1,
  expires_at = MAX(expires_at, CAST(unixepoch('subsec') * 1000 AS INTEGER) + (?1 + 999) / 1000)
WHERE kind = ?2 AND key = ?3 AND id = ?4
  AND expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)

-- dialect/sqlite/latch.sql: latch-reset
UPDATE /* rowlock latch-reset */ "rowlock_latch"
SET id = ?1, generation = generation + 1, ended = state, state = 0,
  made_at = CAST(unixepoch('subsec') * 1000 AS INTEGER),
  expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) + (?2 + 999) / 1000
WHERE kind = ?3 AND key = ?4 AND id = ?5 AND state >= ?6
  AND expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)

-- dialect/sqlite/latch.sql: latch-count
INSERT /* rowlock latch-count */ INTO "rowlock_party" AS p (id, phase, party, counted_at)
SELECT l.id, 0, ?1, CAST(unixepoch('subsec') * 1000 AS INTEGER) FROM "rowlock_latch" AS l
WHERE l.kind = ?2 AND l.key = ?3 AND l.id = ?4
  AND l.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)
ON CONFLICT (id, phase, party) DO UPDATE SET counted_at = p.counted_at + 1

-- dialect/sqlite/latch.sql: barrier-look
SELECT /* rowlock barrier-look */ l.id, l.generation, l.parties, l.state, l.ended,
  (l.expires_at - CAST(unixepoch('subsec') * 1000 AS INTEGER)) * 1000 AS remaining,
  (SELECT COUNT(*) FROM "rowlock_party" AS p WHERE p.id = l.id AND p.phase = 0) AS counted,
  (SELECT COUNT(*) FROM "rowlock_party" AS p WHERE p.id = l.id AND p.phase = 1) AS gone,
  (SELECT COUNT(*) FROM "rowlock_party" AS p
    WHERE p.id = l.id AND p.phase = 0
     AND p.alive_until <= CAST(unixepoch('subsec') * 1000 AS INTEGER)
     AND NOT EXISTS (SELECT 1 FROM "rowlock_party" AS g
                     WHERE g.id = p.id AND g.phase = 1 AND g.party = p.party)) AS dead
FROM "rowlock_latch" AS l WHERE l.kind = ?1 AND l.key = ?2

-- dialect/sqlite/latch.sql: barrier-enter
INSERT /* rowlock barrier-enter */ INTO "rowlock_party" AS p (id, phase, party, counted_at, alive_until)
SELECT l.id, 0, ?1, CAST(unixepoch('subsec') * 1000 AS INTEGER),
  CAST(unixepoch('subsec') * 1000 AS INTEGER) + (?2 + 999) / 1000
FROM "rowlock_latch" AS l
WHERE l.kind = ?3 AND l.key = ?4 AND l.id = ?5 AND l.state = 0
  AND l.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)
ON CONFLICT (id, phase, party) DO UPDATE
  SET counted_at = p.counted_at + 1, alive_until = excluded.alive_until

-- dialect/sqlite/latch.sql: barrier-beat
UPDATE /* rowlock barrier-beat */ "rowlock_party"
SET counted_at = counted_at + 1, alive_until = CAST(unixepoch('subsec') * 1000 AS INTEGER) + (?1 + 999) / 1000
WHERE id = ?2 AND phase = 0 AND party = ?3
  AND NOT EXISTS (SELECT 1 FROM "rowlock_party" AS g WHERE g.id = ?2 AND g.phase = 1 AND g.party = ?3)

-- dialect/sqlite/latch.sql: barrier-leave
INSERT /* rowlock barrier-leave */ INTO "rowlock_party" AS p (id, phase, party, counted_at)
SELECT l.id, 1, ?1, CAST(unixepoch('subsec') * 1000 AS INTEGER) FROM "rowlock_latch" AS l
WHERE l.kind = ?2 AND l.key = ?3 AND l.id = ?4 AND l.state IN (1, 2)
  AND l.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)
  AND EXISTS (SELECT 1 FROM "rowlock_party" AS e
              WHERE e.id = l.id AND e.phase = 0 AND e.party = ?5)
ON CONFLICT (id, phase, party) DO UPDATE SET counted_at = p.counted_at + 1

-- dialect/sqlite/latch.sql: barrier-open
UPDATE /* rowlock barrier-open */ "rowlock_latch" AS l SET state = 1
WHERE l.kind = ?1 AND l.key = ?2 AND l.id = ?3 AND l.state = 0
  AND (SELECT COUNT(*) FROM "rowlock_party" AS p WHERE p.id = l.id AND p.phase = 0) >= l.parties
  AND NOT EXISTS (SELECT 1 FROM "rowlock_party" AS p
                   WHERE p.id = l.id AND p.phase = 0
                    AND p.alive_until <= CAST(unixepoch('subsec') * 1000 AS INTEGER))

-- dialect/sqlite/latch.sql: barrier-done
UPDATE /* rowlock barrier-done */ "rowlock_latch" AS l SET state = 2
WHERE l.kind = ?1 AND l.key = ?2 AND l.id = ?3 AND l.state = 1
  AND NOT EXISTS (SELECT 1 FROM "rowlock_party" AS p
                  WHERE p.id = l.id AND p.phase = 0
                    AND NOT EXISTS (SELECT 1 FROM "rowlock_party" AS g
                                    WHERE g.id = p.id AND g.phase = 1 AND g.party = p.party))

-- dialect/sqlite/latch.sql: barrier-break
UPDATE /* rowlock barrier-break */ "rowlock_latch" AS l SET state = 3
WHERE l.kind = ?1 AND l.key = ?2 AND l.id = ?3 AND l.state IN (0, 1)
  AND EXISTS (SELECT 1 FROM "rowlock_party" AS p
               WHERE p.id = l.id AND p.phase = 0
                AND p.alive_until <= CAST(unixepoch('subsec') * 1000 AS INTEGER)
                AND NOT EXISTS (SELECT 1 FROM "rowlock_party" AS g
                                WHERE g.id = p.id AND g.phase = 1 AND g.party = p.party))

-- dialect/sqlite/latch.sql: barrier-dead
SELECT /* rowlock barrier-dead */ p.party FROM "rowlock_party" AS p
WHERE p.id = ?1 AND p.phase = 0 AND p.alive_until <= CAST(unixepoch('subsec') * 1000 AS INTEGER)
  AND NOT EXISTS (SELECT 1 FROM "rowlock_party" AS g
                  WHERE g.id = p.id AND g.phase = 1 AND g.party = p.party)
ORDER BY p.alive_until, p.party LIMIT 1

-- dialect/sqlite/latch.sql: latch-sweep
DELETE /* rowlock latch-sweep */ FROM "rowlock_latch" WHERE rowid IN (
  SELECT rowid FROM "rowlock_latch"
    WHERE expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER) LIMIT ?1)

-- dialect/sqlite/latch.sql: latch-next
SELECT /* rowlock latch-next */ p.id, EXISTS (SELECT 1 FROM "rowlock_latch" AS l WHERE l.id = p.id) AS live
FROM "rowlock_party" AS p WHERE p.id > ?1 AND length(p.id) = 16
ORDER BY p.id LIMIT 1

-- dialect/sqlite/latch.sql: latch-drop
DELETE /* rowlock latch-drop */ FROM "rowlock_party" WHERE id = ?1 AND (phase, party) IN (
  SELECT phase, party FROM "rowlock_party" WHERE id = ?1 LIMIT ?2)

-- dialect/sqlite/limit.sql: limit-look
SELECT /* rowlock limit-look */ slots, peak, generation FROM "rowlock_limit" WHERE name = ?

-- dialect/sqlite/limit.sql: limit-make
INSERT /* rowlock limit-make */ INTO "rowlock_limit" (name, slots, peak, generation) VALUES (?, ?, ?, 1)
ON CONFLICT (name) DO NOTHING

-- dialect/sqlite/limit.sql: limit-resize
UPDATE /* rowlock limit-resize */ "rowlock_limit" SET slots = ?, peak = max(peak, ?), generation = generation + 1
WHERE name = ?

-- dialect/sqlite/limit.sql: limit-check
SELECT /* rowlock limit-check */ 1 FROM "rowlock_limit" WHERE name = ? AND generation = ?

-- dialect/sqlite/move.sql: depart
UPDATE /* rowlock depart */ "rowlock" SET placement = ?, token = ?, owner = NULL, note = '',
  expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE key = ? AND owner = ? AND token = ? AND placement = 0

-- dialect/sqlite/move.sql: return
UPDATE /* rowlock return */ "rowlock" SET placement = 0, token = ?, owner = NULL, note = '',
  expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE key = ? AND placement = ? AND token >= ? AND token < ?

-- dialect/sqlite/move.sql: recall
INSERT /* rowlock recall */ INTO "rowlock" (key, placement, token, note, acquired_at, expires_at)
SELECT ?1, ?2, CASE WHEN ?2 = 0 THEN max(floor, ?3) ELSE ?3 END, '',
       CAST(unixepoch('subsec') * 1000 AS INTEGER), CAST(unixepoch('subsec') * 1000 AS INTEGER)
FROM "rowlock_floor" WHERE bucket = ?4 AND (?2 = 0 OR floor < ?3
  OR EXISTS (SELECT 1 FROM "rowlock" WHERE key = ?1))
ON CONFLICT (key) DO UPDATE
  SET placement = excluded.placement, token = ?3, owner = NULL, note = '', expires_at = excluded.expires_at
WHERE token < ?3

-- dialect/sqlite/move.sql: confirm-placement
UPDATE /* rowlock confirm-placement */ "rowlock" SET acquired_at = acquired_at + 1
  WHERE key = ? AND placement = ? AND token >= ? AND token < ?

-- dialect/sqlite/move.sql: fence-at
UPDATE /* rowlock fence-at */ "rowlock" SET token = token WHERE key = ? AND placement = ? AND token BETWEEN ? AND ?
  RETURNING token

-- dialect/sqlite/move.sql: fence-at-token
UPDATE /* rowlock fence-at-token */ "rowlock" SET token = ? WHERE key = ?

-- dialect/sqlite/once.sql: once-claim
INSERT /* rowlock once-claim */ INTO "rowlock_once" (tenant, key, fingerprint, made_at, expires_at)
VALUES (?1, ?2, ?3, CAST(unixepoch('subsec') * 1000 AS INTEGER),
  CAST(unixepoch('subsec') * 1000 AS INTEGER) + (?4 + 999) / 1000)
ON CONFLICT (tenant, key) DO NOTHING
RETURNING 1 AS state

-- dialect/sqlite/once.sql: once-look
SELECT /* rowlock once-look */ CASE WHEN expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER) THEN 2
            WHEN expires_at IS NOT NULL THEN 3 ELSE 5 END
  AS state, fingerprint, result
FROM "rowlock_once" WHERE tenant = ?1 AND key = ?2

-- dialect/sqlite/once.sql: once-take
UPDATE /* rowlock once-take */ "rowlock_once"
SET fingerprint = ?1, result = NULL, made_at = CAST(unixepoch('subsec') * 1000 AS INTEGER),
    expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) + (?2 + 999) / 1000
WHERE tenant = ?3 AND key = ?4 AND expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER)

-- dialect/sqlite/once.sql: once-store
UPDATE /* rowlock once-store */ "rowlock_once" SET result = ?1 WHERE tenant = ?2 AND key = ?3

-- dialect/sqlite/once.sql: once-confirm
UPDATE /* rowlock once-confirm */ "rowlock_once" SET made_at = made_at + 1 WHERE tenant = ?1 AND key = ?2

-- dialect/sqlite/once.sql: once-count
SELECT /* rowlock once-count */ count(*) FROM (SELECT 1 FROM "rowlock_once" WHERE tenant = ?1 LIMIT ?2) AS t

-- dialect/sqlite/once.sql: once-sweep
DELETE /* rowlock once-sweep */ FROM "rowlock_once" WHERE rowid IN (
  SELECT rowid FROM "rowlock_once" INDEXED BY "rowlock_once_expiry"
  WHERE expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER) ORDER BY expires_at LIMIT ?1)

-- dialect/sqlite/queue.sql: queue-join
INSERT /* rowlock queue-join */ INTO "rowlock_queue" (key, waiter, rank, note, ttl, alive_until)
SELECT unhex(j.value ->> 'k'), unhex(j.value ->> 'o'),
       CAST(unixepoch('subsec') * 1000 AS INTEGER) * 1000 - (j.value ->> 'h'),
       CAST(unhex(j.value ->> 'c') AS TEXT), j.value ->> 'd',
       CAST(unixepoch('subsec') * 1000 AS INTEGER) + ((j.value ->> 'd') + 999) / 1000
FROM json_each(?) AS j
WHERE NOT EXISTS (SELECT 1 FROM "rowlock" AS r
                  WHERE r.key = unhex(j.value ->> 'k') AND r.owner = unhex(j.value ->> 'o')
                    AND r.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER))
ORDER BY j.key
ON CONFLICT (key, waiter) DO UPDATE
SET ticket = CASE WHEN rank IS NOT NULL AND alive_until
  > CAST(unixepoch('subsec') * 1000 AS INTEGER) THEN ticket
                  ELSE (SELECT max(ticket) + 1 FROM "rowlock_queue") END,
    rank = CASE WHEN rank IS NOT NULL AND alive_until
      > CAST(unixepoch('subsec') * 1000 AS INTEGER) THEN rank
                ELSE excluded.rank END,
    note = excluded.note, ttl = excluded.ttl, alive_until = excluded.alive_until

-- dialect/sqlite/queue.sql: queue-leave
DELETE /* rowlock queue-leave */ FROM "rowlock_queue"
WHERE (key, waiter) IN (SELECT unhex(value ->> 'k'), unhex(value ->> 'o') FROM json_each(?))

-- dialect/sqlite/queue.sql: queue-head
SELECT /* rowlock queue-head */ waiter FROM "rowlock_queue"
WHERE key = ? AND rank IS NOT NULL AND alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER)
ORDER BY rank, ticket LIMIT 1

-- dialect/sqlite/queue.sql: places
WITH /* rowlock places */ want AS MATERIALIZED (
  SELECT key + 1 AS n, unhex(value ->> 'k') AS k, unhex(value ->> 'o') AS o FROM json_each(?)
), line AS MATERIALIZED (
  SELECT key, waiter, row_number() OVER (PARTITION BY key ORDER BY rank, ticket) - 1 AS ahead
    FROM "rowlock_queue"
  WHERE key IN (SELECT k FROM want) AND rank IS NOT NULL
    AND alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER)
)
SELECT w.n,
       CASE WHEN r.placement <> 0 THEN 4
            WHEN r.owner = w.o AND r.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER) THEN 1
            WHEN r.owner IS NOT NULL AND r.expires_at
              > CAST(unixepoch('subsec') * 1000 AS INTEGER) THEN 0
            ELSE 2 END AS state,
       q.waiter IS NOT NULL AS waits, coalesce(r.token, 0) AS token, coalesce(substr(r.note, 1, 384), '') AS note,
       coalesce(r.expires_at - CAST(unixepoch('subsec') * 1000 AS INTEGER), 0) * 1000 AS remaining,
       coalesce(q.ahead, 0) AS ahead
FROM want AS w
LEFT JOIN "rowlock" AS r ON r.key = w.k
LEFT JOIN line AS q ON q.key = w.k AND q.waiter = w.o

-- dialect/sqlite/queue.sql: pass
UPDATE /* rowlock pass */ "rowlock"
SET owner = n.waiter, note = coalesce(n.note, ''),
    token = iif(n.waiter IS NULL, "rowlock".token, max("rowlock".token, @era) + 1),
    acquired_at = CASE WHEN n.waiter IS NULL THEN acquired_at
      ELSE CAST(unixepoch('subsec') * 1000 AS INTEGER) END,
    expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) + coalesce((n.ttl + 999) / 1000, 0)
FROM (SELECT 1) AS one LEFT JOIN (
  SELECT q.waiter, q.note, q.ttl FROM "rowlock_queue" AS q JOIN "rowlock" AS r ON r.key = q.key
  WHERE q.key = ?1 AND q.waiter <> ?2 AND q.rank IS NOT NULL
    AND q.alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER)
    AND r.token BETWEEN 0 AND 9223372036853727231 - 1
  ORDER BY q.rank, q.ticket LIMIT 1
) AS n
WHERE "rowlock".key = ?1 AND "rowlock".owner = ?2 AND ?3 IN ("rowlock".token, 0) AND placement = 0
RETURNING owner, token

-- dialect/sqlite/queue.sql: queue-dead
SELECT /* rowlock queue-dead */ key, waiter FROM "rowlock_queue"
WHERE (key, waiter) > (?, ?) AND alive_until
  <= CAST(unixepoch('subsec') * 1000 AS INTEGER) - ? / 1000
  AND length(waiter) = 16
ORDER BY key, waiter LIMIT ?

-- dialect/sqlite/queue.sql: queue-reap
DELETE /* rowlock queue-reap */ FROM "rowlock_queue"
WHERE (key, waiter) IN (SELECT unhex(value ->> 'k'), unhex(value ->> 'o') FROM json_each(?))
  AND alive_until <= CAST(unixepoch('subsec') * 1000 AS INTEGER) - ? / 1000

-- dialect/sqlite/shared.sql: share
INSERT /* rowlock share */ INTO "rowlock_member" (key, reader_group, owner, note, joined_at, expires_at)
SELECT r.key, r.owner, unhex(j.value ->> 'o'), ?, CAST(unixepoch('subsec') * 1000 AS INTEGER),
  CAST(unixepoch('subsec') * 1000 AS INTEGER) + ((j.value ->> 'd') + 999) / 1000
FROM json_each(?) AS j CROSS JOIN "rowlock" AS r ON r.key = unhex(j.value ->> 'k')
WHERE r.placement = 0 AND r.owner IS NOT NULL AND r.expires_at = 253370764800000
  AND coalesce((SELECT (CAST(unixepoch('subsec') * 1000 AS INTEGER) - min(w.joined_at)) % 11000 < 10000
      FROM "rowlock_member" AS w WHERE w.key = r.key AND w.reader_group = zeroblob(16)
        AND w.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)), 0) = 0
ON CONFLICT (key, reader_group, owner) DO UPDATE SET expires_at = excluded.expires_at
RETURNING key, owner, reader_group

-- dialect/sqlite/shared.sql: share-one
INSERT /* rowlock share-one */ INTO "rowlock_member" (key, reader_group, owner, note, joined_at, expires_at)
SELECT r.key, r.owner, ?1, ?2, CAST(unixepoch('subsec') * 1000 AS INTEGER),
  CAST(unixepoch('subsec') * 1000 AS INTEGER) + (?3 + 999) / 1000
FROM "rowlock" AS r
WHERE r.key = ?4 AND r.placement = 0 AND r.owner IS NOT NULL AND r.expires_at = 253370764800000
  AND coalesce((SELECT (CAST(unixepoch('subsec') * 1000 AS INTEGER) - min(w.joined_at)) % 11000 < 10000
      FROM "rowlock_member" AS w WHERE w.key = ?4 AND w.reader_group = zeroblob(16)
        AND w.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)), 0) = 0
ON CONFLICT (key, reader_group, owner) DO UPDATE SET expires_at = excluded.expires_at
RETURNING reader_group

-- dialect/sqlite/shared.sql: member-look
SELECT /* rowlock member-look */ r.key,
  (SELECT count(*) FROM "rowlock_member" AS m WHERE m.key = r.key AND m.reader_group = r.owner
    AND m.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)),
  coalesce((SELECT max(m.expires_at) - CAST(unixepoch('subsec') * 1000 AS INTEGER)
    FROM "rowlock_member" AS m WHERE m.key = r.key AND m.reader_group = r.owner), 0) * 1000,
  coalesce((SELECT substr(m.note, 1, 384) FROM "rowlock_member" AS m WHERE m.key = r.key AND m.reader_group = r.owner
    ORDER BY m.expires_at DESC LIMIT 1), ''),
  coalesce((SELECT (CAST(unixepoch('subsec') * 1000 AS INTEGER) - min(w.joined_at)) % 11000 < 10000
      FROM "rowlock_member" AS w WHERE w.key = r.key AND w.reader_group = zeroblob(16)
        AND w.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)), 0)
FROM json_each(?) AS j CROSS JOIN "rowlock" AS r ON r.key = unhex(j.value)
WHERE r.placement = 0 AND r.owner IS NOT NULL AND r.expires_at = 253370764800000

-- dialect/sqlite/shared.sql: member-others
SELECT /* rowlock member-others */ r.key, EXISTS (SELECT 1 FROM "rowlock_member" AS w WHERE w.key = r.key
  AND w.reader_group = zeroblob(16) AND w.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER))
FROM json_each(?) AS j CROSS JOIN "rowlock" AS r ON r.key = unhex(j.value)
WHERE r.placement = 0 AND r.owner IS NOT NULL AND r.expires_at = 253370764800000
  AND NOT EXISTS (SELECT 1 FROM "rowlock_member" AS m WHERE m.key = r.key AND m.reader_group = r.owner
    AND m.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER))

-- dialect/sqlite/shared.sql: member-find
SELECT /* rowlock member-find */ m.key, m.owner, m.reader_group FROM json_each(?) AS j CROSS JOIN "rowlock_member" AS m
  ON m.key = unhex(j.value ->> 'k') AND m.owner = unhex(j.value ->> 'o')
WHERE m.reader_group <> zeroblob(16)

-- dialect/sqlite/shared.sql: member-renew
UPDATE /* rowlock member-renew */ "rowlock_member" SET expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) + (j.d + 999) / 1000
FROM (SELECT unhex(value ->> 'k') AS k, unhex(value ->> 'o') AS o,
  unhex('726F776C6F636B54' || printf('%016x', value ->> 't')) AS t, value ->> 'd' AS d
      FROM json_each(?)) AS j
WHERE "rowlock_member".key = j.k AND reader_group = j.t AND owner = j.o
  AND expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)
RETURNING key, owner, reader_group

-- dialect/sqlite/shared.sql: member-left
SELECT /* rowlock member-left */ m.key, m.owner, m.reader_group, (m.expires_at - CAST(unixepoch('subsec') * 1000 AS INTEGER)) * 1000
FROM json_each(?) AS j CROSS JOIN "rowlock_member" AS m ON m.key = unhex(j.value ->> 'k')
  AND m.reader_group = unhex('726F776C6F636B54' || printf('%016x', j.value ->> 't'))
  AND m.owner = unhex(j.value ->> 'o')

-- dialect/sqlite/shared.sql: member-leave
DELETE /* rowlock member-leave */ FROM "rowlock_member" WHERE (key, reader_group, owner) IN (SELECT unhex(j.value ->> 'k'),
  unhex('726F776C6F636B54' || printf('%016x', j.value ->> 't')), unhex(j.value ->> 'o')
  FROM json_each(?) AS j)
RETURNING key, owner, reader_group

-- dialect/sqlite/shared.sql: member-leave-one
DELETE /* rowlock member-leave-one */ FROM "rowlock_member" WHERE key = ?1 AND reader_group = ?2 AND owner = ?3
RETURNING EXISTS (SELECT 1 FROM "rowlock_member" AS o WHERE o.key = ?1 AND o.reader_group = ?2
    AND o.owner <> ?3 AND o.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)),
  EXISTS (SELECT 1 FROM "rowlock_member" AS w WHERE w.key = ?1 AND w.reader_group = zeroblob(16)
    AND w.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER))

-- dialect/sqlite/shared.sql: member-leave-tx
DELETE /* rowlock member-leave-tx */ FROM "rowlock_member" WHERE key = ? AND reader_group = ? AND owner = ?

-- dialect/sqlite/shared.sql: member-dead
SELECT /* rowlock member-dead */ key, owner, reader_group FROM "rowlock_member"
WHERE expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER) - ? / 1000
  AND length(owner) = 16 AND length(reader_group) = 16
LIMIT ?

-- dialect/sqlite/shared.sql: intend
INSERT /* rowlock intend */ INTO "rowlock_member" (key, reader_group, owner, joined_at, expires_at)
SELECT unhex(j.value), zeroblob(16), ?1, (unixepoch() + 5) / 11 * 11000,
  CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?2 / 1000 FROM json_each(?3) AS j WHERE true
ON CONFLICT (key, reader_group, owner) DO UPDATE SET
  joined_at = iif(expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER), joined_at, excluded.joined_at),
  expires_at = excluded.expires_at

-- dialect/sqlite/shared.sql: unintend
DELETE /* rowlock unintend */ FROM "rowlock_member" WHERE key IN (SELECT unhex(value) FROM json_each(?))
  AND reader_group = zeroblob(16) AND owner = ?

-- dialect/sqlite/shared.sql: readers-lock
UPDATE /* rowlock readers-lock */ "rowlock" SET placement = placement
WHERE key = ? AND placement = 0 AND owner IS NOT NULL AND expires_at = 253370764800000
RETURNING owner

-- dialect/sqlite/shared.sql: readers-clear
DELETE /* rowlock readers-clear */ FROM "rowlock_member" WHERE key = ? AND reader_group = ?
  AND expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER)

-- dialect/sqlite/shared.sql: readers-left
SELECT /* rowlock readers-left */ 1 FROM "rowlock_member" WHERE key = ? AND reader_group = ? LIMIT 1

-- dialect/sqlite/shared.sql: readers-end
UPDATE /* rowlock readers-end */ "rowlock" SET owner = NULL, note = '', expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE key = ? AND owner = ? AND placement = 0

-- dialect/sqlite/shared.sql: readers-make
UPDATE /* rowlock readers-make */ "rowlock" SET owner = ?, expires_at = 253370764800000
WHERE key = ? AND owner = ? AND token = ? AND placement = 0
  AND expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)

-- dialect/sqlite/shared.sql: readers-first
INSERT /* rowlock readers-first */ INTO "rowlock_member" (key, reader_group, owner, note, joined_at, expires_at)
SELECT key, owner, ?1, note, CAST(unixepoch('subsec') * 1000 AS INTEGER),
  CAST(unixepoch('subsec') * 1000 AS INTEGER) + (?2 + 999) / 1000
FROM "rowlock" WHERE key = ?3 AND owner = ?4

-- dialect/sqlite/shared.sql: readers-idle
SELECT /* rowlock readers-idle */ r.key FROM "rowlock" AS r
WHERE r.placement = 0 AND r.owner IS NOT NULL AND r.expires_at = 253370764800000
  AND NOT EXISTS (SELECT 1 FROM "rowlock_member" AS m WHERE m.key = r.key AND m.reader_group = r.owner
    AND m.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER))
LIMIT ?

-- dialect/sqlite/shared.sql: readers-fence
UPDATE /* rowlock readers-fence */ "rowlock" SET placement = placement WHERE key = ? AND owner = ? AND token = ? AND placement = 0 RETURNING 1

-- dialect/sqlite/shared.sql: force-members
DELETE /* rowlock force-members */ FROM "rowlock_member" WHERE key = ? AND reader_group = ?

-- dialect/sqlite/statements.sql: look
SELECT /* rowlock look */ CASE WHEN placement <> 0 THEN 4
            WHEN owner = ? AND expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER) THEN 7
            WHEN owner IS NOT NULL AND expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)
              THEN 0
            WHEN token NOT BETWEEN 0 AND 9223372036853727231 - 1 THEN 3
            WHEN owner IS NOT NULL THEN 5
            ELSE 2 END AS state,
       token, substr(note, 1, 384), (expires_at - CAST(unixepoch('subsec') * 1000 AS INTEGER)) * 1000 AS remaining
FROM "rowlock" WHERE key = ?

-- dialect/sqlite/statements.sql: seize
SELECT /* rowlock seize */ 1 FROM "rowlock" WHERE key = ?

-- dialect/sqlite/statements.sql: acquire-update
UPDATE /* rowlock acquire-update */ "rowlock" SET token = max(token, @era) + 1,
  acquired_at = CAST(unixepoch('subsec') * 1000 AS INTEGER),
  expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?, owner = ?, note = ?
WHERE key = ? AND placement = 0 AND (owner IS NULL
  OR expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER))
  AND token BETWEEN 0 AND 9223372036853727231 - 1
RETURNING token

-- dialect/sqlite/statements.sql: acquire-insert
INSERT /* rowlock acquire-insert */ INTO "rowlock" (key, owner, note, token, acquired_at, expires_at, placement)
SELECT ?, ?, ?, max(floor, @era) + 1, CAST(unixepoch('subsec') * 1000 AS INTEGER),
  CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?, 0
FROM "rowlock_floor" WHERE bucket = ? AND floor < 9223372036853727231
ON CONFLICT (key) DO NOTHING
RETURNING token

-- dialect/sqlite/statements.sql: rows
SELECT /* rowlock rows */ j.key + 1 AS n, r.placement = 0 AS placement, r.owner, r.token, substr(r.note, 1, 384),
       (r.expires_at - CAST(unixepoch('subsec') * 1000 AS INTEGER)) * 1000 AS remaining
FROM json_each(?) AS j CROSS JOIN "rowlock" AS r ON r.key = unhex(j.value)

-- dialect/sqlite/statements.sql: create
INSERT /* rowlock create */ INTO "rowlock" (key, owner, note, token, acquired_at, expires_at, placement)
SELECT ?1, ?2, ?3, iif(?2 IS NULL, floor, max(floor, @era) + 1),
       CAST(unixepoch('subsec') * 1000 AS INTEGER),
       CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?4, 0
FROM "rowlock_floor" WHERE bucket = ?5 AND floor < 9223372036853727231
ON CONFLICT (key) DO NOTHING
RETURNING token

-- dialect/sqlite/statements.sql: renew
UPDATE /* rowlock renew */ "rowlock" SET expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) + j.d
FROM (SELECT unhex(value ->> 'k') AS k, unhex(value ->> 'o') AS o, value ->> 't' AS t,
  value ->> 'd' AS d
      FROM json_each(?)) AS j
WHERE "rowlock".key = j.k AND "rowlock".owner = j.o AND "rowlock".token = j.t AND placement = 0
  AND expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)
RETURNING key, owner, token, CAST(unixepoch('subsec') * 1000 AS INTEGER) * 1000 AS clock,
  0 AS remaining

-- dialect/sqlite/statements.sql: renew-look
SELECT /* rowlock renew-look */ r.key, r.owner, r.token, CAST(unixepoch('subsec') * 1000 AS INTEGER) * 1000 AS clock,
       (r.expires_at - CAST(unixepoch('subsec') * 1000 AS INTEGER)) * 1000 AS remaining
FROM json_each(?) AS j JOIN "rowlock" AS r ON r.key = unhex(j.value ->> 'k')
WHERE r.owner = unhex(j.value ->> 'o') AND r.token = j.value ->> 't' AND r.placement = 0

-- dialect/sqlite/statements.sql: confirm
UPDATE /* rowlock confirm */ "rowlock" SET expires_at = max(expires_at + 1,
  CAST(unixepoch('subsec') * 1000 AS INTEGER) + (? + 999) / 1000)
WHERE key = ? AND owner = ? AND token = ? AND placement = 0
  AND expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)

-- dialect/sqlite/statements.sql: raise
UPDATE /* rowlock raise */ "rowlock" SET token = ?, expires_at = expires_at + 1
WHERE key = ? AND owner = ? AND token IN (?, ?) AND placement = 0
  AND expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)

-- dialect/sqlite/statements.sql: release
UPDATE /* rowlock release */ "rowlock" SET owner = NULL, note = '', expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE key = ? AND owner = ? AND ? IN (token, 0) AND placement = 0

-- dialect/sqlite/statements.sql: hand-over
UPDATE /* rowlock hand-over */ "rowlock" SET token = max(token, @era) + 1, owner = ?, note = ?,
  acquired_at = CAST(unixepoch('subsec') * 1000 AS INTEGER),
  expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?
WHERE key = ? AND owner = ? AND token = ? AND placement = 0 AND token BETWEEN 0 AND 9223372036853727231 - 1

-- dialect/sqlite/statements.sql: inspect
SELECT /* rowlock inspect */ r.key, r.owner, r.token, substr(r.note, 1, 384),
       r.owner IS NOT NULL AND r.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER) AS held,
       (r.expires_at - CAST(unixepoch('subsec') * 1000 AS INTEGER)) * 1000 AS remaining,
       (CAST(unixepoch('subsec') * 1000 AS INTEGER) - r.acquired_at) * 1000 AS age, r.placement
FROM "rowlock" AS r
WHERE r.key > coalesce(?, x'') AND r.key <= ?
  AND (? = 0 OR r.owner IS NOT NULL
    AND (r.expires_at > (SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER))) IS NOT FALSE)
ORDER BY r.key LIMIT ?

-- dialect/sqlite/statements.sql: inspect-keys
SELECT /* rowlock inspect-keys */ r.key, r.owner, r.token, substr(r.note, 1, 384),
       r.owner IS NOT NULL AND r.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER) AS held,
       (r.expires_at - CAST(unixepoch('subsec') * 1000 AS INTEGER)) * 1000 AS remaining,
       (CAST(unixepoch('subsec') * 1000 AS INTEGER) - r.acquired_at) * 1000 AS age, r.placement
FROM json_each(?) AS j CROSS JOIN "rowlock" AS r ON r.key = unhex(j.value)
WHERE r.key > coalesce(?, x'') AND r.key <= ?
  AND (? = 0 OR r.owner IS NOT NULL
    AND (r.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)) IS NOT FALSE)
ORDER BY r.key LIMIT ?

-- dialect/sqlite/statements.sql: fence
UPDATE /* rowlock fence */ "rowlock" SET expires_at = iif(?4 > 0 AND expires_at
  > CAST(unixepoch('subsec') * 1000 AS INTEGER),
  max(expires_at, CAST(unixepoch('subsec') * 1000 AS INTEGER) + (?4 + 999) / 1000), expires_at)
WHERE key = ?1 AND owner = ?2 AND token = ?3 AND placement = 0 RETURNING 1

-- dialect/sqlite/statements.sql: release-tx
UPDATE /* rowlock release-tx */ "rowlock" SET owner = NULL, note = '', expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE key = ? AND owner = ? AND token = ? AND placement = 0

-- dialect/sqlite/statements.sql: instance
SELECT /* rowlock instance */ value FROM "rowlock_meta" WHERE name = 'instance'

-- dialect/sqlite/statements.sql: schema-version
SELECT /* rowlock schema-version */ v.value, f.value, v.name FROM "rowlock_meta" AS v LEFT JOIN "rowlock_meta" AS f
  ON f.name = replace(v.name, 'schema_version', 'compatible_from') WHERE substr(v.name, 1, 14) = 'schema_version' ORDER BY v.name

-- dialect/sqlite/statements.sql: complete
SELECT /* rowlock complete */ count(*) FROM "rowlock_floor"

-- dialect/sqlite/statements.sql: floor-lock
UPDATE /* rowlock floor-lock */ "rowlock_floor" SET floor = floor WHERE bucket = ? RETURNING floor

-- dialect/sqlite/statements.sql: floor-raise
UPDATE /* rowlock floor-raise */ "rowlock_floor" SET floor = max(floor, ?) WHERE bucket = ?

-- dialect/sqlite/statements.sql: dead
SELECT /* rowlock dead */ key, dead FROM (
  SELECT key, placement = 0 AND expires_at
    <= CAST(unixepoch('subsec') * 1000 AS INTEGER) - p.retention / 1000 AS dead,
         row_number() OVER (ORDER BY key) AS n
  FROM (SELECT key, placement, expires_at FROM "rowlock" WHERE key > ? ORDER BY key LIMIT ?) AS page,
       (SELECT ? AS retention) AS p
) AS w WHERE dead OR n = ? ORDER BY key

-- dialect/sqlite/statements.sql: dead-lock
SELECT /* rowlock dead-lock */ r.key, r.token FROM json_each(?) AS j JOIN "rowlock" AS r ON r.key = unhex(j.value)
WHERE r.placement = 0 AND r.token BETWEEN 0 AND 9223372036853727231 - 1
  AND r.expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER) - ? / 1000

-- dialect/sqlite/statements.sql: reap
DELETE /* rowlock reap */ FROM "rowlock" WHERE key IN (SELECT unhex(value) FROM json_each(?))

-- dialect/sqlite/token.sql: token-raise
UPDATE /* rowlock token-raise */ @table SET @token = ?1
WHERE @table.@key = ?2 AND @table.@token <= ?3 AND typeof(@table.@token) = 'integer'

-- dialect/sqlite/token.sql: token-make
INSERT /* rowlock token-make */ INTO @table AS t (@key, @token) VALUES (?1, ?2)
ON CONFLICT (@key) DO UPDATE SET @token = ?3 WHERE t.@token <= ?3 AND typeof(t.@token) = 'integer'

-- dialect/sqlite/token.sql: token-seen
SELECT /* rowlock token-seen */ MAX(@table.@token), COUNT(*),
  coalesce(min(typeof(@table.@token) IN ('integer', 'null')), 1)
FROM @table WHERE @table.@key = ?1

-- dialect/sqlite/trace.sql: trace-write
INSERT /* rowlock trace-write */ INTO "rowlock_trace" (at, id, key, event, token, owner, note, number, detail)
VALUES (CAST(unixepoch('subsec') * 1000 AS INTEGER) - ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- dialect/sqlite/trace.sql: trace-list
SELECT /* rowlock trace-list */ at * 1000, id, key, event, token, owner, substr(note, 1, 384), number, substr(detail, 1, 255) FROM "rowlock_trace"
WHERE ifnull(substr(key, 1, ?), x'') = ? AND at <= ? AND (at < ? OR id < ?)
ORDER BY at DESC, id DESC LIMIT ?

-- dialect/sqlite/trace.sql: trace-list-key
SELECT /* rowlock trace-list-key */ at * 1000, id, key, event, token, owner, substr(note, 1, 384), number, substr(detail, 1, 255) FROM "rowlock_trace"
WHERE key = ? AND at <= ? AND (at < ? OR id < ?)
ORDER BY at DESC, id DESC LIMIT ?

-- dialect/sqlite/trace.sql: trace-sweep
DELETE /* rowlock trace-sweep */ FROM "rowlock_trace" WHERE (at, id) IN (
  SELECT at, id FROM "rowlock_trace" WHERE at < CAST(unixepoch('subsec') * 1000 AS INTEGER) - (? + 999) / 1000
  ORDER BY at, id LIMIT ?)

-- schema/statements/all.sql: guard-leases
SELECT /* rowlock guard-leases */ count(*) FROM "rowlock" WHERE owner IS NOT NULL AND expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER) AND expires_at < 253370764800000

-- schema/statements/all.sql: guard-keys
SELECT /* rowlock guard-keys */ count(*) FROM "rowlock"
WHERE placement NOT IN (0, -1) OR token NOT BETWEEN 0 AND 9223372036853727230

-- schema/statements/all.sql: guard-once
SELECT /* rowlock guard-once */ count(*) FROM "rowlock_once" WHERE expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)

-- schema/statements/all.sql: guard-latches
SELECT /* rowlock guard-latches */ count(*) FROM "rowlock_latch" WHERE expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)

-- schema/statements/all.sql: waiters
SELECT /* rowlock waiters */ count(*) FROM "rowlock_queue" WHERE alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER)

-- schema/statements/all.sql: forget-version
DELETE /* rowlock forget-version */ FROM "rowlock_meta"
WHERE substr(name, 1, 14) = 'schema_version' OR substr(name, 1, 15) = 'compatible_from'

-- schema/statements/sqlite.sql: exists
SELECT /* rowlock exists */ ?1 = 'main' AND EXISTS (SELECT 1 FROM main.sqlite_schema AS s, pragma_table_info(s.name, 'main') AS c
  WHERE s.type = 'table' AND s.name = ?2 COLLATE NOCASE AND ?3 IN ('', c.name))

-- schema/statements/sqlite.sql: patience
PRAGMA /* rowlock patience */ busy_timeout

-- schema/statements/sqlite.sql: begin
BEGIN /* rowlock begin */ IMMEDIATE

-- schema/statements/sqlite.sql: lock
SELECT /* rowlock lock */ true

-- schema/statements/sqlite.sql: guard-members
SELECT /* rowlock guard-members */ count(*) FROM "rowlock_member" WHERE expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER) AND reader_group <> x'00000000000000000000000000000000'

-- schema/statements/sqlite.sql: keep-tokens
UPDATE /* rowlock keep-tokens */ "rowlock_floor" SET floor = max(floor, (SELECT coalesce(max(token), 0) FROM "rowlock"))

-- schema/statements/sqlite.sql: commit
COMMIT /* rowlock commit */

-- schema/statements/sqlite.sql: rollback
ROLLBACK /* rowlock rollback */

-- schema/statements/sqlite.sql: unlock
SELECT /* rowlock unlock */ true
