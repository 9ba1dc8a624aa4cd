-- Every statement as the server gets it.
-- Written by: go test ./dialect -run Golden -update

-- dialect/sqlite/cas.sql: cas-setup
SELECT /* rowlock cas-setup */ 0

-- dialect/sqlite/cas.sql: cas-look
SELECT /* rowlock cas-look */ CASE WHEN home <> 0 THEN 4
            WHEN owner = ? AND expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER) THEN 7
            WHEN owner IS NOT NULL AND expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)
              THEN 0
            WHEN token >= 9223372036853727231 THEN 3
            WHEN owner IS NOT NULL THEN 5
            ELSE 2 END AS state,
       token, note, (expires_at - CAST(unixepoch('subsec') * 1000 AS INTEGER)) * 1000 AS remaining,
         owner, expires_at AS expires
FROM "rowlock" WHERE key = ?

-- dialect/sqlite/cas.sql: cas-take-free
UPDATE /* rowlock cas-take-free */ "rowlock"
SET owner = ?, note = ?, expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
  + (? + 999) / 1000,
    acquired_at = CAST(unixepoch('subsec') * 1000 AS INTEGER), token = ?
WHERE key = ? AND home = 0 AND token = ? AND owner IS NULL

-- dialect/sqlite/cas.sql: cas-take
UPDATE /* rowlock cas-take */ "rowlock"
SET owner = ?, note = ?, expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
  + (? + 999) / 1000,
    acquired_at = CAST(unixepoch('subsec') * 1000 AS INTEGER), token = ?
WHERE key = ? AND home = 0 AND token = ? AND owner = ? AND expires_at = ?
  AND expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER)

-- dialect/sqlite/cas.sql: cas-insert
INSERT /* rowlock cas-insert */ INTO "rowlock" (key, owner, note, token, acquired_at, expires_at, home)
SELECT ?, ?, ?, floor + 1, CAST(unixepoch('subsec') * 1000 AS INTEGER),
       CAST(unixepoch('subsec') * 1000 AS INTEGER) + (? + 999) / 1000, 0
FROM "rowlock_floor" WHERE bucket = ? AND floor < 9223372036853727231 - 1
ON CONFLICT (key) DO NOTHING

-- dialect/sqlite/cas.sql: cas-made
SELECT /* rowlock cas-made */ r.token, f.floor FROM "rowlock" AS r, "rowlock_floor" AS f WHERE f.bucket = ? AND r.key = ?

-- dialect/sqlite/cas.sql: cas-raise
UPDATE /* rowlock cas-raise */ "rowlock" SET token = ? WHERE key = ?

-- dialect/sqlite/cas.sql: cas-fence
UPDATE /* rowlock cas-fence */ "rowlock" SET token = token WHERE key = ? AND owner = ? AND token = ? AND home = 0

-- dialect/sqlite/cas.sql: cas-floor
SELECT /* rowlock cas-floor */ floor FROM "rowlock_floor" WHERE bucket = ?

-- dialect/sqlite/cas.sql: cas-dead
SELECT /* rowlock cas-dead */ coalesce(max(r.token), -1) FROM json_each(?) AS j JOIN "rowlock" AS r ON r.key = unhex(j.value)
WHERE r.home = 0 AND r.token < 9223372036853727231
  AND r.expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER) - ? / 1000

-- dialect/sqlite/cas.sql: cas-reap
DELETE /* rowlock cas-reap */ FROM "rowlock"
WHERE key IN (SELECT unhex(value) FROM json_each(?)) AND home = 0
  AND expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER) - ? / 1000 AND token <= ?

-- dialect/sqlite/cas.sql: cas-drop-dead
DELETE /* rowlock cas-drop-dead */ FROM "rowlock_queue"
WHERE key = ? AND waiter = ? AND alive_until
  <= CAST(unixepoch('subsec') * 1000 AS INTEGER) - ? / 1000

-- dialect/sqlite/hints.sql: register
INSERT /* rowlock register */ INTO "rowlock_queue" (key, waiter, alive_until)
SELECT unhex(j.value), p.waiter, CAST(unixepoch('subsec') * 1000 AS INTEGER) + p.ms
FROM (SELECT ? AS waiter, (? + 999) / 1000 AS ms) AS p, json_each(?) AS j WHERE true
ON CONFLICT (key, waiter) DO UPDATE SET alive_until = excluded.alive_until

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

-- dialect/sqlite/move.sql: depart
UPDATE /* rowlock depart */ "rowlock" SET home = ?, token = ?, owner = NULL, note = '',
  expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE key = ? AND owner = ? AND token = ? AND home = 0

-- dialect/sqlite/move.sql: return
UPDATE /* rowlock return */ "rowlock" SET home = 0, token = ?, owner = NULL, note = '',
  expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE key = ? AND home = ? AND token >= ? AND token < ?

-- dialect/sqlite/move.sql: recall
INSERT /* rowlock recall */ INTO "rowlock" (key, home, token, note, acquired_at, expires_at)
SELECT ?1, ?2, CASE WHEN ?2 = 0 THEN max(floor, ?3) ELSE ?3 END, '',
       CAST(unixepoch('subsec') * 1000 AS INTEGER), CAST(unixepoch('subsec') * 1000 AS INTEGER)
FROM "rowlock_floor" WHERE bucket = ?4 AND (?2 = 0 OR floor < ?3
  OR EXISTS (SELECT 1 FROM "rowlock" WHERE key = ?1))
ON CONFLICT (key) DO UPDATE
  SET home = excluded.home, token = ?3, owner = NULL, note = '', expires_at = excluded.expires_at
WHERE token < ?3

-- dialect/sqlite/move.sql: confirm-home
UPDATE /* rowlock confirm-home */ "rowlock" SET acquired_at = acquired_at + 1
  WHERE key = ? AND home = ? AND token >= ? AND token < ?

-- dialect/sqlite/move.sql: fence-at
UPDATE /* rowlock fence-at */ "rowlock" SET token = token WHERE key = ? AND home = ? AND token BETWEEN ? AND ?
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
SELECT /* rowlock once-look */ CASE WHEN expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER) THEN 2 ELSE 3 END
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
       CASE WHEN r.home <> 0 THEN 4
            WHEN r.owner = w.o AND r.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER) THEN 1
            WHEN r.owner IS NOT NULL AND r.expires_at
              > CAST(unixepoch('subsec') * 1000 AS INTEGER) THEN 0
            ELSE 2 END AS state,
       q.waiter IS NOT NULL AS waits, coalesce(r.token, 0) AS token, coalesce(r.note, '') AS note,
       coalesce(r.expires_at - CAST(unixepoch('subsec') * 1000 AS INTEGER), 0) * 1000 AS remaining,
       coalesce(q.ahead, 0) AS ahead
FROM want AS w
LEFT JOIN "rowlock" AS r ON r.key = w.k
LEFT JOIN line AS q ON q.key = w.k AND q.waiter = w.o

-- dialect/sqlite/queue.sql: pass
UPDATE /* rowlock pass */ "rowlock"
SET owner = n.waiter, note = coalesce(n.note, ''), token = "rowlock".token + (n.waiter IS NOT NULL),
    acquired_at = CASE WHEN n.waiter IS NULL THEN acquired_at
      ELSE CAST(unixepoch('subsec') * 1000 AS INTEGER) END,
    expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) + coalesce((n.ttl + 999) / 1000, 0)
FROM (SELECT 1) AS one LEFT JOIN (
  SELECT q.waiter, q.note, q.ttl FROM "rowlock_queue" AS q JOIN "rowlock" AS r ON r.key = q.key
  WHERE q.key = ?1 AND q.waiter <> ?2 AND q.rank IS NOT NULL
    AND q.alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER)
    AND r.token < 9223372036853727231
  ORDER BY q.rank, q.ticket LIMIT 1
) AS n
WHERE "rowlock".key = ?1 AND "rowlock".owner = ?2 AND ?3 IN ("rowlock".token, 0) AND home = 0
RETURNING owner, token

-- dialect/sqlite/queue.sql: queue-dead
SELECT /* rowlock queue-dead */ key, waiter FROM "rowlock_queue"
WHERE (key, waiter) > (?, ?) AND alive_until
  <= CAST(unixepoch('subsec') * 1000 AS INTEGER) - ? / 1000
ORDER BY key, waiter LIMIT ?

-- dialect/sqlite/queue.sql: queue-reap
DELETE /* rowlock queue-reap */ FROM "rowlock_queue"
WHERE (key, waiter) IN (SELECT unhex(value ->> 'k'), unhex(value ->> 'o') FROM json_each(?))
  AND alive_until <= CAST(unixepoch('subsec') * 1000 AS INTEGER) - ? / 1000

-- dialect/sqlite/statements.sql: look
SELECT /* rowlock look */ CASE WHEN home <> 0 THEN 4
            WHEN owner = ? AND expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER) THEN 7
            WHEN owner IS NOT NULL AND expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)
              THEN 0
            WHEN token >= 9223372036853727231 THEN 3
            WHEN owner IS NOT NULL THEN 5
            ELSE 2 END AS state,
       token, note, (expires_at - CAST(unixepoch('subsec') * 1000 AS INTEGER)) * 1000 AS remaining
FROM "rowlock" WHERE key = ?

-- dialect/sqlite/statements.sql: acquire-update
UPDATE /* rowlock acquire-update */ "rowlock" SET token = token + 1, acquired_at = CAST(unixepoch('subsec') * 1000 AS INTEGER),
  expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?, owner = ?, note = ?
WHERE key = ? AND home = 0 AND (owner IS NULL
  OR expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER))
  AND token < 9223372036853727231
RETURNING token

-- dialect/sqlite/statements.sql: acquire-insert
INSERT /* rowlock acquire-insert */ INTO "rowlock" (key, owner, note, token, acquired_at, expires_at, home)
SELECT ?, ?, ?, floor + 1, CAST(unixepoch('subsec') * 1000 AS INTEGER),
  CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?, 0
FROM "rowlock_floor" WHERE bucket = ? AND floor < 9223372036853727231
ON CONFLICT (key) DO NOTHING
RETURNING token

-- dialect/sqlite/statements.sql: rows
SELECT /* rowlock rows */ j.key + 1 AS n, r.home = 0 AS home, r.owner, r.token, r.note,
       (r.expires_at - CAST(unixepoch('subsec') * 1000 AS INTEGER)) * 1000 AS remaining
FROM json_each(?) AS j CROSS JOIN "rowlock" AS r ON r.key = unhex(j.value)

-- dialect/sqlite/statements.sql: create
INSERT /* rowlock create */ INTO "rowlock" (key, owner, note, token, acquired_at, expires_at, home)
SELECT ?1, ?2, ?3, floor + (?2 IS NOT NULL), CAST(unixepoch('subsec') * 1000 AS INTEGER),
       CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?4, 0
FROM "rowlock_floor" WHERE bucket = ?5 AND floor < 9223372036853727231
ON CONFLICT (key) DO NOTHING
RETURNING token

-- dialect/sqlite/statements.sql: renew
UPDATE /* rowlock renew */ "rowlock" SET expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) + j.d
FROM (SELECT unhex(value ->> 'k') AS k, unhex(value ->> 'o') AS o, value ->> 't' AS t,
  value ->> 'd' AS d
      FROM json_each(?)) AS j
WHERE "rowlock".key = j.k AND "rowlock".owner = j.o AND "rowlock".token = j.t AND home = 0
  AND expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)
RETURNING "rowlock".key, owner, token, CAST(unixepoch('subsec') * 1000 AS INTEGER) * 1000 AS clock,
  0 AS remaining

-- dialect/sqlite/statements.sql: renew-look
SELECT /* rowlock renew-look */ r.key, r.owner, r.token, CAST(unixepoch('subsec') * 1000 AS INTEGER) * 1000 AS clock,
       (r.expires_at - CAST(unixepoch('subsec') * 1000 AS INTEGER)) * 1000 AS remaining
FROM json_each(?) AS j JOIN "rowlock" AS r ON r.key = unhex(j.value ->> 'k')
WHERE r.owner = unhex(j.value ->> 'o') AND r.token = j.value ->> 't' AND r.home = 0

-- dialect/sqlite/statements.sql: confirm
UPDATE /* rowlock confirm */ "rowlock" SET expires_at = max(expires_at + 1,
  CAST(unixepoch('subsec') * 1000 AS INTEGER) + (? + 999) / 1000)
WHERE key = ? AND owner = ? AND token = ? AND home = 0
  AND expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)

-- dialect/sqlite/statements.sql: release
UPDATE /* rowlock release */ "rowlock" SET owner = NULL, note = '', expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE key = ? AND owner = ? AND ? IN (token, 0) AND home = 0

-- dialect/sqlite/statements.sql: hand-over
UPDATE /* rowlock hand-over */ "rowlock" SET token = token + 1, owner = ?, note = ?,
  acquired_at = CAST(unixepoch('subsec') * 1000 AS INTEGER),
  expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?
WHERE key = ? AND owner = ? AND token = ? AND home = 0 AND token < 9223372036853727231

-- dialect/sqlite/statements.sql: inspect
SELECT /* rowlock inspect */ r.key, r.owner, r.token, r.note,
       r.owner IS NOT NULL AND r.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER) AS held,
       (r.expires_at - CAST(unixepoch('subsec') * 1000 AS INTEGER)) * 1000 AS remaining,
       (CAST(unixepoch('subsec') * 1000 AS INTEGER) - r.acquired_at) * 1000 AS age, r.home
FROM (SELECT ? AS bounds, ? AS prefix_length, ? AS held_only) AS p JOIN "rowlock" AS r
WHERE r.key > unhex(p.bounds ->> 0) AND substr(r.key, 1, p.prefix_length) = unhex(p.bounds ->> 1)
  AND (p.held_only = 0 OR r.owner IS NOT NULL
    AND r.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER))
ORDER BY r.key LIMIT ?

-- dialect/sqlite/statements.sql: inspect-keys
SELECT /* rowlock inspect-keys */ r.key, r.owner, r.token, r.note,
       r.owner IS NOT NULL AND r.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER) AS held,
       (r.expires_at - CAST(unixepoch('subsec') * 1000 AS INTEGER)) * 1000 AS remaining,
       (CAST(unixepoch('subsec') * 1000 AS INTEGER) - r.acquired_at) * 1000 AS age, r.home
FROM (SELECT ? AS bounds, ? AS prefix_length, ? AS held_only) AS p
CROSS JOIN json_each(?) AS j CROSS JOIN "rowlock" AS r ON r.key = unhex(j.value)
WHERE r.key > unhex(p.bounds ->> 0) AND substr(r.key, 1, p.prefix_length) = unhex(p.bounds ->> 1)
  AND (p.held_only = 0 OR r.owner IS NOT NULL
    AND r.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER))
ORDER BY r.key LIMIT ?

-- dialect/sqlite/statements.sql: fence
UPDATE /* rowlock fence */ "rowlock" SET expires_at = iif(?4 > 0 AND expires_at
  > CAST(unixepoch('subsec') * 1000 AS INTEGER),
  max(expires_at, CAST(unixepoch('subsec') * 1000 AS INTEGER) + (?4 + 999) / 1000), expires_at)
WHERE key = ?1 AND owner = ?2 AND token = ?3 AND home = 0 RETURNING 1

-- dialect/sqlite/statements.sql: release-tx
UPDATE /* rowlock release-tx */ "rowlock" SET owner = NULL, note = '', expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE key = ? AND owner = ? AND token = ? AND home = 0

-- dialect/sqlite/statements.sql: instance
SELECT /* rowlock instance */ value FROM "rowlock_meta" WHERE name = 'instance'

-- dialect/sqlite/statements.sql: schema-version
SELECT /* rowlock schema-version */ value FROM "rowlock_meta" WHERE name = 'schema_version'

-- dialect/sqlite/statements.sql: complete
SELECT /* rowlock complete */ (SELECT count(*) FROM "rowlock_floor"), (SELECT count(*) FROM "rowlock_meta"
  WHERE name = 'instance')

-- dialect/sqlite/statements.sql: floor-lock
UPDATE /* rowlock floor-lock */ "rowlock_floor" SET floor = floor WHERE bucket = ? RETURNING floor

-- dialect/sqlite/statements.sql: floor-raise
UPDATE /* rowlock floor-raise */ "rowlock_floor" SET floor = max(floor, ?) WHERE bucket = ?

-- dialect/sqlite/statements.sql: dead
SELECT /* rowlock dead */ key, dead FROM (
  SELECT key, home = 0 AND expires_at
    <= CAST(unixepoch('subsec') * 1000 AS INTEGER) - p.retention / 1000 AS dead,
         row_number() OVER (ORDER BY key) AS n
  FROM (SELECT key, home, expires_at FROM "rowlock" WHERE key > ? ORDER BY key LIMIT ?) AS page,
       (SELECT ? AS retention) AS p
) AS w WHERE dead OR n = ? ORDER BY key

-- dialect/sqlite/statements.sql: dead-lock
SELECT /* rowlock dead-lock */ r.key, r.token FROM json_each(?) AS j JOIN "rowlock" AS r ON r.key = unhex(j.value)
WHERE r.home = 0 AND r.token < 9223372036853727231
  AND r.expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER) - ? / 1000

-- dialect/sqlite/statements.sql: reap
DELETE /* rowlock reap */ FROM "rowlock" WHERE key IN (SELECT unhex(value) FROM json_each(?))

-- schema/statements/sqlite.sql: exists
SELECT /* rowlock exists */ ?1 = '' AND EXISTS (SELECT 1 FROM sqlite_schema
  WHERE type = 'table' AND name = ?2 COLLATE NOCASE)

-- schema/statements/sqlite.sql: patience
PRAGMA /* rowlock patience */ busy_timeout

-- schema/statements/sqlite.sql: begin
BEGIN /* rowlock begin */ IMMEDIATE

-- schema/statements/sqlite.sql: lock
SELECT /* rowlock lock */ true

-- schema/statements/sqlite.sql: commit
COMMIT /* rowlock commit */

-- schema/statements/sqlite.sql: rollback
ROLLBACK /* rowlock rollback */

-- schema/statements/sqlite.sql: unlock
SELECT /* rowlock unlock */ true
