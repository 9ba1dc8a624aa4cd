-- Every statement as the server gets it.
-- Written by: go test ./dialect -run Golden -update

-- dialect/postgres/cas.sql: cas-setup
SELECT /* rowlock cas-setup */ 100 FROM set_config('lock_timeout', '100', false)

-- dialect/postgres/cas.sql: cas-look
SELECT /* rowlock cas-look */ CASE WHEN placement <> 0 THEN 4
            WHEN owner = $1 AND expires_at > clock_timestamp() THEN 7
            WHEN owner IS NOT NULL AND expires_at > clock_timestamp() THEN 0
            WHEN token NOT BETWEEN 0 AND 9223372036853727231 - 1 THEN 3
            WHEN owner IS NOT NULL THEN 5
            ELSE 2 END AS state,
       token, left(note, 384), CASE WHEN owner IS NULL THEN 0 WHEN isfinite(expires_at)
         THEN (extract(epoch FROM expires_at - clock_timestamp()) * 1000000)::bigint END
         AS remaining,
       owner, CASE WHEN owner IS NULL THEN 0 WHEN expires_at BETWEEN '0001-01-01' AND '9999-12-31'
         THEN (extract(epoch FROM expires_at) * 1000000)::bigint END AS expires
FROM "rowlock" WHERE key = $2

-- dialect/postgres/cas.sql: cas-take-free
UPDATE /* rowlock cas-take-free */ "rowlock" AS r
SET owner = $1, note = $2, expires_at = clock_timestamp() + $3::bigint * interval '1 microsecond',
  acquired_at = clock_timestamp(), token = greatest($4::bigint - 1, @era) + 1
WHERE r.key = $5 AND r.placement = 0 AND r.token = $6 AND r.owner IS NULL

-- dialect/postgres/cas.sql: cas-take
UPDATE /* rowlock cas-take */ "rowlock" AS r
SET owner = $1, note = $2, expires_at = clock_timestamp() + $3::bigint * interval '1 microsecond',
  acquired_at = clock_timestamp(), token = greatest($4::bigint - 1, @era) + 1
WHERE r.key = $5 AND r.placement = 0 AND r.token = $6 AND r.owner = $7::bytea
  AND (extract(epoch FROM r.expires_at) * 1000000)::bigint = $8::bigint
  AND r.expires_at <= clock_timestamp()

-- dialect/postgres/cas.sql: cas-insert
INSERT /* rowlock cas-insert */ INTO "rowlock" (key, owner, note, token, acquired_at, expires_at, placement)
SELECT $1, $2, $3, greatest(f.floor, @era) + 1, clock_timestamp(),
  clock_timestamp() + $4::bigint * interval '1 microsecond', 0
FROM "rowlock_floor" AS f WHERE f.bucket = $5::int AND f.floor < 9223372036853727231 - 1
ON CONFLICT (key) DO NOTHING

-- dialect/postgres/cas.sql: cas-made
SELECT /* rowlock cas-made */ r.token, f.floor FROM "rowlock" AS r, "rowlock_floor" AS f
  WHERE f.bucket = $1::int AND r.key = $2

-- dialect/postgres/cas.sql: cas-raise
UPDATE /* rowlock cas-raise */ "rowlock" SET token = greatest($1::bigint - 1, @era) + 1 WHERE key = $2

-- dialect/postgres/cas.sql: cas-renew
UPDATE /* rowlock cas-renew */ "rowlock" AS r SET expires_at = clock_timestamp() + w.d * interval '1 microsecond'
FROM json_to_recordset($1::json) AS w (k text, o text, t bigint, d bigint)
WHERE r.key = decode(w.k, 'hex') AND r.owner = decode(w.o, 'hex') AND r.token = w.t
  AND r.placement = 0
  AND r.expires_at > clock_timestamp()

-- dialect/postgres/cas.sql: cas-renew-look
SELECT /* rowlock cas-renew-look */ w.n, CASE WHEN isfinite(r.expires_at)
         THEN (extract(epoch FROM r.expires_at - clock_timestamp()) * 1000000)::bigint END AS remaining,
       (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS clock
FROM json_array_elements($1::json) WITH ORDINALITY AS w (j, n)
  JOIN "rowlock" AS r ON r.key = decode(w.j ->> 'k', 'hex')
WHERE r.owner = decode(w.j ->> 'o', 'hex') AND r.token = (w.j ->> 't')::bigint AND r.placement = 0

-- dialect/postgres/cas.sql: cas-fence
UPDATE /* rowlock cas-fence */ "rowlock" SET token = token WHERE key = $1 AND owner = $2 AND token = $3 AND placement = 0

-- dialect/postgres/cas.sql: cas-floor
SELECT /* rowlock cas-floor */ floor FROM "rowlock_floor" WHERE bucket = $1::int

-- dialect/postgres/cas.sql: cas-dead
SELECT /* rowlock cas-dead */ coalesce(max(token), -1) FROM "rowlock"
WHERE key = ANY ($1::bytea[]) AND placement = 0 AND token BETWEEN 0 AND 9223372036853727231 - 1
  AND expires_at <= clock_timestamp() - $2::bigint * interval '1 microsecond'

-- dialect/postgres/cas.sql: cas-reap
DELETE /* rowlock cas-reap */ FROM "rowlock"
WHERE key = ANY ($1::bytea[]) AND placement = 0
  AND expires_at <= clock_timestamp() - $2::bigint * interval '1 microsecond'
  AND token <= $3

-- dialect/postgres/cas.sql: cas-drop-dead
DELETE /* rowlock cas-drop-dead */ FROM "rowlock_queue"
WHERE key = $1 AND waiter = $2
  AND alive_until <= clock_timestamp() - $3::bigint * interval '1 microsecond'

-- dialect/postgres/doctor.sql: doctor-expired
SELECT /* rowlock doctor-expired */ key, left(note, 384), token,
  CASE WHEN isfinite(expires_at)
         THEN (extract(epoch FROM clock_timestamp() - expires_at) * 1000000)::bigint END AS age
FROM "rowlock"
WHERE placement = 0 AND owner IS NOT NULL AND expires_at <= clock_timestamp()
  AND position(chr(11) IN note) = 0 LIMIT $1::bigint

-- dialect/postgres/doctor.sql: doctor-left
SELECT /* rowlock doctor-left */ count(*), coalesce(sum(CASE WHEN age > $1::bigint THEN 1 ELSE 0 END), 0)::bigint,
  coalesce(max(age), 0)::bigint
FROM (SELECT CASE WHEN isfinite(@column)
         THEN (extract(epoch FROM clock_timestamp() - @column) * 1000000)::bigint END AS age
  FROM @table WHERE @column <= clock_timestamp() LIMIT $2::bigint) AS d

-- dialect/postgres/doctor.sql: doctor-waits
SELECT /* rowlock doctor-waits */ w.caller, h.caller AS holder, w.key, left(w.note, 384), w.process,
  CASE WHEN isfinite(w.since)
         THEN (extract(epoch FROM clock_timestamp() - w.since) * 1000000)::bigint END AS waited
FROM "rowlock_wait" AS w
JOIN "rowlock" AS r ON r.key = w.key AND r.placement = 0
  AND r.owner IS NOT NULL AND r.expires_at > clock_timestamp() AND (r.token = w.awaits
    OR r.token = -w.awaits AND r.expires_at < '9999-01-01 00:00:00+00')
JOIN "rowlock_wait" AS h ON h.key = r.key AND h.token = r.token AND h.process = w.process
  AND h.alive_until > clock_timestamp()
WHERE w.token = 0 AND w.alive_until > clock_timestamp() LIMIT $1::bigint

-- dialect/postgres/doctor.sql: doctor-bad
SELECT /* rowlock doctor-bad */ @key, what FROM (
  SELECT @key, CASE @tests END AS what FROM @table
) AS b WHERE what IS NOT NULL LIMIT $1::bigint

-- dialect/postgres/doctor.sql: doctor-bad-bytes
(octet_length(@column) NOT @bounds)

-- dialect/postgres/doctor.sql: doctor-bad-number
(@column IS NULL OR @column NOT BETWEEN @bounds)

-- dialect/postgres/doctor.sql: doctor-bad-time
(@column IS NULL OR @column NOT BETWEEN '0001-01-01' AND '9999-12-31')

-- dialect/postgres/doctor.sql: doctor-bad-note
(@column IS NULL OR octet_length(@column) > 384)

-- dialect/postgres/doctor.sql: doctor-bad-far
(@column > clock_timestamp() + @bounds * interval '1 day')

-- dialect/postgres/doctor.sql: doctor-bad-lease
(owner IS NOT NULL AND @column <> '9999-01-01 00:00:00+00' AND @column > clock_timestamp() + @bounds * interval '1 day')

-- dialect/postgres/era.sql: era-history
SELECT /* rowlock era-history */ 'era/' || (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint || '/' || d.oid || '.'
  || d.xmin || '/' || coalesce(pg_relation_filenode('"rowlock"'::regclass), 0)
FROM pg_database AS d WHERE d.datname = current_database()

-- dialect/postgres/era.sql: era-look
SELECT /* rowlock era-look */ h.name, coalesce((SELECT max(start) FROM "rowlock_meta"), -1), (SELECT count(*) FROM "rowlock_meta" WHERE name LIKE 'era/%'),
  coalesce((SELECT name = h.name || '/' || xmin FROM "rowlock_meta" WHERE name LIKE 'era/%'
    ORDER BY start DESC LIMIT 1), false)::int, pg_is_in_recovery()::int,
  (SELECT value FROM "rowlock_meta" WHERE name IN ('compatible_from', 'compatible_from/shared') ORDER BY length(value) DESC, value DESC LIMIT 1)
FROM (SELECT (@history) AS name) AS h

-- dialect/postgres/era.sql: era-make
INSERT /* rowlock era-make */ INTO "rowlock_meta" (name, start, since) VALUES ('eras', 0, clock_timestamp())
ON CONFLICT (name) DO NOTHING

-- dialect/postgres/era.sql: era-lock
UPDATE /* rowlock era-lock */ "rowlock_meta" SET start = start WHERE name = 'eras'

-- dialect/postgres/era.sql: era-fresh
SELECT /* rowlock era-fresh */ (NOT EXISTS (SELECT 1 FROM "rowlock") AND (SELECT max(floor) FROM "rowlock_floor") = 0
  AND (SELECT since FROM "rowlock_meta" WHERE name = 'eras') > clock_timestamp() - interval '5 minutes')::int

-- dialect/postgres/era.sql: era-clock
SELECT /* rowlock era-clock */ (extract(epoch FROM clock_timestamp()) * 1000000)::bigint

-- dialect/postgres/era.sql: era-write
INSERT /* rowlock era-write */ INTO "rowlock_meta" (name, start, since)
VALUES ($1 || '/' || (txid_current() & 4294967295), $2, clock_timestamp())
ON CONFLICT (name) DO UPDATE SET start = excluded.start, since = excluded.since

-- dialect/postgres/era.sql: era-kept
SELECT /* rowlock era-kept */ start FROM "rowlock_meta" WHERE name LIKE 'era/%' ORDER BY start DESC LIMIT 1 OFFSET $1::bigint

-- dialect/postgres/era.sql: era-drop
DELETE /* rowlock era-drop */ FROM "rowlock_meta" WHERE name LIKE 'era/%' AND start <= $1::bigint

-- dialect/postgres/evict.sql: session-id
SELECT /* rowlock session-id */ pg_backend_pid()::bigint

-- dialect/postgres/evict.sql: session-ids
SELECT /* rowlock session-ids */ pid::bigint FROM pg_stat_activity WHERE pid IS NOT NULL

-- dialect/postgres/evict.sql: late-lease
r.expires_at <= clock_timestamp()

-- dialect/postgres/evict.sql: late-any
1 = 1

-- dialect/postgres/evict.sql: await-expired
SELECT /* rowlock await-expired */ 1 FROM "rowlock" AS r
  WHERE r.key = $1 AND r.placement = 0 AND r.owner IS NOT NULL AND @late FOR UPDATE OF r

-- dialect/postgres/evict.sql: evict
WITH /* rowlock evict */ late AS MATERIALIZED (
  SELECT 1 FROM "rowlock" AS r WHERE r.key = $1 AND r.placement = 0 AND r.owner IS NOT NULL AND @late
), locks AS MATERIALIZED (
  SELECT pid, transactionid, granted FROM pg_locks WHERE locktype = 'transactionid'
), first AS MATERIALIZED (
  SELECT $2::int AS pid UNION ALL SELECT unnest(pg_blocking_pids(pid)) FROM pg_locks
    WHERE pid = $2::int AND locktype = 'tuple' AND NOT granted
), blockers AS MATERIALIZED (
  SELECT a.pid, COALESCE(a.usename, p.owner) AS usename, p.gid,
    COALESCE(a.usename = session_user, false) AS own, host(a.client_addr) || ':' || a.client_port AS peer,
    COALESCE(extract(epoch FROM clock_timestamp() - COALESCE(a.xact_start, p.prepared)) * 1000000, -1)::bigint AS age
  FROM first JOIN locks AS w ON w.pid = first.pid AND NOT w.granted
  JOIN locks AS h ON h.transactionid = w.transactionid AND h.granted
  LEFT JOIN pg_stat_activity AS a ON a.pid = h.pid
  LEFT JOIN pg_prepared_xacts AS p ON h.pid IS NULL AND p.transaction = h.transactionid
  WHERE EXISTS (SELECT FROM late) AND (a.pid IS NOT NULL OR p.gid IS NOT NULL)
)
SELECT COALESCE(pid, 0)::bigint, COALESCE(usename::text, ''), COALESCE(peer, ''), age, own,
  CASE WHEN own AND age >= $3::bigint THEN pg_terminate_backend(pid) ELSE false END,
  CASE WHEN gid IS NULL THEN '' ELSE 'ROLLBACK PREPARED ' || quote_literal(gid) END
FROM blockers

-- dialect/postgres/force.sql: force-lock
SELECT /* rowlock force-lock */ owner, token, left(note, 384) FROM "rowlock" WHERE key = $1 AND placement = 0 AND owner IS NOT NULL
FOR UPDATE

-- dialect/postgres/force.sql: force-placement
SELECT /* rowlock force-placement */ count(*) FROM "rowlock" WHERE key = $1 AND placement <> 0

-- dialect/postgres/force.sql: force-end
UPDATE /* rowlock force-end */ "rowlock" SET owner = NULL, note = '', token = least($1::bigint, 9223372036853727231),
  expires_at = clock_timestamp()
WHERE key = $2 AND owner = $3 AND token = $4 AND placement = 0

-- dialect/postgres/force.sql: force-lock-bad
SELECT /* rowlock force-lock-bad */ key FROM "rowlock" WHERE key = $1 FOR UPDATE

-- dialect/postgres/force.sql: force-repair
UPDATE /* rowlock force-repair */ "rowlock" SET owner = NULL, note = '', token = $1, acquired_at = clock_timestamp(),
  expires_at = clock_timestamp(), placement = 0
WHERE key = $2 AND (placement = 0 OR placement IS NULL OR placement < -1)

-- dialect/postgres/force.sql: force-tickets
DELETE /* rowlock force-tickets */ FROM "rowlock_queue"
WHERE key = $1 AND (alive_until IS NULL OR NOT isfinite(alive_until)
  OR alive_until > clock_timestamp() + interval '1 day' OR octet_length(waiter) <> 16)

-- dialect/postgres/force.sql: force-record
INSERT /* rowlock force-record */ INTO "rowlock_forced" (key, at, id, actor, reason, asked, owner, token, note, raised)
SELECT r.key, clock_timestamp(), $1::bytea, $2::text || chr(9) || session_user, $3::text, $4::bigint, $5::bytea, $6::bigint,
  $7::text, r.token
FROM "rowlock" AS r WHERE r.key = $8

-- dialect/postgres/force.sql: force-find
SELECT /* rowlock force-find */ key, CASE WHEN at BETWEEN '0001-01-01' AND '9999-12-31'
         THEN (extract(epoch FROM at) * 1000000)::bigint END,
  id, left(actor, 384), left(reason, 1000), asked, owner, token, left(note, 384), raised
FROM "rowlock_forced" WHERE key = $1 AND id = $2

-- dialect/postgres/force.sql: force-confirm
UPDATE /* rowlock force-confirm */ "rowlock" SET acquired_at = acquired_at + interval '1 microsecond' WHERE key = $1

-- dialect/postgres/force.sql: force-list
SELECT /* rowlock force-list */ key, CASE WHEN at BETWEEN '0001-01-01' AND '9999-12-31'
         THEN (extract(epoch FROM at) * 1000000)::bigint END,
  id, left(actor, 384), left(reason, 1000), asked, owner, token, left(note, 384), raised
FROM "rowlock_forced"
WHERE substr(key, 1, $1::int) = $2 AND (at, raised, id) < ('epoch'::timestamptz + $3::bigint * interval '1 microsecond', $4::bigint, $5::bytea)
ORDER BY at DESC, raised DESC, id DESC LIMIT $6::bigint

-- dialect/postgres/force.sql: force-list-key
SELECT /* rowlock force-list-key */ key, CASE WHEN at BETWEEN '0001-01-01' AND '9999-12-31'
         THEN (extract(epoch FROM at) * 1000000)::bigint END,
  id, left(actor, 384), left(reason, 1000), asked, owner, token, left(note, 384), raised
FROM "rowlock_forced"
WHERE key = $1 AND (at, raised, id) < ('epoch'::timestamptz + $2::bigint * interval '1 microsecond', $3::bigint, $4::bytea)
ORDER BY at DESC, raised DESC, id DESC LIMIT $5::bigint

-- dialect/postgres/graph.sql: wait-note
WITH /* rowlock wait-note */ quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
INSERT INTO "rowlock_wait" AS e (caller, key, token, awaits, process, note, since, alive_until)
SELECT w.caller, w.key, greatest(w.token, 0),
  CASE WHEN w.token > 0 THEN 0 ELSE coalesce((SELECT CASE w.token WHEN 0 THEN r.token ELSE -r.token END
    FROM "rowlock" AS r WHERE r.key = w.key), 0) END, $1::smallint, $2::text,
  statement_timestamp() - w.waited * interval '1 microsecond',
  statement_timestamp() + $3::bigint * interval '1 microsecond'
FROM quick, unnest($4::bytea[], $5::bytea[], $6::bigint[], $7::bigint[])
  AS w (key, caller, token, waited)
ON CONFLICT (caller, key, token) DO UPDATE SET awaits = excluded.awaits,
  alive_until = least(excluded.alive_until, e.since + (excluded.alive_until - excluded.since))

-- dialect/postgres/graph.sql: wait-erase
WITH /* rowlock wait-erase */ quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
DELETE FROM "rowlock_wait" AS e
USING quick, unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::bigint[])
  AS w (key, caller, token, nothing)
WHERE e.caller = w.caller AND e.key = w.key AND e.token = greatest(w.token, 0)

-- dialect/postgres/graph.sql: wait-edges
WITH /* rowlock wait-edges */ RECURSIVE edges AS NOT MATERIALIZED (
  SELECT w.caller, w.key, w.note, w.since, w.alive_until, r.token, h.caller AS holder
  FROM "rowlock_wait" AS w
  JOIN "rowlock" AS r ON r.key = w.key AND r.placement = 0 AND r.owner IS NOT NULL
    AND r.expires_at > clock_timestamp() AND (r.token = w.awaits
      OR r.token = -w.awaits AND r.expires_at < '9999-01-01 00:00:00+00')
  JOIN "rowlock_wait" AS h ON h.key = r.key AND h.token = r.token AND h.process = w.process
    AND h.alive_until > clock_timestamp()
  WHERE w.token = 0 AND w.process = $2::smallint AND w.alive_until > clock_timestamp()
), reached (caller) AS (
  SELECT c FROM unnest($1::bytea[]) AS f (c)
  UNION
  SELECT e.holder FROM reached AS f JOIN edges AS e ON e.caller = f.caller
)
SELECT e.caller, e.holder, e.key, e.token, left(e.note, 384),
  CASE WHEN e.since BETWEEN '0001-01-01' AND '9999-12-31'
         THEN (extract(epoch FROM e.since) * 1000000)::bigint END AS since,
  CASE WHEN e.alive_until BETWEEN '0001-01-01' AND '9999-12-31'
         THEN (extract(epoch FROM e.alive_until) * 1000000)::bigint END AS expires,
  CASE WHEN isfinite(e.since)
         THEN (extract(epoch FROM clock_timestamp() - e.since) * 1000000)::bigint END AS waited
FROM reached AS f JOIN edges AS e ON e.caller = f.caller LIMIT $3::bigint

-- dialect/postgres/graph.sql: wait-dead
SELECT /* rowlock wait-dead */ EXISTS (SELECT 1 FROM "rowlock_wait"
  WHERE alive_until <= clock_timestamp() - $1::bigint * interval '1 microsecond')

-- dialect/postgres/graph.sql: wait-reap
DELETE /* rowlock wait-reap */ FROM "rowlock_wait"
WHERE alive_until <= clock_timestamp() - $1::bigint * interval '1 microsecond'

-- dialect/postgres/hints.sql: register
WITH /* rowlock register */ quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
INSERT INTO "rowlock_queue" (key, waiter, note, alive_until)
SELECT w.key, $1::bytea, $2::text, clock_timestamp() + $3::bigint * interval '1 microsecond'
FROM quick, unnest($4::bytea[]) AS w (key)
ON CONFLICT (key, waiter) DO UPDATE
  SET note = $2::text, alive_until = clock_timestamp() + $3::bigint * interval '1 microsecond'

-- dialect/postgres/hints.sql: unregister
WITH /* rowlock unregister */ quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
DELETE FROM "rowlock_queue" AS q USING quick, unnest($1::bytea[]) AS w (key)
WHERE q.key = w.key AND q.waiter = $2 AND q.rank IS NULL

-- dialect/postgres/hints.sql: awaited
SELECT /* rowlock awaited */ EXISTS (SELECT 1 FROM "rowlock_queue" AS q
               WHERE q.key = w.key AND q.waiter <> $1 AND q.alive_until > clock_timestamp())
                 AS awaited
FROM unnest($2::bytea[]) WITH ORDINALITY AS w (key, n) ORDER BY w.n

-- dialect/postgres/hints.sql: waiting
SELECT /* rowlock waiting */ (SELECT count(*) FROM (SELECT 1 FROM "rowlock_queue" AS q
        WHERE q.key = w.key AND q.rank IS NULL AND q.alive_until > clock_timestamp() LIMIT 100)
          AS live)
FROM unnest($1::bytea[]) WITH ORDINALITY AS w (key, n) ORDER BY w.n

-- dialect/postgres/hints.sql: announce
SELECT /* rowlock announce */ pg_notify($1::text, m) FROM unnest($2::text[]) AS m

-- dialect/postgres/hints.sql: wake
SELECT /* rowlock wake */ pg_notify($1::text || coalesce('_' || encode(substr(coalesce(
  (SELECT q.waiter FROM "rowlock_queue" AS q
   WHERE q.key = w.key AND q.waiter > $3 AND q.rank IS NULL AND right(q.note, 7) = 'listens'
     AND q.alive_until > clock_timestamp()
   ORDER BY q.key, q.waiter LIMIT 1),
  (SELECT q.waiter FROM "rowlock_queue" AS q
   WHERE q.key = w.key AND q.waiter < $3 AND q.rank IS NULL AND right(q.note, 7) = 'listens'
     AND q.alive_until > clock_timestamp()
   ORDER BY q.key, q.waiter LIMIT 1)), 1, 8), 'hex'), ''), encode(w.key, 'hex'))
FROM unnest($2::bytea[]) AS w (key)

-- dialect/postgres/hold.sql: write-lock

-- dialect/postgres/hold.sql: hold-begin
BEGIN /* rowlock hold-begin */

-- dialect/postgres/hold.sql: hold-end
ROLLBACK /* rowlock hold-end */ AND CHAIN

-- dialect/postgres/hold.sql: hold-lock
SELECT /* rowlock hold-lock */ 1 FROM "rowlock_hold" WHERE key = $1 FOR UPDATE SKIP LOCKED

-- dialect/postgres/hold.sql: hold-make
INSERT /* rowlock hold-make */ INTO "rowlock_hold" (key, made_at)
SELECT k, clock_timestamp() FROM unnest($1::bytea[]) AS w (k)
ON CONFLICT (key) DO NOTHING

-- dialect/postgres/hold.sql: hold-free
SELECT /* rowlock hold-free */ key FROM "rowlock_hold" WHERE key = ANY ($1::bytea[]) FOR SHARE SKIP LOCKED

-- dialect/postgres/hold.sql: hold-evict
UPDATE /* rowlock hold-evict */ "rowlock" SET owner = NULL, note = '', expires_at = clock_timestamp()
WHERE key = (SELECT key FROM "rowlock"
  WHERE key = $1 AND owner = $2 AND token = $3 AND placement = 0 FOR NO KEY UPDATE SKIP LOCKED)

-- dialect/postgres/hold.sql: hold-table
"rowlock_hold"

-- dialect/postgres/hold.sql: hold-dead
SELECT /* rowlock hold-dead */ key, dead FROM (
  SELECT key, made_at <= clock_timestamp() - $3::bigint * interval '1 microsecond'
           AND NOT EXISTS (SELECT 1 FROM "rowlock" AS r WHERE r.key = page.key) AS dead,
         row_number() OVER (ORDER BY key) AS n
  FROM (SELECT key, made_at FROM "rowlock_hold" WHERE key > $1 ORDER BY key LIMIT $2::int) AS page
) AS w WHERE dead OR n = $4::int ORDER BY key

-- dialect/postgres/hold.sql: hold-drop
DELETE /* rowlock hold-drop */ FROM "rowlock_hold"
  WHERE key IN (SELECT key FROM "rowlock_hold" WHERE key = ANY ($1::bytea[])
  FOR UPDATE SKIP LOCKED)

-- dialect/postgres/latch.sql: latch-look
SELECT /* rowlock latch-look */ l.id, l.generation, l.parties, l.state, l.ended,
  CASE WHEN isfinite(l.expires_at)
         THEN (extract(epoch FROM l.expires_at - clock_timestamp()) * 1000000)::bigint END AS remaining,
  (SELECT count(*) FROM "rowlock_party" AS p WHERE p.id = l.id AND p.phase = 0) AS counted,
  0 AS gone, 0 AS dead
FROM "rowlock_latch" AS l WHERE l.kind = $1 AND l.key = $2

-- dialect/postgres/latch.sql: latch-make
INSERT /* rowlock latch-make */ INTO "rowlock_latch" (kind, key, id, generation, parties, made_at, expires_at)
VALUES ($1, $2, $3, 1, $4, clock_timestamp(),
  clock_timestamp() + $5::bigint * interval '1 microsecond')
ON CONFLICT (kind, key) DO NOTHING

-- dialect/postgres/latch.sql: latch-take
UPDATE /* rowlock latch-take */ "rowlock_latch"
SET id = $1, parties = $2, generation = generation + 1, state = 0, ended = 0,
  made_at = clock_timestamp(),
  expires_at = clock_timestamp() + $3::bigint * interval '1 microsecond'
WHERE kind = $4 AND key = $5 AND expires_at <= clock_timestamp()

-- dialect/postgres/latch.sql: latch-keep
UPDATE /* rowlock latch-keep */ "rowlock_latch"
SET made_at = made_at + interval '1 microsecond',
  expires_at = greatest(expires_at, clock_timestamp() + $1::bigint * interval '1 microsecond')
WHERE kind = $2 AND key = $3 AND id = $4 AND expires_at > clock_timestamp()

-- dialect/postgres/latch.sql: latch-reset
UPDATE /* rowlock latch-reset */ "rowlock_latch"
SET id = $1, generation = generation + 1, ended = state, state = 0, made_at = clock_timestamp(),
  expires_at = clock_timestamp() + $2::bigint * interval '1 microsecond'
WHERE kind = $3 AND key = $4 AND id = $5 AND state >= $6 AND expires_at > clock_timestamp()

-- dialect/postgres/latch.sql: latch-count
INSERT /* rowlock latch-count */ INTO "rowlock_party" AS p (id, phase, party, counted_at)
SELECT l.id, 0, $1::bytea, clock_timestamp() FROM "rowlock_latch" AS l
WHERE l.kind = $2 AND l.key = $3 AND l.id = $4 AND l.expires_at > clock_timestamp()
ON CONFLICT (id, phase, party) DO UPDATE SET counted_at = p.counted_at + interval '1 microsecond'

-- dialect/postgres/latch.sql: barrier-look
SELECT /* rowlock barrier-look */ l.id, l.generation, l.parties, l.state, l.ended,
  CASE WHEN isfinite(l.expires_at)
         THEN (extract(epoch FROM l.expires_at - clock_timestamp()) * 1000000)::bigint END AS remaining,
  (SELECT count(*) FROM "rowlock_party" AS p WHERE p.id = l.id AND p.phase = 0) AS counted,
  (SELECT count(*) FROM "rowlock_party" AS p WHERE p.id = l.id AND p.phase = 1) AS gone,
  (SELECT count(*) FROM "rowlock_party" AS p
   WHERE p.id = l.id AND p.phase = 0 AND p.alive_until <= clock_timestamp()
     AND NOT EXISTS (SELECT 1 FROM "rowlock_party" AS g
                     WHERE g.id = p.id AND g.phase = 1 AND g.party = p.party)) AS dead
FROM "rowlock_latch" AS l WHERE l.kind = $1 AND l.key = $2

-- dialect/postgres/latch.sql: barrier-enter
INSERT /* rowlock barrier-enter */ INTO "rowlock_party" AS p (id, phase, party, counted_at, alive_until)
SELECT l.id, 0, $1::bytea, clock_timestamp(),
  clock_timestamp() + $2::bigint * interval '1 microsecond'
FROM "rowlock_latch" AS l WHERE l.kind = $3 AND l.key = $4 AND l.id = $5
  AND l.state = 0 AND l.expires_at > clock_timestamp() FOR SHARE
ON CONFLICT (id, phase, party) DO UPDATE
  SET counted_at = p.counted_at + interval '1 microsecond', alive_until = excluded.alive_until

-- dialect/postgres/latch.sql: barrier-beat
UPDATE /* rowlock barrier-beat */ "rowlock_party"
SET counted_at = counted_at + interval '1 microsecond', alive_until = clock_timestamp() + $1::bigint * interval '1 microsecond'
WHERE id = $2 AND phase = 0 AND party = $3
  AND NOT EXISTS (SELECT 1 FROM "rowlock_party" AS g WHERE g.id = $2 AND g.phase = 1 AND g.party = $3)

-- dialect/postgres/latch.sql: barrier-leave
INSERT /* rowlock barrier-leave */ INTO "rowlock_party" AS p (id, phase, party, counted_at)
SELECT l.id, 1, $1::bytea, clock_timestamp() FROM "rowlock_latch" AS l
WHERE l.kind = $2 AND l.key = $3 AND l.id = $4 AND l.state IN (1, 2)
  AND l.expires_at > clock_timestamp()
  AND EXISTS (SELECT 1 FROM "rowlock_party" AS e
              WHERE e.id = l.id AND e.phase = 0 AND e.party = $5::bytea)
ON CONFLICT (id, phase, party) DO UPDATE SET counted_at = p.counted_at + interval '1 microsecond'

-- dialect/postgres/latch.sql: barrier-open
UPDATE /* rowlock barrier-open */ "rowlock_latch" AS l SET state = 1
WHERE l.kind = $1 AND l.key = $2 AND l.id = $3 AND l.state = 0
  AND (SELECT count(*) FROM "rowlock_party" AS p WHERE p.id = l.id AND p.phase = 0) >= l.parties
  AND NOT EXISTS (SELECT 1 FROM "rowlock_party" AS p
                  WHERE p.id = l.id AND p.phase = 0 AND p.alive_until <= clock_timestamp())

-- dialect/postgres/latch.sql: barrier-done
UPDATE /* rowlock barrier-done */ "rowlock_latch" AS l SET state = 2
WHERE l.kind = $1 AND l.key = $2 AND l.id = $3 AND l.state = 1
  AND NOT EXISTS (SELECT 1 FROM "rowlock_party" AS p
                  WHERE p.id = l.id AND p.phase = 0
                    AND NOT EXISTS (SELECT 1 FROM "rowlock_party" AS g
                                    WHERE g.id = p.id AND g.phase = 1 AND g.party = p.party))

-- dialect/postgres/latch.sql: barrier-break
UPDATE /* rowlock barrier-break */ "rowlock_latch" AS l SET state = 3
WHERE l.kind = $1 AND l.key = $2 AND l.id = $3 AND l.state IN (0, 1)
  AND EXISTS (SELECT 1 FROM "rowlock_party" AS p
              WHERE p.id = l.id AND p.phase = 0 AND p.alive_until <= clock_timestamp()
                AND NOT EXISTS (SELECT 1 FROM "rowlock_party" AS g
                                WHERE g.id = p.id AND g.phase = 1 AND g.party = p.party))

-- dialect/postgres/latch.sql: barrier-dead
SELECT /* rowlock barrier-dead */ p.party FROM "rowlock_party" AS p
WHERE p.id = $1 AND p.phase = 0 AND p.alive_until <= clock_timestamp()
  AND NOT EXISTS (SELECT 1 FROM "rowlock_party" AS g
                  WHERE g.id = p.id AND g.phase = 1 AND g.party = p.party)
ORDER BY p.alive_until, p.party LIMIT 1

-- dialect/postgres/latch.sql: latch-sweep
DELETE /* rowlock latch-sweep */ FROM "rowlock_latch" AS l
USING (SELECT kind, key FROM "rowlock_latch" WHERE expires_at <= statement_timestamp()
       LIMIT $1 FOR UPDATE SKIP LOCKED) AS dead
WHERE l.kind = dead.kind AND l.key = dead.key

-- dialect/postgres/latch.sql: latch-next
SELECT /* rowlock latch-next */ p.id, EXISTS (SELECT 1 FROM "rowlock_latch" AS l WHERE l.id = p.id)::int AS live
FROM "rowlock_party" AS p WHERE p.id > $1 AND octet_length(p.id) = 16
ORDER BY p.id LIMIT 1

-- dialect/postgres/latch.sql: latch-drop
DELETE /* rowlock latch-drop */ FROM "rowlock_party" AS p
USING (SELECT id, phase, party FROM "rowlock_party" WHERE id = $1 LIMIT $2) AS dead
WHERE p.id = dead.id AND p.phase = dead.phase AND p.party = dead.party

-- dialect/postgres/limit.sql: limit-look
SELECT /* rowlock limit-look */ slots, peak, generation FROM "rowlock_limit" WHERE name = $1

-- dialect/postgres/limit.sql: limit-make
INSERT /* rowlock limit-make */ INTO "rowlock_limit" (name, slots, peak, generation) VALUES ($1, $2, $3, 1)
ON CONFLICT (name) DO NOTHING

-- dialect/postgres/limit.sql: limit-resize
UPDATE /* rowlock limit-resize */ "rowlock_limit" SET slots = $1, peak = greatest(peak, $2), generation = generation + 1
WHERE name = $3

-- dialect/postgres/limit.sql: apply-any-within
WITH /* rowlock apply-any-within */ limited AS (
  SELECT 1 FROM "rowlock_limit" WHERE name = $6 AND generation = $7 FOR SHARE SKIP LOCKED
), want AS (
  SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::text[], $4::bigint[])
    WITH ORDINALITY AS w (key, owner, note, ttl, n)
), seen AS (
  SELECT w.n, CASE WHEN r.key IS NULL THEN 4
                   WHEN r.placement <> 0 THEN 0
                   WHEN r.owner = w.owner AND r.expires_at > clock_timestamp() THEN 6
                   WHEN r.owner IS NOT NULL AND r.expires_at > clock_timestamp() THEN 2
                   WHEN r.token NOT BETWEEN 0 AND 9223372036853727231 - 1 THEN 0
                   ELSE 5 END AS outcome,
    coalesce(r.token, 0) AS token, coalesce(left(r.note, 384), '') AS note,
    CASE WHEN r.owner IS NULL THEN 0 WHEN isfinite(r.expires_at)
         THEN (extract(epoch FROM r.expires_at - clock_timestamp()) * 1000000)::bigint END
      AS remaining
  FROM want AS w LEFT JOIN "rowlock" AS r ON r.key = w.key
), free AS (
  SELECT w.* FROM want AS w JOIN "rowlock" AS r ON r.key = w.key
  WHERE r.placement = 0 AND r.token BETWEEN 0 AND 9223372036853727231 - 1
    AND (r.owner IS NULL OR r.expires_at <= clock_timestamp())
    AND EXISTS (SELECT 1 FROM limited)
    AND NOT EXISTS (SELECT 1 FROM seen WHERE outcome = 6)
    AND (SELECT count(*) FROM seen WHERE outcome = 5) >= $5::bigint
  ORDER BY w.n LIMIT $5::bigint FOR NO KEY UPDATE OF r SKIP LOCKED
), done AS (
  UPDATE "rowlock" AS r
  SET owner = f.owner, note = f.note, token = greatest(r.token, @era) + 1, acquired_at = clock_timestamp(),
      expires_at = clock_timestamp() + f.ttl * interval '1 microsecond'
  FROM free AS f
  WHERE r.key = f.key AND (SELECT count(*) FROM free) = $5::bigint
  RETURNING f.n, r.token
)
SELECT n, 1 AS outcome, token, false AS awaited, '' AS note, 0::bigint AS remaining FROM done
UNION ALL
SELECT n, outcome, token, false, note, remaining FROM seen WHERE NOT EXISTS (SELECT 1 FROM done)

-- dialect/postgres/limit.sql: apply-within
WITH /* rowlock apply-within */ limited AS (
  SELECT 1 FROM "rowlock_limit" WHERE name = $7 AND generation = $8 FOR SHARE SKIP LOCKED
), want AS (
  SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::bytea[],
    $5::text[], $6::bigint[])
    WITH ORDINALITY AS w (key, was, token, owner, note, ttl, n)
), found AS (
  SELECT w.*, r.ctid AS place FROM want AS w JOIN "rowlock" AS r ON r.key = w.key
  WHERE r.placement = 0 AND r.token BETWEEN 0 AND 9223372036853727231 - 1 AND r.owner = w.was AND r.token = w.token
    AND EXISTS (SELECT 1 FROM limited)
  ORDER BY r.key FOR NO KEY UPDATE OF r SKIP LOCKED
), done AS (
  UPDATE "rowlock" AS r
  SET owner = f.owner, note = f.note, token = greatest(r.token, @era) + 1, acquired_at = clock_timestamp(),
      expires_at = clock_timestamp() + f.ttl * interval '1 microsecond'
  FROM found AS f WHERE r.ctid = f.place AND r.key = f.key
  RETURNING f.n, r.token
)
SELECT n, 1 AS outcome, token, false AS awaited, '' AS note, 0::bigint AS remaining FROM done

-- dialect/postgres/move.sql: depart
UPDATE /* rowlock depart */ "rowlock" SET placement = $1, token = $2, owner = NULL, note = '', expires_at = clock_timestamp()
WHERE key = $3 AND owner = $4 AND token = $5 AND placement = 0

-- dialect/postgres/move.sql: return
UPDATE /* rowlock return */ "rowlock" SET placement = 0, token = $1, owner = NULL, note = '', expires_at = clock_timestamp()
WHERE key = $2 AND placement = $3 AND token >= $4 AND token < $5

-- dialect/postgres/move.sql: recall
INSERT /* rowlock recall */ INTO "rowlock" AS r (key, token, acquired_at, expires_at, placement)
SELECT $1, CASE WHEN $2::int = 0 THEN greatest(f.floor, $3::bigint) ELSE $3::bigint END,
  clock_timestamp(), clock_timestamp(), $2::int
FROM (SELECT floor FROM "rowlock_floor" WHERE bucket = $4::int FOR SHARE) AS f
WHERE $2::int = 0 OR f.floor < $3::bigint OR EXISTS (SELECT 1 FROM "rowlock" WHERE key = $1)
ON CONFLICT (key) DO UPDATE
  SET placement = $2::int, token = $3::bigint, owner = NULL, note = '',
  expires_at = clock_timestamp() WHERE r.token < $3::bigint

-- dialect/postgres/move.sql: confirm-placement
UPDATE /* rowlock confirm-placement */ "rowlock" SET acquired_at = acquired_at + interval '1 microsecond'
  WHERE key = $1 AND placement = $2 AND token >= $3 AND token < $4

-- dialect/postgres/move.sql: fence-at
UPDATE /* rowlock fence-at */ "rowlock" SET token = $4 WHERE key = $1 AND placement = $2 AND token BETWEEN $3 AND $4 RETURNING token

-- dialect/postgres/move.sql: fence-at-token
UPDATE /* rowlock fence-at-token */ "rowlock" SET token = $1 WHERE key = $2

-- dialect/postgres/once.sql: once-claim
WITH /* rowlock once-claim */ bound AS MATERIALIZED (
  SELECT current_setting('lock_timeout') AS before,
    set_config('lock_timeout', $5::text, true) AS now
), made AS (
  INSERT INTO "rowlock_once" AS o (tenant, key, fingerprint, made_at, expires_at)
  SELECT $1::bytea, $2::bytea, $3::bytea, clock_timestamp(),
    clock_timestamp() + $4::bigint * interval '1 microsecond'
  FROM bound WHERE bound.now IS NOT NULL
  ON CONFLICT (tenant, key) DO NOTHING
  RETURNING 1
)
SELECT CASE WHEN m.n > 0 THEN 1 WHEN o.key IS NULL THEN 0 WHEN o.expires_at > clock_timestamp()
  THEN 2 WHEN o.expires_at IS NOT NULL THEN 3 ELSE 5 END AS state,
  o.fingerprint, o.result, set_config('lock_timeout', (SELECT before FROM bound), true) AS again
FROM (SELECT count(*) AS n FROM made) AS m
LEFT JOIN "rowlock_once" AS o ON m.n = 0 AND o.tenant = $1::bytea AND o.key = $2::bytea

-- dialect/postgres/once.sql: once-look
SELECT /* rowlock once-look */ CASE WHEN o.expires_at > clock_timestamp() THEN 2 WHEN o.expires_at IS NOT NULL THEN 3
  ELSE 5 END AS state, o.fingerprint, o.result
FROM "rowlock_once" AS o WHERE o.tenant = $1 AND o.key = $2

-- dialect/postgres/once.sql: once-take
UPDATE /* rowlock once-take */ "rowlock_once"
SET fingerprint = $1, result = NULL, made_at = clock_timestamp(),
  expires_at = clock_timestamp() + $2::bigint * interval '1 microsecond'
WHERE tenant = $3 AND key = (SELECT key FROM "rowlock_once" WHERE tenant = $3 AND key = $4
  AND expires_at <= clock_timestamp() FOR NO KEY UPDATE SKIP LOCKED)

-- dialect/postgres/once.sql: once-store
UPDATE /* rowlock once-store */ "rowlock_once" SET result = $1 WHERE tenant = $2 AND key = $3

-- dialect/postgres/once.sql: once-confirm
UPDATE /* rowlock once-confirm */ "rowlock_once" SET made_at = made_at + interval '1 microsecond' WHERE tenant = $1 AND key = $2

-- dialect/postgres/once.sql: once-count
SELECT /* rowlock once-count */ count(*) FROM (SELECT 1 FROM "rowlock_once" WHERE tenant = $1 LIMIT $2::bigint) AS t

-- dialect/postgres/once.sql: once-sweep
DELETE /* rowlock once-sweep */ FROM "rowlock_once" AS o
USING (SELECT tenant, key FROM "rowlock_once" WHERE expires_at <= statement_timestamp()
       ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED) AS dead
WHERE o.tenant = dead.tenant AND o.key = dead.key

-- dialect/postgres/queue.sql: queue-join
WITH /* rowlock queue-join */ want AS (
  SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::bytea[],
    $5::bigint[])
    WITH ORDINALITY AS w (key, waiter, head_start, note, ttl, n)
), live AS (
  SELECT q.key, q.waiter FROM want AS w
    JOIN "rowlock_queue" AS q ON q.key = w.key AND q.waiter = w.waiter
  WHERE q.rank IS NOT NULL AND q.alive_until > clock_timestamp()
  ORDER BY q.key, q.ticket FOR NO KEY UPDATE OF q
), beat AS (
  UPDATE "rowlock_queue" AS q
  SET note = convert_from(w.note, 'UTF8'), ttl = w.ttl,
    alive_until = clock_timestamp() + w.ttl * interval '1 microsecond'
  FROM live AS l JOIN want AS w ON w.key = l.key AND w.waiter = l.waiter
  WHERE q.key = l.key AND q.waiter = l.waiter
)
INSERT INTO "rowlock_queue" AS q (key, waiter, rank, note, ttl, alive_until)
SELECT w.key, w.waiter, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - w.head_start,
  convert_from(w.note, 'UTF8'),
       w.ttl, clock_timestamp() + w.ttl * interval '1 microsecond'
FROM want AS w
WHERE NOT EXISTS (SELECT 1 FROM "rowlock_queue" AS t
                  WHERE t.key = w.key AND t.waiter = w.waiter AND t.rank IS NOT NULL
                    AND t.alive_until > clock_timestamp())
  AND NOT EXISTS (SELECT 1 FROM "rowlock" AS r
                  WHERE r.key = w.key AND r.owner = w.waiter AND r.expires_at > clock_timestamp())
ORDER BY w.n
ON CONFLICT (key, waiter) DO UPDATE
SET rank = excluded.rank, note = excluded.note, ttl = excluded.ttl,
  alive_until = excluded.alive_until

-- dialect/postgres/queue.sql: queue-leave
DELETE /* rowlock queue-leave */ FROM "rowlock_queue" AS q
USING (
  SELECT t.key, t.waiter FROM "rowlock_queue" AS t
  JOIN unnest($1::bytea[], $2::bytea[]) AS w (key, waiter) ON t.key = w.key
    AND t.waiter = w.waiter
  ORDER BY t.key, t.ticket FOR UPDATE OF t
) AS left_now
WHERE q.key = left_now.key AND q.waiter = left_now.waiter

-- dialect/postgres/queue.sql: places
WITH /* rowlock places */ want AS (
  SELECT * FROM unnest($1::bytea[], $2::bytea[]) WITH ORDINALITY AS w (key, waiter, n)
), line AS (
  SELECT key, waiter, row_number() OVER (PARTITION BY key ORDER BY rank, ticket) - 1 AS ahead
    FROM "rowlock_queue"
  WHERE key IN (SELECT key FROM want) AND rank IS NOT NULL AND alive_until > clock_timestamp()
)
SELECT w.n,
       CASE WHEN r.placement <> 0 THEN 4
            WHEN r.owner = w.waiter AND r.expires_at > clock_timestamp() THEN 1
            WHEN r.owner IS NOT NULL AND r.expires_at > clock_timestamp() THEN 0
            ELSE 2 END AS state,
       q.waiter IS NOT NULL AS waits, coalesce(r.token, 0) AS token, coalesce(left(r.note, 384), '') AS note,
       CASE WHEN r.owner IS NULL THEN 0 WHEN isfinite(r.expires_at)
         THEN (extract(epoch FROM r.expires_at - clock_timestamp()) * 1000000)::bigint END
         AS remaining,
       coalesce(q.ahead, 0) AS ahead
FROM want AS w
LEFT JOIN "rowlock" AS r ON r.key = w.key
LEFT JOIN line AS q ON q.key = w.key AND q.waiter = w.waiter
ORDER BY w.n

-- dialect/postgres/queue.sql: claim-update
WITH /* rowlock claim-update */ taken AS (
  UPDATE "rowlock" AS r
  SET owner = $2, note = $3, token = greatest(r.token, @era) + 1, acquired_at = clock_timestamp(),
      expires_at = clock_timestamp() + $4::bigint * interval '1 microsecond'
  WHERE r.key = $1 AND r.placement = 0 AND r.owner IS NULL AND r.token BETWEEN 0 AND 9223372036853727231 - 1
    AND coalesce((SELECT waiter FROM "rowlock_queue"
                  WHERE key = $1 AND rank IS NOT NULL AND alive_until > clock_timestamp()
                  ORDER BY rank, ticket LIMIT 1), $2) = $2
  RETURNING r.token
), used AS (
  DELETE FROM "rowlock_queue" WHERE key = $1 AND waiter = $2 AND EXISTS (SELECT 1 FROM taken)
)
SELECT token FROM taken

-- dialect/postgres/queue.sql: claim-any
WITH /* rowlock claim-any */ turn AS (
  SELECT coalesce((SELECT waiter FROM "rowlock_queue"
                   WHERE key = $1 AND rank IS NOT NULL AND alive_until > clock_timestamp()
                   ORDER BY rank, ticket LIMIT 1), $2) = $2 AS mine
), expired AS (
  SELECT key FROM "rowlock"
  WHERE key = $1 AND placement = 0 AND owner IS NOT NULL AND expires_at <= clock_timestamp()
    AND (SELECT mine FROM turn)
  FOR NO KEY UPDATE SKIP LOCKED
), taken AS (
  UPDATE "rowlock" AS r
  SET owner = $2, note = $3, token = greatest(r.token, @era) + 1, acquired_at = clock_timestamp(),
      expires_at = clock_timestamp() + $4::bigint * interval '1 microsecond'
  WHERE r.key = $1 AND r.placement = 0 AND r.token BETWEEN 0 AND 9223372036853727231 - 1 AND (SELECT mine FROM turn)
    AND (r.owner IS NULL OR r.key IN (SELECT key FROM expired))
  RETURNING r.token
), made AS (
  INSERT INTO "rowlock" AS r (key, owner, note, token, acquired_at, expires_at, placement)
  SELECT $1, $2, $3, greatest(f.floor, @era) + 1, clock_timestamp(),
    clock_timestamp() + $4::bigint * interval '1 microsecond', 0
  FROM (SELECT floor FROM "rowlock_floor"
    WHERE bucket = $5::int AND (SELECT mine FROM turn) FOR SHARE) AS f
  WHERE NOT EXISTS (SELECT 1 FROM "rowlock" WHERE key = $1) AND f.floor < 9223372036853727231
  ON CONFLICT (key) DO NOTHING
  RETURNING r.token
), used AS (
  DELETE FROM "rowlock_queue"
  WHERE key = $1 AND waiter = $2 AND (EXISTS (SELECT 1 FROM taken) OR EXISTS (SELECT 1 FROM made))
)
SELECT 1 AS state, token, '' AS note, 0::bigint AS remaining FROM taken
UNION ALL
SELECT 1, token, '', 0 FROM made
UNION ALL
SELECT CASE WHEN r.placement <> 0 THEN 4
            WHEN r.owner = $2 AND r.expires_at > clock_timestamp() THEN 7
            WHEN r.owner IS NOT NULL AND r.expires_at > clock_timestamp() THEN 0
            WHEN r.token NOT BETWEEN 0 AND 9223372036853727231 - 1 THEN 3
            WHEN NOT (SELECT mine FROM turn) THEN 6
            WHEN r.owner IS NOT NULL THEN 5
            ELSE 2 END,
       r.token, left(r.note, 384), CASE WHEN isfinite(r.expires_at)
         THEN (extract(epoch FROM r.expires_at - clock_timestamp()) * 1000000)::bigint END
FROM "rowlock" AS r WHERE r.key = $1 AND NOT EXISTS (SELECT 1 FROM taken)
UNION ALL
SELECT 6, 0, '', 0 FROM turn WHERE NOT mine AND NOT EXISTS (SELECT 1 FROM "rowlock" WHERE key = $1)

-- dialect/postgres/queue.sql: pass
WITH /* rowlock pass */ held AS (
  SELECT key, token FROM "rowlock"
    WHERE key = $1 AND owner = $2 AND $3::bigint IN (token, 0) AND placement = 0 FOR NO KEY UPDATE
), head AS (
  SELECT q.waiter, q.note, q.ttl FROM held AS h JOIN "rowlock_queue" AS q ON q.key = h.key
  WHERE q.waiter <> $2 AND q.rank IS NOT NULL AND q.alive_until > clock_timestamp()
    AND h.token BETWEEN 0 AND 9223372036853727231 - 1
  ORDER BY q.rank, q.ticket LIMIT 1 FOR UPDATE OF q
), passed AS (
  UPDATE "rowlock" AS r
  SET owner = n.waiter, note = coalesce(n.note, ''),
    token = CASE WHEN n.waiter IS NULL THEN r.token ELSE greatest(r.token, @era) + 1 END,
      acquired_at = CASE WHEN n.waiter IS NULL THEN r.acquired_at ELSE clock_timestamp() END,
      expires_at = clock_timestamp() + coalesce(n.ttl, 0) * interval '1 microsecond'
  FROM held AS h LEFT JOIN head AS n ON true
  WHERE r.key = h.key AND r.owner = $2 AND r.token = h.token
  RETURNING r.owner, r.token
), used AS (
  DELETE FROM "rowlock_queue" AS q USING passed AS p WHERE q.key = $1 AND q.waiter = p.owner
)
SELECT owner, token FROM passed

-- dialect/postgres/queue.sql: queue-dead
SELECT /* rowlock queue-dead */ key, waiter FROM "rowlock_queue"
WHERE (key, waiter) > ($1, $2)
  AND alive_until <= clock_timestamp() - $3::bigint * interval '1 microsecond'
  AND octet_length(waiter) = 16
ORDER BY key, waiter LIMIT $4::bigint

-- dialect/postgres/queue.sql: queue-reap
DELETE /* rowlock queue-reap */ FROM "rowlock_queue" AS q
USING (
  SELECT t.key, t.waiter FROM "rowlock_queue" AS t
  JOIN unnest($1::bytea[], $2::bytea[]) AS w (key, waiter) ON t.key = w.key
    AND t.waiter = w.waiter
  WHERE t.alive_until <= clock_timestamp() - $3::bigint * interval '1 microsecond'
  FOR UPDATE OF t SKIP LOCKED
) AS dead
WHERE q.key = dead.key AND q.waiter = dead.waiter

-- dialect/postgres/shared.sql: share
WITH /* rowlock share */ want AS (
  SELECT * FROM unnest($2::bytea[], $3::bytea[], $4::bigint[], $5::bigint[])
    AS w (key, owner, token, ttl)
), reader_group AS (
  SELECT r.key, r.owner FROM "rowlock" AS r
  WHERE r.key = ANY ($2::bytea[]) AND r.placement = 0 AND r.owner IS NOT NULL
    AND r.expires_at = '9999-01-01 00:00:00+00'
    AND coalesce((SELECT CASE WHEN isfinite(min(w.joined_at))
         THEN (extract(epoch FROM clock_timestamp() - min(w.joined_at))
        * 1000000)::bigint END % 11000000 < 10000000
      FROM "rowlock_member" AS w WHERE w.key = r.key
        AND w.reader_group = decode('00000000000000000000000000000000', 'hex')
        AND w.expires_at > clock_timestamp()), false) = false
  ORDER BY r.key FOR KEY SHARE SKIP LOCKED
)
INSERT INTO "rowlock_member" AS m (key, reader_group, owner, note, joined_at, expires_at)
SELECT w.key, t.owner, w.owner, $1::text, clock_timestamp(),
  clock_timestamp() + w.ttl * interval '1 microsecond'
FROM reader_group AS t JOIN want AS w ON w.key = t.key
ON CONFLICT (key, reader_group, owner) DO UPDATE SET expires_at = excluded.expires_at
RETURNING m.key, m.owner, m.reader_group

-- dialect/postgres/shared.sql: share-one
WITH /* rowlock share-one */ reader_group AS (
  SELECT r.key, r.owner FROM "rowlock" AS r
  WHERE r.key = $4 AND r.placement = 0 AND r.owner IS NOT NULL
    AND r.expires_at = '9999-01-01 00:00:00+00'
    AND coalesce((SELECT CASE WHEN isfinite(min(w.joined_at))
         THEN (extract(epoch FROM clock_timestamp() - min(w.joined_at))
        * 1000000)::bigint END % 11000000 < 10000000
      FROM "rowlock_member" AS w WHERE w.key = $4
        AND w.reader_group = decode('00000000000000000000000000000000', 'hex')
        AND w.expires_at > clock_timestamp()), false) = false
  FOR KEY SHARE SKIP LOCKED
)
INSERT INTO "rowlock_member" AS m (key, reader_group, owner, note, joined_at, expires_at)
SELECT t.key, t.owner, $1::bytea, $2::text, clock_timestamp(),
  clock_timestamp() + $3::bigint * interval '1 microsecond'
FROM reader_group AS t
ON CONFLICT (key, reader_group, owner) DO UPDATE SET expires_at = excluded.expires_at
RETURNING m.reader_group

-- dialect/postgres/shared.sql: member-look
SELECT /* rowlock member-look */ r.key,
  (SELECT count(*) FROM "rowlock_member" AS m
   WHERE m.key = r.key AND m.reader_group = r.owner AND m.expires_at > clock_timestamp()),
  coalesce((SELECT CASE WHEN isfinite(max(m.expires_at))
         THEN (extract(epoch FROM max(m.expires_at) - clock_timestamp()) * 1000000)::bigint END
   FROM "rowlock_member" AS m WHERE m.key = r.key AND m.reader_group = r.owner), 0),
  coalesce((SELECT left(m.note, 384) FROM "rowlock_member" AS m WHERE m.key = r.key AND m.reader_group = r.owner
   ORDER BY m.expires_at DESC LIMIT 1), ''),
  coalesce((SELECT CASE WHEN isfinite(min(w.joined_at))
         THEN (extract(epoch FROM clock_timestamp() - min(w.joined_at))
      * 1000000)::bigint END % 11000000 < 10000000
    FROM "rowlock_member" AS w WHERE w.key = r.key AND w.reader_group = decode('00000000000000000000000000000000', 'hex')
      AND w.expires_at > clock_timestamp()), false)::int
FROM "rowlock" AS r
WHERE r.key = ANY ($1::bytea[]) AND r.placement = 0 AND r.owner IS NOT NULL
  AND r.expires_at = '9999-01-01 00:00:00+00'

-- dialect/postgres/shared.sql: member-others
SELECT /* rowlock member-others */ r.key, EXISTS (SELECT 1 FROM "rowlock_member" AS w WHERE w.key = r.key
    AND w.reader_group = decode('00000000000000000000000000000000', 'hex') AND w.expires_at > clock_timestamp())::int
FROM "rowlock" AS r
WHERE r.key = ANY ($1::bytea[]) AND r.placement = 0 AND r.owner IS NOT NULL
  AND r.expires_at = '9999-01-01 00:00:00+00'
  AND NOT EXISTS (SELECT 1 FROM "rowlock_member" AS m
    WHERE m.key = r.key AND m.reader_group = r.owner AND m.expires_at > clock_timestamp())

-- dialect/postgres/shared.sql: member-find
SELECT /* rowlock member-find */ m.key, m.owner, m.reader_group
FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::bigint[])
  AS w (key, owner, token, nothing)
JOIN "rowlock_member" AS m ON m.key = w.key AND m.owner = w.owner
WHERE m.reader_group <> decode('00000000000000000000000000000000', 'hex')

-- dialect/postgres/shared.sql: member-renew
WITH /* rowlock member-renew */ want AS (
  SELECT w.key, w.owner, 'rowlockT'::bytea || int8send(w.token) AS reader_group, w.ttl
  FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::bigint[])
    AS w (key, owner, token, ttl)
), locked AS (
  SELECT m.key, m.reader_group, m.owner FROM "rowlock_member" AS m
  JOIN want AS w ON m.key = w.key AND m.reader_group = w.reader_group AND m.owner = w.owner
  ORDER BY m.key, m.reader_group, m.owner FOR NO KEY UPDATE OF m SKIP LOCKED
)
UPDATE "rowlock_member" AS m SET expires_at = clock_timestamp() + w.ttl * interval '1 microsecond'
FROM locked AS l JOIN want AS w ON w.key = l.key AND w.reader_group = l.reader_group AND w.owner = l.owner
WHERE m.key = l.key AND m.reader_group = l.reader_group AND m.owner = l.owner AND m.expires_at > clock_timestamp()
RETURNING m.key, m.owner, m.reader_group

-- dialect/postgres/shared.sql: member-left
SELECT /* rowlock member-left */ m.key, m.owner, m.reader_group,
  CASE WHEN isfinite(m.expires_at)
         THEN (extract(epoch FROM m.expires_at - clock_timestamp()) * 1000000)::bigint END
FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::bigint[])
  AS w (key, owner, token, nothing)
JOIN "rowlock_member" AS m ON m.key = w.key AND m.reader_group = 'rowlockT'::bytea || int8send(w.token)
  AND m.owner = w.owner

-- dialect/postgres/shared.sql: member-leave
DELETE /* rowlock member-leave */ FROM "rowlock_member" AS m
USING unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::bigint[])
  AS w (key, owner, token, nothing)
WHERE m.key = w.key AND m.reader_group = 'rowlockT'::bytea || int8send(w.token) AND m.owner = w.owner
RETURNING m.key, m.owner, m.reader_group

-- dialect/postgres/shared.sql: member-leave-one
DELETE /* rowlock member-leave-one */ FROM "rowlock_member" AS m WHERE m.key = $1 AND m.reader_group = $2 AND m.owner = $3
RETURNING EXISTS (SELECT 1 FROM "rowlock_member" AS o WHERE o.key = $1 AND o.reader_group = $2
    AND o.owner <> $3 AND o.expires_at > clock_timestamp())::int,
  EXISTS (SELECT 1 FROM "rowlock_member" AS w WHERE w.key = $1
    AND w.reader_group = decode('00000000000000000000000000000000', 'hex') AND w.expires_at > clock_timestamp())::int

-- dialect/postgres/shared.sql: member-leave-tx
DELETE /* rowlock member-leave-tx */ FROM "rowlock_member" WHERE key = $1 AND reader_group = $2 AND owner = $3

-- dialect/postgres/shared.sql: member-dead
SELECT /* rowlock member-dead */ key, owner, reader_group FROM "rowlock_member"
WHERE expires_at <= clock_timestamp() - $1::bigint * interval '1 microsecond'
  AND octet_length(owner) = 16 AND octet_length(reader_group) = 16
LIMIT $2::bigint

-- dialect/postgres/shared.sql: intend
INSERT /* rowlock intend */ INTO "rowlock_member" AS m (key, reader_group, owner, joined_at, expires_at)
SELECT k, decode('00000000000000000000000000000000', 'hex'), $1::bytea,
  to_timestamp(round(extract(epoch FROM clock_timestamp()) / 11) * 11),
  clock_timestamp() + $2::bigint * interval '1 microsecond' FROM unnest($3::bytea[]) AS k
ON CONFLICT (key, reader_group, owner) DO UPDATE SET expires_at = excluded.expires_at,
  joined_at = CASE WHEN m.expires_at > clock_timestamp() THEN m.joined_at ELSE excluded.joined_at END

-- dialect/postgres/shared.sql: unintend
DELETE /* rowlock unintend */ FROM "rowlock_member" WHERE key = ANY ($1::bytea[])
  AND reader_group = decode('00000000000000000000000000000000', 'hex') AND owner = $2::bytea

-- dialect/postgres/shared.sql: readers-lock
SELECT /* rowlock readers-lock */ owner FROM "rowlock"
WHERE key = $1 AND placement = 0 AND owner IS NOT NULL AND expires_at = '9999-01-01 00:00:00+00'
FOR UPDATE SKIP LOCKED

-- dialect/postgres/shared.sql: readers-clear
DELETE /* rowlock readers-clear */ FROM "rowlock_member" WHERE key = $1 AND reader_group = $2 AND expires_at <= clock_timestamp()

-- dialect/postgres/shared.sql: readers-left
SELECT /* rowlock readers-left */ 1 FROM "rowlock_member" WHERE key = $1 AND reader_group = $2 LIMIT 1

-- dialect/postgres/shared.sql: readers-end
UPDATE /* rowlock readers-end */ "rowlock" SET owner = NULL, note = '', expires_at = clock_timestamp()
WHERE key = $1 AND owner = $2 AND placement = 0

-- dialect/postgres/shared.sql: readers-make
UPDATE /* rowlock readers-make */ "rowlock" SET owner = $1, expires_at = '9999-01-01 00:00:00+00'
WHERE key = $2 AND owner = $3 AND token = $4 AND placement = 0 AND expires_at > clock_timestamp()

-- dialect/postgres/shared.sql: readers-first
INSERT /* rowlock readers-first */ INTO "rowlock_member" (key, reader_group, owner, note, joined_at, expires_at)
SELECT key, owner, $1::bytea, note, clock_timestamp(),
  clock_timestamp() + $2::bigint * interval '1 microsecond'
FROM "rowlock" WHERE key = $3 AND owner = $4

-- dialect/postgres/shared.sql: readers-idle
SELECT /* rowlock readers-idle */ r.key FROM "rowlock" AS r
WHERE r.placement = 0 AND r.owner IS NOT NULL AND r.expires_at = '9999-01-01 00:00:00+00'
  AND NOT EXISTS (SELECT 1 FROM "rowlock_member" AS m
    WHERE m.key = r.key AND m.reader_group = r.owner AND m.expires_at > clock_timestamp())
LIMIT $1::bigint

-- dialect/postgres/shared.sql: readers-fence
SELECT /* rowlock readers-fence */ 1 FROM "rowlock" WHERE key = $1 AND owner = $2 AND token = $3 AND placement = 0 FOR SHARE

-- dialect/postgres/shared.sql: late-readers
r.expires_at = '9999-01-01 00:00:00+00' AND NOT EXISTS (SELECT 1 FROM "rowlock_member" AS m
  WHERE m.key = r.key AND m.reader_group = r.owner AND m.expires_at > clock_timestamp())

-- dialect/postgres/shared.sql: force-members
DELETE /* rowlock force-members */ FROM "rowlock_member" WHERE key = $1 AND reader_group = $2

-- dialect/postgres/statements.sql: acquire-update
UPDATE /* rowlock acquire-update */ "rowlock" AS r
SET owner = $2, note = $3, token = greatest(r.token, @era) + 1, acquired_at = clock_timestamp(),
    expires_at = clock_timestamp() + $4::bigint * interval '1 microsecond'
WHERE r.key = $1 AND r.placement = 0 AND r.owner IS NULL AND r.token BETWEEN 0 AND 9223372036853727231 - 1
RETURNING r.token

-- dialect/postgres/statements.sql: acquire-any
WITH /* rowlock acquire-any */ expired AS (
  SELECT key FROM "rowlock"
  WHERE key = $1 AND placement = 0 AND owner IS NOT NULL AND expires_at <= clock_timestamp()
  FOR NO KEY UPDATE SKIP LOCKED
), taken AS (
  UPDATE "rowlock" AS r
  SET owner = $2, note = $3, token = greatest(r.token, @era) + 1, acquired_at = clock_timestamp(),
      expires_at = clock_timestamp() + $4::bigint * interval '1 microsecond'
  WHERE r.key = $1 AND r.placement = 0 AND r.token BETWEEN 0 AND 9223372036853727231 - 1
    AND (r.owner IS NULL OR r.key IN (SELECT key FROM expired))
  RETURNING r.token
), made AS (
  INSERT INTO "rowlock" AS r (key, owner, note, token, acquired_at, expires_at, placement)
  SELECT $1, $2, $3, greatest(f.floor, @era) + 1, clock_timestamp(),
    clock_timestamp() + $4::bigint * interval '1 microsecond', 0
  FROM (SELECT floor FROM "rowlock_floor" WHERE bucket = $5::int FOR SHARE) AS f
  WHERE NOT EXISTS (SELECT 1 FROM "rowlock" WHERE key = $1) AND f.floor < 9223372036853727231
  ON CONFLICT (key) DO NOTHING
  RETURNING r.token
)
SELECT 1 AS state, token, '' AS note, 0::bigint AS remaining FROM taken
UNION ALL
SELECT 1, token, '', 0 FROM made
UNION ALL
SELECT CASE WHEN r.placement <> 0 THEN 4
            WHEN r.owner = $2 AND r.expires_at > clock_timestamp() THEN 7
            WHEN r.owner IS NOT NULL AND r.expires_at > clock_timestamp() THEN 0
            WHEN r.token NOT BETWEEN 0 AND 9223372036853727231 - 1 THEN 3
            WHEN r.owner IS NOT NULL THEN 5
            ELSE 2 END,
       r.token, left(r.note, 384), CASE WHEN isfinite(r.expires_at)
         THEN (extract(epoch FROM r.expires_at - clock_timestamp()) * 1000000)::bigint END
FROM "rowlock" AS r WHERE r.key = $1 AND NOT EXISTS (SELECT 1 FROM taken)

-- dialect/postgres/statements.sql: acquire-insert
INSERT /* rowlock acquire-insert */ INTO "rowlock" AS r (key, owner, note, token, acquired_at, expires_at, placement)
SELECT $1, $2, $3, greatest(f.floor, @era) + 1, clock_timestamp(),
  clock_timestamp() + $4::bigint * interval '1 microsecond', 0
FROM (SELECT floor FROM "rowlock_floor" WHERE bucket = $5::int FOR SHARE) AS f
WHERE NOT EXISTS (SELECT 1 FROM "rowlock" WHERE key = $1) AND f.floor < 9223372036853727231
ON CONFLICT (key) DO NOTHING
RETURNING r.token

-- dialect/postgres/statements.sql: seize
SELECT /* rowlock seize */ 1 FROM "rowlock" WHERE key = $1 FOR NO KEY UPDATE SKIP LOCKED

-- dialect/postgres/statements.sql: acquire-piped
UPDATE /* rowlock acquire-piped */ "rowlock" AS r
SET owner = $2, note = $3, token = greatest(r.token, @era) + 1, acquired_at = clock_timestamp(),
    expires_at = clock_timestamp() + $4::bigint * interval '1 microsecond'
WHERE r.key = $1 AND r.ctid = (SELECT f.ctid FROM "rowlock" AS f
  WHERE f.key = $1 AND f.placement = 0 AND f.owner IS NULL AND f.token BETWEEN 0 AND 9223372036853727231 - 1
  FOR NO KEY UPDATE SKIP LOCKED)
RETURNING r.token

-- dialect/postgres/statements.sql: rows
SELECT /* rowlock rows */ w.n, r.placement = 0 AS placement, r.owner, r.token, left(r.note, 384),
  CASE WHEN isfinite(r.expires_at)
         THEN (extract(epoch FROM r.expires_at - clock_timestamp()) * 1000000)::bigint END AS remaining
FROM unnest($1::bytea[]) WITH ORDINALITY AS w (key, n) JOIN "rowlock" AS r ON r.key = w.key

-- dialect/postgres/statements.sql: apply
WITH /* rowlock apply */ want AS (
  SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::bytea[],
    $5::text[], $6::bigint[])
    WITH ORDINALITY AS w (key, was, token, owner, note, ttl, n)
  WHERE (SELECT CASE WHEN $9::bool THEN set_config('synchronous_commit', 'off', true) ELSE '' END)
    IS NOT NULL
), found AS (
  SELECT w.*, r.ctid AS place FROM want AS w JOIN "rowlock" AS r ON r.key = w.key
  WHERE r.placement = 0 AND r.token BETWEEN 0 AND 9223372036853727231 - 1
    AND (w.was IS NULL AND (r.owner IS NULL OR r.expires_at <= clock_timestamp())
      OR r.owner = w.was AND w.token IN (r.token, 0))
    AND (NOT $8::bool OR (SELECT count(*) FROM want)
      = (SELECT count(*) FROM want AS w JOIN "rowlock" AS r ON r.key = w.key
           WHERE r.placement = 0 AND r.token BETWEEN 0 AND 9223372036853727231 - 1
             AND (r.owner IS NULL OR r.expires_at <= clock_timestamp())))
  ORDER BY r.key FOR NO KEY UPDATE OF r SKIP LOCKED
), done AS (
  UPDATE "rowlock" AS r
  SET owner = f.owner, note = f.note,
      token = CASE WHEN f.owner IS NULL THEN r.token ELSE greatest(r.token, @era) + 1 END,
      acquired_at = CASE WHEN f.owner IS NULL THEN r.acquired_at ELSE clock_timestamp() END,
      expires_at = clock_timestamp() + f.ttl * interval '1 microsecond'
  FROM found AS f
  WHERE r.ctid = f.place AND r.key = f.key
    AND (NOT $8::bool OR (SELECT count(*) FROM found AS f JOIN "rowlock" AS r ON r.ctid = f.place AND r.key = f.key)
      = (SELECT count(*) FROM want))
  RETURNING f.n, r.token, f.owner IS NULL AND EXISTS (SELECT 1 FROM "rowlock_queue" AS q
    WHERE q.key = r.key AND q.waiter <> $7 AND q.alive_until > clock_timestamp()) AS awaited
)
SELECT n, 1 AS outcome, token, awaited, '' AS note, 0::bigint AS remaining FROM done
UNION ALL
SELECT w.n, CASE WHEN w.was IS NULL AND r.key IS NULL THEN 4
                 WHEN w.was IS NOT NULL AND (r.owner = w.was AND w.token IN (r.token, 0)
                   AND r.placement = 0) IS NOT TRUE THEN 3
                 WHEN w.was IS NOT NULL OR r.placement <> 0 THEN 0
                 WHEN r.owner = w.owner AND r.expires_at > clock_timestamp() THEN 6
                 WHEN r.owner IS NOT NULL AND r.expires_at > clock_timestamp() THEN 2
                 WHEN r.token NOT BETWEEN 0 AND 9223372036853727231 - 1 OR NOT $8::bool THEN 0
                 ELSE 5 END,
       coalesce(r.token, 0), false, coalesce(left(r.note, 384), ''),
       CASE WHEN r.owner IS NULL THEN 0 WHEN isfinite(r.expires_at)
         THEN (extract(epoch FROM r.expires_at - clock_timestamp()) * 1000000)::bigint END
FROM want AS w LEFT JOIN "rowlock" AS r ON r.key = w.key WHERE w.n NOT IN (SELECT n FROM done)

-- dialect/postgres/statements.sql: apply-any
WITH /* rowlock apply-any */ want AS (
  SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::text[], $4::bigint[])
    WITH ORDINALITY AS w (key, owner, note, ttl, n)
), seen AS (
  SELECT w.n, CASE WHEN r.key IS NULL THEN 4
                   WHEN r.placement <> 0 THEN 0
                   WHEN r.owner = w.owner AND r.expires_at > clock_timestamp() THEN 6
                   WHEN r.owner IS NOT NULL AND r.expires_at > clock_timestamp() THEN 2
                   WHEN r.token NOT BETWEEN 0 AND 9223372036853727231 - 1 THEN 0
                   ELSE 5 END AS outcome,
    coalesce(r.token, 0) AS token, coalesce(left(r.note, 384), '') AS note,
    CASE WHEN r.owner IS NULL THEN 0 WHEN isfinite(r.expires_at)
         THEN (extract(epoch FROM r.expires_at - clock_timestamp()) * 1000000)::bigint END
      AS remaining
  FROM want AS w LEFT JOIN "rowlock" AS r ON r.key = w.key
), free AS (
  SELECT w.* FROM want AS w JOIN "rowlock" AS r ON r.key = w.key
  WHERE r.placement = 0 AND r.token BETWEEN 0 AND 9223372036853727231 - 1
    AND (r.owner IS NULL OR r.expires_at <= clock_timestamp())
    AND NOT EXISTS (SELECT 1 FROM seen WHERE outcome = 6)
    AND (SELECT count(*) FROM seen WHERE outcome = 5) >= $5::bigint
  ORDER BY w.n LIMIT $5::bigint FOR NO KEY UPDATE OF r SKIP LOCKED
), done AS (
  UPDATE "rowlock" AS r
  SET owner = f.owner, note = f.note, token = greatest(r.token, @era) + 1, acquired_at = clock_timestamp(),
      expires_at = clock_timestamp() + f.ttl * interval '1 microsecond'
  FROM free AS f
  WHERE r.key = f.key AND (SELECT count(*) FROM free) = $5::bigint
  RETURNING f.n, r.token
)
SELECT n, 1 AS outcome, token, false AS awaited, '' AS note, 0::bigint AS remaining FROM done
UNION ALL
SELECT n, outcome, token, false, note, remaining FROM seen WHERE NOT EXISTS (SELECT 1 FROM done)

-- dialect/postgres/statements.sql: create
INSERT /* rowlock create */ INTO "rowlock" AS r (key, owner, note, token, acquired_at, expires_at, placement)
SELECT w.key, w.owner, w.note,
       CASE WHEN w.owner IS NULL THEN f.floor ELSE greatest(f.floor, @era) + 1 END, clock_timestamp(),
       clock_timestamp() + w.ttl * interval '1 microsecond', 0
FROM unnest($1::bytea[], $2::bytea[], $3::text[], $4::bigint[],
  $5::bigint[]) AS w (key, owner, note, ttl, bucket)
CROSS JOIN LATERAL (SELECT floor FROM "rowlock_floor" WHERE bucket = w.bucket FOR SHARE) AS f
WHERE NOT EXISTS (SELECT 1 FROM "rowlock" AS o WHERE o.key = w.key) AND f.floor < 9223372036853727231
ON CONFLICT (key) DO NOTHING
RETURNING r.key, r.token

-- dialect/postgres/statements.sql: renew
WITH /* rowlock renew */ want AS (
  SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::bigint[])
    WITH ORDINALITY AS w (key, owner, token, ttl, n)
), locked AS (
  SELECT r.key, w.owner, w.token, w.ttl FROM "rowlock" AS r JOIN want AS w ON r.key = w.key
  WHERE r.owner = w.owner AND r.token = w.token AND r.placement = 0
  ORDER BY r.key FOR NO KEY UPDATE OF r SKIP LOCKED
), renewed AS (
  UPDATE "rowlock" AS r SET expires_at = clock_timestamp() + l.ttl * interval '1 microsecond'
  FROM locked AS l
  WHERE r.key = l.key AND r.owner = l.owner AND r.token = l.token AND r.expires_at > clock_timestamp()
  RETURNING r.key, r.owner, r.token
)
SELECT CASE WHEN a.outcome = 3 AND a.remaining IS NOT NULL THEN 2
  WHEN a.outcome = 3 THEN 0 ELSE a.outcome END AS outcome,
  (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS clock,
  coalesce(a.remaining, 0) AS remaining
FROM (SELECT o.n, o.outcome, CASE WHEN o.outcome = 3 THEN (
        SELECT CASE WHEN isfinite(r.expires_at)
          THEN (extract(epoch FROM r.expires_at - clock_timestamp()) * 1000000)::bigint ELSE 0 END
        FROM "rowlock" AS r
        WHERE r.key = o.key AND r.owner = o.owner AND r.token = o.token AND r.placement = 0) END
          AS remaining
      FROM (SELECT w.*, CASE WHEN EXISTS (SELECT 1 FROM renewed AS d
        WHERE d.key = w.key AND d.owner = w.owner AND d.token = w.token) THEN 1
                             WHEN EXISTS (SELECT 1 FROM locked AS l WHERE l.key = w.key) THEN 0
                             ELSE 3 END AS outcome
            FROM want AS w OFFSET 0) AS o OFFSET 0) AS a ORDER BY a.n

-- dialect/postgres/statements.sql: confirm
UPDATE /* rowlock confirm */ "rowlock" SET expires_at = greatest(expires_at + interval '1 microsecond',
  clock_timestamp() + $1::bigint * interval '1 microsecond')
WHERE key = $2 AND owner = $3 AND token = $4 AND placement = 0 AND expires_at > clock_timestamp()

-- dialect/postgres/statements.sql: raise
UPDATE /* rowlock raise */ "rowlock" SET token = $1, expires_at = expires_at + interval '1 microsecond'
WHERE key = $2 AND owner = $3 AND token IN ($4, $5) AND placement = 0
  AND expires_at > clock_timestamp()

-- dialect/postgres/statements.sql: release
UPDATE /* rowlock release */ "rowlock" SET owner = NULL, note = '', expires_at = clock_timestamp()
WHERE key = $1 AND owner = $2 AND $3::bigint IN (token, 0) AND placement = 0
RETURNING EXISTS (SELECT 1 FROM "rowlock_queue" AS q
  WHERE q.key = $1 AND q.waiter <> $4 AND q.alive_until > clock_timestamp())

-- dialect/postgres/statements.sql: release-piped
UPDATE /* rowlock release-piped */ "rowlock" AS r SET owner = NULL, note = '', expires_at = clock_timestamp()
WHERE r.key = $1 AND r.ctid = (SELECT f.ctid FROM "rowlock" AS f
  WHERE f.key = $1 AND f.owner = $2 AND $3::bigint IN (f.token, 0) AND f.placement = 0
  FOR NO KEY UPDATE SKIP LOCKED)
RETURNING EXISTS (SELECT 1 FROM "rowlock_queue" AS q
  WHERE q.key = $1 AND q.waiter <> $4 AND q.alive_until > clock_timestamp())

-- dialect/postgres/statements.sql: release-relaxed
UPDATE /* rowlock release-relaxed */ "rowlock" SET owner = NULL, note = '', expires_at = clock_timestamp()
WHERE key = $1 AND owner = $2 AND $3::bigint IN (token, 0) AND placement = 0
  AND set_config('synchronous_commit', 'off', true) = 'off'
RETURNING EXISTS (SELECT 1 FROM "rowlock_queue" AS q
  WHERE q.key = $1 AND q.waiter <> $4 AND q.alive_until > clock_timestamp())

-- dialect/postgres/statements.sql: release-piped-relaxed
UPDATE /* rowlock release-piped-relaxed */ "rowlock" AS r SET owner = NULL, note = '', expires_at = clock_timestamp()
WHERE r.key = $1 AND r.ctid = (SELECT f.ctid FROM "rowlock" AS f
  WHERE f.key = $1 AND f.owner = $2 AND $3::bigint IN (f.token, 0) AND f.placement = 0
  FOR NO KEY UPDATE SKIP LOCKED)
  AND set_config('synchronous_commit', 'off', true) = 'off'
RETURNING EXISTS (SELECT 1 FROM "rowlock_queue" AS q
  WHERE q.key = $1 AND q.waiter <> $4 AND q.alive_until > clock_timestamp())

-- dialect/postgres/statements.sql: hand-over
UPDATE /* rowlock hand-over */ "rowlock" AS r
SET owner = $1, note = $2, token = greatest(r.token, @era) + 1, acquired_at = clock_timestamp(),
    expires_at = clock_timestamp() + $3::bigint * interval '1 microsecond'
WHERE r.key = $4 AND r.owner = $5 AND r.token = $6 AND r.placement = 0 AND r.token BETWEEN 0 AND 9223372036853727231 - 1

-- dialect/postgres/statements.sql: inspect
SELECT /* rowlock inspect */ r.key, r.owner, r.token, left(r.note, 384),
  r.owner IS NOT NULL AND r.expires_at > clock_timestamp() AS held,
       CASE WHEN isfinite(r.expires_at)
         THEN (extract(epoch FROM r.expires_at - clock_timestamp()) * 1000000)::bigint END AS remaining,
       CASE WHEN isfinite(r.acquired_at)
         THEN (extract(epoch FROM clock_timestamp() - r.acquired_at) * 1000000)::bigint END AS age,
       r.placement
FROM "rowlock" AS r
WHERE r.key > $1 AND r.key <= $2
  AND ($3::int = 0 OR r.owner IS NOT NULL AND
    ((r.expires_at > clock_timestamp()) IS NOT FALSE OR r.expires_at = '-infinity'))
ORDER BY r.key LIMIT $4::bigint

-- dialect/postgres/statements.sql: inspect-keys
SELECT /* rowlock inspect-keys */ r.key, r.owner, r.token, left(r.note, 384),
  r.owner IS NOT NULL AND r.expires_at > clock_timestamp() AS held,
       CASE WHEN isfinite(r.expires_at)
         THEN (extract(epoch FROM r.expires_at - clock_timestamp()) * 1000000)::bigint END AS remaining,
       CASE WHEN isfinite(r.acquired_at)
         THEN (extract(epoch FROM clock_timestamp() - r.acquired_at) * 1000000)::bigint END AS age,
       r.placement
FROM "rowlock" AS r
WHERE r.key = ANY ($1::bytea[]) AND r.key > $2 AND r.key <= $3
  AND ($4::int = 0 OR r.owner IS NOT NULL AND
    ((r.expires_at > clock_timestamp()) IS NOT FALSE OR r.expires_at = '-infinity'))
ORDER BY r.key LIMIT $5::bigint

-- dialect/postgres/statements.sql: fence
UPDATE /* rowlock fence */ "rowlock" SET expires_at = CASE WHEN $4::bigint > 0 AND expires_at > clock_timestamp()
  THEN greatest(expires_at, clock_timestamp() + $4::bigint * interval '1 microsecond')
    ELSE expires_at END
WHERE key = $1 AND owner = $2 AND token = $3 AND placement = 0
RETURNING (CASE WHEN xmin::text::bigint = txid_current() & 4294967295 THEN '1'
  WHEN (SELECT CASE WHEN past < 2147483648 THEN txid_status(txid_current() + past) END
    FROM (SELECT (before.xmin::text::bigint - txid_current()) & 4294967295 AS past
      FROM "rowlock" AS before WHERE before.key = $1) AS x) = 'in progress' THEN '1'
  ELSE 'a fence inside a savepoint' END)::int

-- dialect/postgres/statements.sql: release-tx
UPDATE /* rowlock release-tx */ "rowlock" SET owner = NULL, note = '', expires_at = clock_timestamp()
WHERE key = $1 AND owner = $2 AND token = $3 AND placement = 0

-- dialect/postgres/statements.sql: instance
SELECT /* rowlock instance */ value FROM "rowlock_meta" WHERE name = 'instance'

-- dialect/postgres/statements.sql: schema-version
SELECT /* rowlock schema-version */ v.value, f.value, v.name FROM "rowlock_meta" AS v LEFT JOIN "rowlock_meta" AS f
  ON f.name = replace(v.name, 'schema_version', 'compatible_from') WHERE substr(v.name, 1, 14) = 'schema_version' ORDER BY v.name

-- dialect/postgres/statements.sql: complete
SELECT /* rowlock complete */ count(*) FROM "rowlock_floor"

-- dialect/postgres/statements.sql: floor-lock
SELECT /* rowlock floor-lock */ floor FROM "rowlock_floor" WHERE bucket = $1 FOR UPDATE

-- dialect/postgres/statements.sql: floor-raise
UPDATE /* rowlock floor-raise */ "rowlock_floor" SET floor = greatest(floor, $1::bigint) WHERE bucket = $2

-- dialect/postgres/statements.sql: dead
SELECT /* rowlock dead */ key, dead FROM (
  SELECT key,
    placement = 0
      AND expires_at <= clock_timestamp() - $3::bigint * interval '1 microsecond' AS dead,
         row_number() OVER (ORDER BY key) AS n
  FROM (SELECT key, placement, expires_at FROM "rowlock" WHERE key > $1 ORDER BY key LIMIT $2::int) AS page
) AS p WHERE dead OR n = $4::bigint ORDER BY key

-- dialect/postgres/statements.sql: dead-lock
SELECT /* rowlock dead-lock */ key, token FROM "rowlock"
WHERE key = ANY ($1::bytea[]) AND placement = 0 AND token BETWEEN 0 AND 9223372036853727231 - 1
  AND expires_at <= clock_timestamp() - $2::bigint * interval '1 microsecond'
ORDER BY key FOR UPDATE SKIP LOCKED

-- dialect/postgres/statements.sql: reap
DELETE /* rowlock reap */ FROM "rowlock" WHERE key = ANY ($1::bytea[])

-- dialect/postgres/token.sql: token-raise
UPDATE /* rowlock token-raise */ @table SET @token = $1::bigint WHERE @table.@key = $2 AND @table.@token <= $3::bigint
  AND pg_typeof((SELECT @table.@token + 0::smallint FROM @table LIMIT 0))
    IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype)

-- dialect/postgres/token.sql: token-make
INSERT /* rowlock token-make */ INTO @table AS t (@key, @token) SELECT $1, $2::bigint
WHERE pg_typeof((SELECT @table.@token + 0::smallint FROM @table LIMIT 0))
    IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype)
ON CONFLICT (@key) DO UPDATE SET @token = $3::bigint WHERE t.@token <= $3::bigint

-- dialect/postgres/token.sql: token-seen
SELECT /* rowlock token-seen */ MAX(@table.@token)::text, COUNT(*),
  pg_typeof((SELECT @table.@token + 0::smallint FROM @table LIMIT 0))
    IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype)
FROM @table WHERE @table.@key = $1

-- dialect/postgres/trace.sql: trace-write
INSERT /* rowlock trace-write */ INTO "rowlock_trace" (at, id, key, event, token, owner, note, number, detail)
SELECT statement_timestamp() - w.age * interval '1 microsecond', w.id, w.key, w.event, w.token, w.owner,
  w.note, w.number, w.detail
FROM unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::text[],
  $5::bigint[], $6::bytea[], $7::text[], $8::bigint[], $9::text[])
  AS w (age, id, key, event, token, owner, note, number, detail)

-- dialect/postgres/trace.sql: trace-list
SELECT /* rowlock trace-list */ CASE WHEN at BETWEEN '0001-01-01' AND '9999-12-31'
         THEN (extract(epoch FROM at) * 1000000)::bigint END,
  id, key, event, token, owner, left(note, 384), number, left(detail, 255)
FROM "rowlock_trace"
WHERE substr(key, 1, $1::int) = $2
  AND at <= 'epoch'::timestamptz + $3::bigint * interval '1 microsecond'
  AND (at < 'epoch'::timestamptz + $3::bigint * interval '1 microsecond' OR id < $4::bigint)
ORDER BY at DESC, id DESC LIMIT $5::bigint

-- dialect/postgres/trace.sql: trace-list-key
SELECT /* rowlock trace-list-key */ CASE WHEN at BETWEEN '0001-01-01' AND '9999-12-31'
         THEN (extract(epoch FROM at) * 1000000)::bigint END,
  id, key, event, token, owner, left(note, 384), number, left(detail, 255)
FROM "rowlock_trace"
WHERE key = $1 AND at <= 'epoch'::timestamptz + $2::bigint * interval '1 microsecond'
  AND (at < 'epoch'::timestamptz + $2::bigint * interval '1 microsecond' OR id < $3::bigint)
ORDER BY at DESC, id DESC LIMIT $4::bigint

-- dialect/postgres/trace.sql: trace-sweep
DELETE /* rowlock trace-sweep */ FROM "rowlock_trace" WHERE at < statement_timestamp() - $1::bigint * interval '1 microsecond' AND ctid = ANY (ARRAY(
  SELECT ctid FROM "rowlock_trace" WHERE at < statement_timestamp() - $1::bigint * interval '1 microsecond'
  ORDER BY at, id LIMIT $2::bigint))

-- schema/statements/all.sql: guard-leases
SELECT /* rowlock guard-leases */ count(*) FROM "rowlock" WHERE owner IS NOT NULL AND expires_at > clock_timestamp() AND expires_at < '9999-01-01 00:00:00+00'

-- schema/statements/all.sql: guard-keys
SELECT /* rowlock guard-keys */ count(*) FROM "rowlock"
WHERE placement NOT IN (0, -1) OR token NOT BETWEEN 0 AND 9223372036853727230

-- schema/statements/all.sql: guard-once
SELECT /* rowlock guard-once */ count(*) FROM "rowlock_once" WHERE expires_at > clock_timestamp()

-- schema/statements/all.sql: guard-latches
SELECT /* rowlock guard-latches */ count(*) FROM "rowlock_latch" WHERE expires_at > clock_timestamp()

-- schema/statements/all.sql: waiters
SELECT /* rowlock waiters */ count(*) FROM "rowlock_queue" WHERE alive_until > clock_timestamp()

-- schema/statements/all.sql: forget-version
DELETE /* rowlock forget-version */ FROM "rowlock_meta"
WHERE substr(name, 1, 14) = 'schema_version' OR substr(name, 1, 15) = 'compatible_from'

-- schema/statements/postgres.sql: exists
SELECT /* rowlock exists */ EXISTS (SELECT 1 FROM pg_attribute WHERE $3::text IN ('', attname)
AND attrelid = to_regclass(quote_ident($1::text) || '.' || quote_ident($2::text)))

-- schema/statements/postgres.sql: begin
BEGIN /* rowlock begin */ ISOLATION LEVEL READ COMMITTED, READ WRITE, NOT DEFERRABLE

-- schema/statements/postgres.sql: lock
SELECT /* rowlock lock */ true FROM pg_advisory_xact_lock(x'726f776c6f636b'::bigint)

-- schema/statements/postgres.sql: bound
SET /* rowlock bound */ LOCAL lock_timeout = '200ms'

-- schema/statements/postgres.sql: blockers
SELECT /* rowlock blockers */ string_agg(blocker, ', ') FROM (
  SELECT format('session %s of %s (%s), in a transaction since %s', a.pid, a.usename,
    coalesce(nullif(a.application_name, ''), 'without a name'),
    coalesce(to_char(a.xact_start, 'YYYY-MM-DD HH24:MI:SS TZ'), 'an unknown time')) AS blocker
  FROM pg_stat_activity AS a
  WHERE a.pid <> pg_backend_pid()
    AND coalesce(a.xact_start < clock_timestamp() - interval '100 ms', true)
    AND EXISTS (SELECT 1 FROM pg_locks AS l LEFT JOIN pg_class AS c ON c.oid = l.relation
      WHERE l.pid = a.pid AND l.granted AND (
        c.relnamespace = to_regnamespace(quote_ident($1::text)) AND c.relname LIKE $2::text
        OR l.locktype = 'advisory' AND l.objsubid = 1
          AND l.classid::bigint = x'726f77'::bigint AND l.objid::bigint = x'6c6f636b'::bigint))
  ORDER BY a.xact_start NULLS LAST LIMIT 3) AS oldest

-- schema/statements/postgres.sql: lock-tables
LOCK /* rowlock lock-tables */ TABLE @tables

-- schema/statements/postgres.sql: guard-members
SELECT /* rowlock guard-members */ count(*) FROM "rowlock_member" WHERE expires_at > clock_timestamp() AND reader_group <> decode('00000000000000000000000000000000', 'hex')

-- schema/statements/postgres.sql: keep-tokens
UPDATE /* rowlock keep-tokens */ "rowlock_floor" SET floor = greatest(floor, (SELECT max(token) FROM "rowlock"))

-- schema/statements/postgres.sql: sessions
SELECT /* rowlock sessions */ count(*) FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND datname = current_database()
  AND coalesce(backend_type, 'client backend') = 'client backend'

-- schema/statements/postgres.sql: commit
COMMIT /* rowlock commit */

-- schema/statements/postgres.sql: rollback
ROLLBACK /* rowlock rollback */

-- schema/statements/postgres.sql: unlock
SELECT /* rowlock unlock */ true
