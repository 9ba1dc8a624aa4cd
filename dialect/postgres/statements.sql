-- The statements for Postgres. The section names are the same in every dialect, and the server sees
-- each as a comment after the verb: SELECT /* rowlock look */ …. Three names are filled in.
-- @placement is the placement of the rows that these statements may change: 0 for leases, otherwise
-- see lease.PlacementTransaction. @last_token is the largest token that is ever granted, lease.MaxToken
-- - 1. @era is the start of the session's era, which each of its tokens is above; see era.sql.
--
-- Time is clock_timestamp(), never now(): now() is when the transaction began, which is before the
-- wait for a row lock, and minutes ago in a long transaction. It stands in SET and WHERE, never in
-- VALUES, which the server computes before that wait.

-- name: acquire-update
-- $1 key, $2 owner, $3 note, $4 ttl in µs. A row without owner cannot be fenced, so this waits only
-- for another taker's commit. It neither locks nor writes any other row.
UPDATE rowlock AS r
SET owner = $2, note = $3, token = greatest(r.token, @era) + 1, acquired_at = clock_timestamp(),
    expires_at = clock_timestamp() + $4::bigint * interval '1 microsecond'
WHERE r.key = $1 AND r.placement = @placement AND r.owner IS NULL AND r.token BETWEEN 0 AND @last_token - 1
RETURNING r.token

-- name: acquire-any
-- $1 key, $2 owner, $3 note, $4 ttl in µs, $5 bucket. It handles every state of the row, and its absence. It
-- runs after acquire-update has changed nothing, because the planner needs longer for it.
--
-- A held key falls through to the last SELECT, and the statement writes and locks nothing: ON CONFLICT … DO
-- UPDATE … WHERE false would lock the row and write WAL for every loser. It takes an expired row with SKIP
-- LOCKED, because the previous holder may be inside a fencing transaction, and waiting for that would end in a
-- lock timeout and an ERROR line in the server's log. If there is no row, it reads the floor FOR SHARE, so that
-- the reaper, which locks it FOR UPDATE before it deletes, cannot come between.
WITH expired AS (
  SELECT key FROM rowlock
  WHERE key = $1 AND placement = @placement AND owner IS NOT NULL AND expires_at <= clock_timestamp()
  FOR NO KEY UPDATE SKIP LOCKED
), taken AS (
  UPDATE rowlock AS r
  SET owner = $2, note = $3, token = greatest(r.token, @era) + 1, acquired_at = clock_timestamp(),
      expires_at = clock_timestamp() + $4::bigint * interval '1 microsecond'
  WHERE r.key = $1 AND r.placement = @placement AND r.token BETWEEN 0 AND @last_token - 1
    AND (r.owner IS NULL OR r.key IN (SELECT key FROM expired))
  RETURNING r.token
), made AS (
  INSERT INTO rowlock AS r (key, owner, note, token, acquired_at, expires_at, placement)
  SELECT $1, $2, $3, greatest(f.floor, @era) + 1, clock_timestamp(),
    clock_timestamp() + $4::bigint * interval '1 microsecond', @placement
  FROM (SELECT floor FROM rowlock_floor WHERE bucket = $5::int FOR SHARE) AS f
  WHERE NOT EXISTS (SELECT 1 FROM rowlock WHERE key = $1) AND f.floor < @last_token
  ON CONFLICT (key) DO NOTHING
  RETURNING r.token
)
SELECT 1 AS state, token, '' AS note, 0::bigint AS remaining FROM taken
UNION ALL
SELECT 1, token, '', 0 FROM made
UNION ALL
SELECT CASE WHEN r.placement <> @placement THEN 4
            WHEN r.owner = $2 AND r.expires_at > clock_timestamp() THEN 7
            WHEN r.owner IS NOT NULL AND r.expires_at > clock_timestamp() THEN 0
            WHEN r.token NOT BETWEEN 0 AND @last_token - 1 THEN 3
            WHEN r.owner IS NOT NULL THEN 5
            ELSE 2 END,
       r.token, left(r.note, 384), CASE WHEN isfinite(r.expires_at)
         THEN (extract(epoch FROM r.expires_at - clock_timestamp()) * 1000000)::bigint END
FROM rowlock AS r WHERE r.key = $1 AND NOT EXISTS (SELECT 1 FROM taken)

-- name: acquire-insert
-- $1 key, $2 owner, $3 note, $4 ttl in µs, $5 bucket. For keys that are usually new. An existing
-- row yields nothing, and the statement locks and writes nothing.
INSERT INTO rowlock AS r (key, owner, note, token, acquired_at, expires_at, placement)
SELECT $1, $2, $3, greatest(f.floor, @era) + 1, clock_timestamp(),
  clock_timestamp() + $4::bigint * interval '1 microsecond', @placement
FROM (SELECT floor FROM rowlock_floor WHERE bucket = $5::int FOR SHARE) AS f
WHERE NOT EXISTS (SELECT 1 FROM rowlock WHERE key = $1) AND f.floor < @last_token
ON CONFLICT (key) DO NOTHING
RETURNING r.token

-- name: seize
-- $1 key. Whether no other transaction has the row locked: if an attempt in the same transaction
-- finds it free or expired, and does not change it, then a trigger keeps it as it is.
SELECT 1 FROM rowlock WHERE key = $1 FOR NO KEY UPDATE SKIP LOCKED

-- name: acquire-piped
-- $1 key, $2 owner, $3 note, $4 ttl in µs. acquire-update for one of several statements that one
-- transaction has: SKIP LOCKED, because the others would wait with it for another taker. It updates
-- by ctid, as apply does: a row that was changed since the statement's snapshot is not found.
UPDATE rowlock AS r
SET owner = $2, note = $3, token = greatest(r.token, @era) + 1, acquired_at = clock_timestamp(),
    expires_at = clock_timestamp() + $4::bigint * interval '1 microsecond'
WHERE r.key = $1 AND r.ctid = (SELECT f.ctid FROM rowlock AS f
  WHERE f.key = $1 AND f.placement = @placement AND f.owner IS NULL AND f.token BETWEEN 0 AND @last_token - 1
  FOR NO KEY UPDATE SKIP LOCKED)
RETURNING r.token

-- name: rows
-- $1 keys as an array. What there is of slots, by a consistent read.
SELECT w.n, r.placement = @placement AS placement, r.owner, r.token, left(r.note, 384),
  CASE WHEN isfinite(r.expires_at)
         THEN (extract(epoch FROM r.expires_at - clock_timestamp()) * 1000000)::bigint END AS remaining
FROM unnest($1::bytea[]) WITH ORDINALITY AS w (key, n) JOIN rowlock AS r ON r.key = w.key

-- name: apply
-- $1 keys, $2 present owners (NULL: free, or expired), $3 present tokens (0: any), $4 next owners
-- (NULL: free), $5 notes, $6 ttls in µs, each as an array, keys in order; $7 the releasing
-- process, $8 whether to change all or nothing, $9 whether the commit need not wait for the disk,
-- see release-relaxed: no change of the batch may then have a next owner. The server evaluates that
-- setting once, before it has anything to change.
--
-- It locks in key order before it writes anything, so that two batches cannot deadlock. It uses SKIP LOCKED,
-- because a row may be locked for as long as a fence lasts, and the rest of the batch would wait for it. It
-- updates by ctid, because finding the rows again by key would take as long as the first time. A row that was
-- changed since the statement's snapshot is not found by ctid, and answered 0. Partitions share ctids: hence the key.
--
-- With all or nothing it also locks nothing unless every change seems possible, so that a loser
-- writes nothing. It counts the locked rows by ctid as it will update them: a row that was taken
-- and released since the snapshot is locked, and free, and not found. NOT IN and not NOT EXISTS,
-- for which a pinned connection's planner settings would compare every row with every other.
WITH want AS (
  SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::bytea[],
    $5::text[], $6::bigint[])
    WITH ORDINALITY AS w (key, was, token, owner, note, ttl, n)
  WHERE (SELECT CASE WHEN $9::bool THEN set_config('synchronous_commit', 'off', true) ELSE '' END)
    IS NOT NULL
), found AS (
  SELECT w.*, r.ctid AS place FROM want AS w JOIN rowlock AS r ON r.key = w.key
  WHERE r.placement = @placement AND r.token BETWEEN 0 AND @last_token - 1
    AND (w.was IS NULL AND (r.owner IS NULL OR r.expires_at <= clock_timestamp())
      OR r.owner = w.was AND w.token IN (r.token, 0))
    AND (NOT $8::bool OR (SELECT count(*) FROM want)
      = (SELECT count(*) FROM want AS w JOIN rowlock AS r ON r.key = w.key
           WHERE r.placement = @placement AND r.token BETWEEN 0 AND @last_token - 1
             AND (r.owner IS NULL OR r.expires_at <= clock_timestamp())))
  ORDER BY r.key FOR NO KEY UPDATE OF r SKIP LOCKED
), done AS (
  UPDATE rowlock AS r
  SET owner = f.owner, note = f.note,
      token = CASE WHEN f.owner IS NULL THEN r.token ELSE greatest(r.token, @era) + 1 END,
      acquired_at = CASE WHEN f.owner IS NULL THEN r.acquired_at ELSE clock_timestamp() END,
      expires_at = clock_timestamp() + f.ttl * interval '1 microsecond'
  FROM found AS f
  WHERE r.ctid = f.place AND r.key = f.key
    AND (NOT $8::bool OR (SELECT count(*) FROM found AS f JOIN rowlock AS r ON r.ctid = f.place AND r.key = f.key)
      = (SELECT count(*) FROM want))
  RETURNING f.n, r.token, f.owner IS NULL AND EXISTS (SELECT 1 FROM rowlock_queue AS q
    WHERE q.key = r.key AND q.waiter <> $7 AND q.alive_until > clock_timestamp()) AS awaited
)
SELECT n, 1 AS outcome, token, awaited, '' AS note, 0::bigint AS remaining FROM done
UNION ALL
SELECT w.n, CASE WHEN w.was IS NULL AND r.key IS NULL THEN 4
                 WHEN w.was IS NOT NULL AND (r.owner = w.was AND w.token IN (r.token, 0)
                   AND r.placement = @placement) IS NOT TRUE THEN 3
                 WHEN w.was IS NOT NULL OR r.placement <> @placement THEN 0
                 WHEN r.owner = w.owner AND r.expires_at > clock_timestamp() THEN 6
                 WHEN r.owner IS NOT NULL AND r.expires_at > clock_timestamp() THEN 2
                 WHEN r.token NOT BETWEEN 0 AND @last_token - 1 OR NOT $8::bool THEN 0
                 ELSE 5 END,
       coalesce(r.token, 0), false, coalesce(left(r.note, 384), ''),
       CASE WHEN r.owner IS NULL THEN 0 WHEN isfinite(r.expires_at)
         THEN (extract(epoch FROM r.expires_at - clock_timestamp()) * 1000000)::bigint END
FROM want AS w LEFT JOIN rowlock AS r ON r.key = w.key WHERE w.n NOT IN (SELECT n FROM done)

-- name: apply-any
-- $1 keys, $2 next owners, $3 notes, $4 ttls in µs, each as an array, in the order in which
-- they are tried; $5 how many to take: so many, or none. It answers with what it took, or else with
-- what it saw of every key.
--
-- LIMIT stands above the lock, so that the statement locks no row more than it takes, and passes
-- over rows that others have locked. It reads a locked row anew, and so takes a key that was
-- released since the snapshot and nothing that was taken since. It updates by key, because a row
-- that has changed since the snapshot has another ctid. If an earlier copy of the request was
-- granted, or fewer keys than wanted seem free, it locks nothing.
WITH want AS (
  SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::text[], $4::bigint[])
    WITH ORDINALITY AS w (key, owner, note, ttl, n)
), seen AS (
  SELECT w.n, CASE WHEN r.key IS NULL THEN 4
                   WHEN r.placement <> @placement THEN 0
                   WHEN r.owner = w.owner AND r.expires_at > clock_timestamp() THEN 6
                   WHEN r.owner IS NOT NULL AND r.expires_at > clock_timestamp() THEN 2
                   WHEN r.token NOT BETWEEN 0 AND @last_token - 1 THEN 0
                   ELSE 5 END AS outcome,
    coalesce(r.token, 0) AS token, coalesce(left(r.note, 384), '') AS note,
    CASE WHEN r.owner IS NULL THEN 0 WHEN isfinite(r.expires_at)
         THEN (extract(epoch FROM r.expires_at - clock_timestamp()) * 1000000)::bigint END
      AS remaining
  FROM want AS w LEFT JOIN rowlock AS r ON r.key = w.key
), free AS (
  SELECT w.* FROM want AS w JOIN rowlock AS r ON r.key = w.key
  WHERE r.placement = @placement AND r.token BETWEEN 0 AND @last_token - 1
    AND (r.owner IS NULL OR r.expires_at <= clock_timestamp())
    AND NOT EXISTS (SELECT 1 FROM seen WHERE outcome = 6)
    AND (SELECT count(*) FROM seen WHERE outcome = 5) >= $5::bigint
  ORDER BY w.n LIMIT $5::bigint FOR NO KEY UPDATE OF r SKIP LOCKED
), done AS (
  UPDATE rowlock AS r
  SET owner = f.owner, note = f.note, token = greatest(r.token, @era) + 1, acquired_at = clock_timestamp(),
      expires_at = clock_timestamp() + f.ttl * interval '1 microsecond'
  FROM free AS f
  WHERE r.key = f.key AND (SELECT count(*) FROM free) = $5::bigint
  RETURNING f.n, r.token
)
SELECT n, 1 AS outcome, token, false AS awaited, '' AS note, 0::bigint AS remaining FROM done
UNION ALL
SELECT n, outcome, token, false, note, remaining FROM seen WHERE NOT EXISTS (SELECT 1 FROM done)

-- name: create
-- $1 keys, $2 owners (NULL: free), $3 notes, $4 ttls in µs, $5 buckets, each as an array,
-- keys in order. As acquire-insert, it share-locks each floor, to keep the reaper out, and an
-- existing row yields nothing.
INSERT INTO rowlock AS r (key, owner, note, token, acquired_at, expires_at, placement)
SELECT w.key, w.owner, w.note,
       CASE WHEN w.owner IS NULL THEN f.floor ELSE greatest(f.floor, @era) + 1 END, clock_timestamp(),
       clock_timestamp() + w.ttl * interval '1 microsecond', @placement
FROM unnest($1::bytea[], $2::bytea[], $3::text[], $4::bigint[],
  $5::bigint[]) AS w (key, owner, note, ttl, bucket)
CROSS JOIN LATERAL (SELECT floor FROM rowlock_floor WHERE bucket = w.bucket FOR SHARE) AS f
WHERE NOT EXISTS (SELECT 1 FROM rowlock AS o WHERE o.key = w.key) AND f.floor < @last_token
ON CONFLICT (key) DO NOTHING
RETURNING r.key, r.token

-- name: renew
-- $1 keys, $2 owners, $3 tokens, $4 ttls in µs, each as an array, keys in order.
--
-- SKIP LOCKED, because the holder's own fence may have the row. Such a lease is answered 2, busy, with what
-- remains of it by the snapshot, which shows committed expiries only. It locks the rows in key order, so that
-- two renewals of overlapping batches cannot deadlock. It does not touch expired or foreign rows. A batch may
-- have a lost lease and the next lease of the same key, so that a key alone does not identify a renewal.
WITH want AS (
  SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::bigint[])
    WITH ORDINALITY AS w (key, owner, token, ttl, n)
), locked AS (
  SELECT r.key, w.owner, w.token, w.ttl FROM rowlock AS r JOIN want AS w ON r.key = w.key
  WHERE r.owner = w.owner AND r.token = w.token AND r.placement = @placement
  ORDER BY r.key FOR NO KEY UPDATE OF r SKIP LOCKED
), renewed AS (
  UPDATE rowlock AS r SET expires_at = clock_timestamp() + l.ttl * interval '1 microsecond'
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
        FROM rowlock AS r
        WHERE r.key = o.key AND r.owner = o.owner AND r.token = o.token AND r.placement = @placement) END
          AS remaining
      FROM (SELECT w.*, CASE WHEN EXISTS (SELECT 1 FROM renewed AS d
        WHERE d.key = w.key AND d.owner = w.owner AND d.token = w.token) THEN 1
                             WHEN EXISTS (SELECT 1 FROM locked AS l WHERE l.key = w.key) THEN 0
                             ELSE 3 END AS outcome
            FROM want AS w OFFSET 0) AS o OFFSET 0) AS a ORDER BY a.n

-- name: confirm
-- $1 ttl in µs or 0, $2 key, $3 owner, $4 token. The lease was read to be its owner's, and a read
-- proves nothing about durability: a commit that waits for a synchronous standby becomes visible
-- when its wait is cancelled, and is then on this server alone. This commit comes after it in the
-- log, so that its acknowledgement covers both. It always changes the row, never shortens the
-- lease, and extends it by the clock's resolution or to the ttl from now.
UPDATE rowlock SET expires_at = greatest(expires_at + interval '1 microsecond',
  clock_timestamp() + $1::bigint * interval '1 microsecond')
WHERE key = $2 AND owner = $3 AND token = $4 AND placement = @placement AND expires_at > clock_timestamp()

-- name: raise
-- $1 token, $2 key, $3 owner, $4 token so far, $5 token. A lease gets a larger token, or has it
-- from an earlier try. The row always changes, because a statement that changes nothing commits
-- nothing, and an earlier try may not have been acknowledged.
UPDATE rowlock SET token = $1, expires_at = expires_at + interval '1 microsecond'
WHERE key = $2 AND owner = $3 AND token IN ($4, $5) AND placement = @placement
  AND expires_at > clock_timestamp()

-- name: release
-- $1 key, $2 owner, $3 token, or 0 for any token of this owner, $4 the releasing process. The returned row says
-- whether another process waits. That costs a look at one index here, and would cost a round trip later.
UPDATE rowlock SET owner = NULL, note = '', expires_at = clock_timestamp()
WHERE key = $1 AND owner = $2 AND $3::bigint IN (token, 0) AND placement = @placement
RETURNING EXISTS (SELECT 1 FROM rowlock_queue AS q
  WHERE q.key = $1 AND q.waiter <> $4 AND q.alive_until > clock_timestamp())

-- name: release-piped
-- $1 key, $2 owner, $3 token, or 0 for any token of this owner, $4 the releasing process. release for one of several
-- statements that one transaction has, as acquire-piped: a fence may have the row locked for long.
UPDATE rowlock AS r SET owner = NULL, note = '', expires_at = clock_timestamp()
WHERE r.key = $1 AND r.ctid = (SELECT f.ctid FROM rowlock AS f
  WHERE f.key = $1 AND f.owner = $2 AND $3::bigint IN (f.token, 0) AND f.placement = @placement
  FOR NO KEY UPDATE SKIP LOCKED)
RETURNING EXISTS (SELECT 1 FROM rowlock_queue AS q
  WHERE q.key = $1 AND q.waiter <> $4 AND q.alive_until > clock_timestamp())

-- name: release-relaxed
-- As release, in a transaction of its own: the commit waits for no disk and no standby. The setting
-- ends with the transaction. It must never get into one that grants, or into the user's. When the
-- server evaluates it does not matter: a statement that changes no row has nothing to commit.
UPDATE rowlock SET owner = NULL, note = '', expires_at = clock_timestamp()
WHERE key = $1 AND owner = $2 AND $3::bigint IN (token, 0) AND placement = @placement
  AND set_config('synchronous_commit', 'off', true) = 'off'
RETURNING EXISTS (SELECT 1 FROM rowlock_queue AS q
  WHERE q.key = $1 AND q.waiter <> $4 AND q.alive_until > clock_timestamp())

-- name: release-piped-relaxed
-- As release-piped, for a transaction in which every statement is one, and as release-relaxed.
UPDATE rowlock AS r SET owner = NULL, note = '', expires_at = clock_timestamp()
WHERE r.key = $1 AND r.ctid = (SELECT f.ctid FROM rowlock AS f
  WHERE f.key = $1 AND f.owner = $2 AND $3::bigint IN (f.token, 0) AND f.placement = @placement
  FOR NO KEY UPDATE SKIP LOCKED)
  AND set_config('synchronous_commit', 'off', true) = 'off'
RETURNING EXISTS (SELECT 1 FROM rowlock_queue AS q
  WHERE q.key = $1 AND q.waiter <> $4 AND q.alive_until > clock_timestamp())

-- name: hand-over
-- $1 next owner, $2 note, $3 ttl in µs, $4 key, $5 present owner and $6 token
UPDATE rowlock AS r
SET owner = $1, note = $2, token = greatest(r.token, @era) + 1, acquired_at = clock_timestamp(),
    expires_at = clock_timestamp() + $3::bigint * interval '1 microsecond'
WHERE r.key = $4 AND r.owner = $5 AND r.token = $6 AND r.placement = @placement AND r.token BETWEEN 0 AND @last_token - 1

-- name: inspect
-- $1 the key before the first, $2 the last that is possible, $3 held only, $4 limit. What cannot
-- be read counts as held.
SELECT r.key, r.owner, r.token, left(r.note, 384),
  r.owner IS NOT NULL AND r.expires_at > clock_timestamp() AS held,
       CASE WHEN isfinite(r.expires_at)
         THEN (extract(epoch FROM r.expires_at - clock_timestamp()) * 1000000)::bigint END AS remaining,
       CASE WHEN isfinite(r.acquired_at)
         THEN (extract(epoch FROM clock_timestamp() - r.acquired_at) * 1000000)::bigint END AS age,
       r.placement
FROM rowlock AS r
WHERE r.key > $1 AND r.key <= $2
  AND ($3::int = 0 OR r.owner IS NOT NULL AND
    ((r.expires_at > clock_timestamp()) IS NOT FALSE OR r.expires_at = '-infinity'))
ORDER BY r.key LIMIT $4::bigint

-- name: inspect-keys
-- $1 keys as an array, each once, and the rest as for inspect. This is not one statement with inspect,
-- because a plan for "no list, or in it" that serves every list reads the whole table.
SELECT r.key, r.owner, r.token, left(r.note, 384),
  r.owner IS NOT NULL AND r.expires_at > clock_timestamp() AS held,
       CASE WHEN isfinite(r.expires_at)
         THEN (extract(epoch FROM r.expires_at - clock_timestamp()) * 1000000)::bigint END AS remaining,
       CASE WHEN isfinite(r.acquired_at)
         THEN (extract(epoch FROM clock_timestamp() - r.acquired_at) * 1000000)::bigint END AS age,
       r.placement
FROM rowlock AS r
WHERE r.key = ANY ($1::bytea[]) AND r.key > $2 AND r.key <= $3
  AND ($4::int = 0 OR r.owner IS NOT NULL AND
    ((r.expires_at > clock_timestamp()) IS NOT FALSE OR r.expires_at = '-infinity'))
ORDER BY r.key LIMIT $5::bigint

-- name: fence
-- $1 key, $2 owner, $3 token, $4 ttl in µs, or 0 to leave the expiry as it is. An UPDATE, not a locking SELECT: under
-- REPEATABLE READ a transaction that waits here has its snapshot from before the wait. If the fence that blocked it
-- wrote nothing, it would go on and read what that transaction has changed since. Because the fence writes, Postgres
-- refuses it (40001). An expired lease is fenced and not revived. It returns 1 if the row stays locked until the
-- transaction ends, and fails (22P02) if ROLLBACK TO a savepoint would unlock it: the row that it has written is the
-- savepoint's, and the one before it, which the subquery still sees, is not this transaction's: what is seen and in
-- progress is. It fails so that it leaves no row that a later fence would take for one.
UPDATE rowlock SET expires_at = CASE WHEN $4::bigint > 0 AND expires_at > clock_timestamp()
  THEN greatest(expires_at, clock_timestamp() + $4::bigint * interval '1 microsecond')
    ELSE expires_at END
WHERE key = $1 AND owner = $2 AND token = $3 AND placement = @placement
RETURNING (CASE WHEN xmin::text::bigint = txid_current() & 4294967295 THEN '1'
  WHEN (SELECT CASE WHEN past < 2147483648 THEN txid_status(txid_current() + past) END
    FROM (SELECT (before.xmin::text::bigint - txid_current()) & 4294967295 AS past
      FROM rowlock AS before WHERE before.key = $1) AS x) = 'in progress' THEN '1'
  ELSE 'a fence inside a savepoint' END)::int

-- name: release-tx
-- $1 key, $2 owner, $3 token
UPDATE rowlock SET owner = NULL, note = '', expires_at = clock_timestamp()
WHERE key = $1 AND owner = $2 AND token = $3 AND placement = @placement

-- name: instance
SELECT value FROM rowlock_meta WHERE name = 'instance'

-- name: schema-version
SELECT v.value, f.value, v.name FROM rowlock_meta AS v LEFT JOIN rowlock_meta AS f
  ON f.name = replace(v.name, 'schema_version', 'compatible_from') WHERE substr(v.name, 1, 14) = 'schema_version' ORDER BY v.name

-- name: complete
SELECT count(*) FROM rowlock_floor

-- name: floor-lock
-- $1 bucket
SELECT floor FROM rowlock_floor WHERE bucket = $1 FOR UPDATE

-- name: floor-raise
-- $1 floor, $2 bucket
UPDATE rowlock_floor SET floor = greatest(floor, $1::bigint) WHERE bucket = $2

-- name: dead
-- $1 after, $2 number of rows to read, $3 retention in µs, $4 that number again. It walks the
-- primary key, because an index on the expiry would cost every renewal its HOT update. The result
-- always has the last row that was read, dead or not, from which the walk goes on.
SELECT key, dead FROM (
  SELECT key,
    placement = @placement
      AND expires_at <= clock_timestamp() - $3::bigint * interval '1 microsecond' AS dead,
         row_number() OVER (ORDER BY key) AS n
  FROM (SELECT key, placement, expires_at FROM rowlock WHERE key > $1 ORDER BY key LIMIT $2::int) AS page
) AS p WHERE dead OR n = $4::bigint ORDER BY key

-- name: dead-lock
-- $1 keys as an array, $2 retention in µs. A row whose tokens have run out stays, because
-- its floor would exhaust the whole bucket.
SELECT key, token FROM rowlock
WHERE key = ANY ($1::bytea[]) AND placement = @placement AND token BETWEEN 0 AND @last_token - 1
  AND expires_at <= clock_timestamp() - $2::bigint * interval '1 microsecond'
ORDER BY key FOR UPDATE SKIP LOCKED

-- name: reap
-- $1 keys as an array: rows that dead-lock has locked in this transaction
DELETE FROM rowlock WHERE key = ANY ($1::bytea[])
