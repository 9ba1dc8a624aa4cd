-- The wait queue, for Postgres. A ticket is live if it has a rank and alive_until has not passed.

-- name: queue-join
-- $1 keys, $2 waiters, $3 head starts in µs, $4 notes, $5 ttls in µs, each as an array,
-- keys in order.
--
-- A heartbeat must not bring back a ticket that is being used up at this moment. So the statement
-- only updates a ticket that was live when it began, and does not insert it again if it is gone. It
-- leaves out a waiter that had the key then.
WITH want AS (
  SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::bytea[],
    $5::bigint[])
    WITH ORDINALITY AS w (key, waiter, head_start, note, ttl, n)
), live AS (
  SELECT q.key, q.waiter FROM want AS w
    JOIN rowlock_queue AS q ON q.key = w.key AND q.waiter = w.waiter
  WHERE q.rank IS NOT NULL AND q.alive_until > clock_timestamp()
  ORDER BY q.key, q.ticket FOR NO KEY UPDATE OF q
), beat AS (
  UPDATE rowlock_queue AS q
  SET note = convert_from(w.note, 'UTF8'), ttl = w.ttl,
    alive_until = clock_timestamp() + w.ttl * interval '1 microsecond'
  FROM live AS l JOIN want AS w ON w.key = l.key AND w.waiter = l.waiter
  WHERE q.key = l.key AND q.waiter = l.waiter
)
INSERT INTO rowlock_queue AS q (key, waiter, rank, note, ttl, alive_until)
SELECT w.key, w.waiter, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - w.head_start,
  convert_from(w.note, 'UTF8'),
       w.ttl, clock_timestamp() + w.ttl * interval '1 microsecond'
FROM want AS w
WHERE NOT EXISTS (SELECT 1 FROM rowlock_queue AS t
                  WHERE t.key = w.key AND t.waiter = w.waiter AND t.rank IS NOT NULL
                    AND t.alive_until > clock_timestamp())
  AND NOT EXISTS (SELECT 1 FROM rowlock AS r
                  WHERE r.key = w.key AND r.owner = w.waiter AND r.expires_at > clock_timestamp())
ORDER BY w.n
ON CONFLICT (key, waiter) DO UPDATE
SET rank = excluded.rank, note = excluded.note, ttl = excluded.ttl,
  alive_until = excluded.alive_until

-- name: queue-leave
-- $1 keys, $2 waiters, each as an array. It locks in the order in which queue-join locks.
DELETE FROM rowlock_queue AS q
USING (
  SELECT t.key, t.waiter FROM rowlock_queue AS t
  JOIN unnest($1::bytea[], $2::bytea[]) AS w (key, waiter) ON t.key = w.key
    AND t.waiter = w.waiter
  ORDER BY t.key, t.ticket FOR UPDATE OF t
) AS left_now
WHERE q.key = left_now.key AND q.waiter = left_now.waiter

-- name: places
-- $1 keys, $2 waiters, each as an array. It numbers each queue once, for any number of
-- waiters.
WITH want AS (
  SELECT * FROM unnest($1::bytea[], $2::bytea[]) WITH ORDINALITY AS w (key, waiter, n)
), line AS (
  SELECT key, waiter, row_number() OVER (PARTITION BY key ORDER BY rank, ticket) - 1 AS ahead
    FROM rowlock_queue
  WHERE key IN (SELECT key FROM want) AND rank IS NOT NULL AND alive_until > clock_timestamp()
)
SELECT w.n,
       CASE WHEN r.placement <> @placement THEN 4
            WHEN r.owner = w.waiter AND r.expires_at > clock_timestamp() THEN 1
            WHEN r.owner IS NOT NULL AND r.expires_at > clock_timestamp() THEN 0
            ELSE 2 END AS state,
       q.waiter IS NOT NULL AS waits, coalesce(r.token, 0) AS token, coalesce(left(r.note, 384), '') AS note,
       CASE WHEN r.owner IS NULL THEN 0 WHEN isfinite(r.expires_at)
         THEN (extract(epoch FROM r.expires_at - clock_timestamp()) * 1000000)::bigint END
         AS remaining,
       coalesce(q.ahead, 0) AS ahead
FROM want AS w
LEFT JOIN rowlock AS r ON r.key = w.key
LEFT JOIN line AS q ON q.key = w.key AND q.waiter = w.waiter
ORDER BY w.n

-- name: claim-update
-- $1 key, $2 owner, $3 note, $4 ttl in µs. As acquire-update, if the first live ticket is the
-- owner's own or there is none. The same statement removes the ticket, so that it can never be
-- served again.
WITH taken AS (
  UPDATE rowlock AS r
  SET owner = $2, note = $3, token = greatest(r.token, @era) + 1, acquired_at = clock_timestamp(),
      expires_at = clock_timestamp() + $4::bigint * interval '1 microsecond'
  WHERE r.key = $1 AND r.placement = @placement AND r.owner IS NULL AND r.token BETWEEN 0 AND @last_token - 1
    AND coalesce((SELECT waiter FROM rowlock_queue
                  WHERE key = $1 AND rank IS NOT NULL AND alive_until > clock_timestamp()
                  ORDER BY rank, ticket LIMIT 1), $2) = $2
  RETURNING r.token
), used AS (
  DELETE FROM rowlock_queue WHERE key = $1 AND waiter = $2 AND EXISTS (SELECT 1 FROM taken)
)
SELECT token FROM taken

-- name: claim-any
-- $1 key, $2 owner, $3 note, $4 ttl in µs, $5 bucket. As acquire-any, if the first live ticket is
-- the owner's own or there is none. It reads the head of the queue first, so that other waiters
-- lock nothing.
WITH turn AS (
  SELECT coalesce((SELECT waiter FROM rowlock_queue
                   WHERE key = $1 AND rank IS NOT NULL AND alive_until > clock_timestamp()
                   ORDER BY rank, ticket LIMIT 1), $2) = $2 AS mine
), expired AS (
  SELECT key FROM rowlock
  WHERE key = $1 AND placement = @placement AND owner IS NOT NULL AND expires_at <= clock_timestamp()
    AND (SELECT mine FROM turn)
  FOR NO KEY UPDATE SKIP LOCKED
), taken AS (
  UPDATE rowlock AS r
  SET owner = $2, note = $3, token = greatest(r.token, @era) + 1, acquired_at = clock_timestamp(),
      expires_at = clock_timestamp() + $4::bigint * interval '1 microsecond'
  WHERE r.key = $1 AND r.placement = @placement AND r.token BETWEEN 0 AND @last_token - 1 AND (SELECT mine FROM turn)
    AND (r.owner IS NULL OR r.key IN (SELECT key FROM expired))
  RETURNING r.token
), made AS (
  INSERT INTO rowlock AS r (key, owner, note, token, acquired_at, expires_at, placement)
  SELECT $1, $2, $3, greatest(f.floor, @era) + 1, clock_timestamp(),
    clock_timestamp() + $4::bigint * interval '1 microsecond', @placement
  FROM (SELECT floor FROM rowlock_floor
    WHERE bucket = $5::int AND (SELECT mine FROM turn) FOR SHARE) AS f
  WHERE NOT EXISTS (SELECT 1 FROM rowlock WHERE key = $1) AND f.floor < @last_token
  ON CONFLICT (key) DO NOTHING
  RETURNING r.token
), used AS (
  DELETE FROM rowlock_queue
  WHERE key = $1 AND waiter = $2 AND (EXISTS (SELECT 1 FROM taken) OR EXISTS (SELECT 1 FROM made))
)
SELECT 1 AS state, token, '' AS note, 0::bigint AS remaining FROM taken
UNION ALL
SELECT 1, token, '', 0 FROM made
UNION ALL
SELECT CASE WHEN r.placement <> @placement THEN 4
            WHEN r.owner = $2 AND r.expires_at > clock_timestamp() THEN 7
            WHEN r.owner IS NOT NULL AND r.expires_at > clock_timestamp() THEN 0
            WHEN r.token NOT BETWEEN 0 AND @last_token - 1 THEN 3
            WHEN NOT (SELECT mine FROM turn) THEN 6
            WHEN r.owner IS NOT NULL THEN 5
            ELSE 2 END,
       r.token, left(r.note, 384), CASE WHEN isfinite(r.expires_at)
         THEN (extract(epoch FROM r.expires_at - clock_timestamp()) * 1000000)::bigint END
FROM rowlock AS r WHERE r.key = $1 AND NOT EXISTS (SELECT 1 FROM taken)
UNION ALL
SELECT 6, 0, '', 0 FROM turn WHERE NOT mine AND NOT EXISTS (SELECT 1 FROM rowlock WHERE key = $1)

-- name: pass
-- $1 key, $2 owner, $3 token, or 0 for any token of this owner. It locks the row first and the
-- first ticket after it, in the order in which a claim does. It locks the ticket because its waiter
-- may leave at this moment, and then must find the lease that it was granted. If the queue is
-- empty, or no token is left, it is a release.
WITH held AS (
  SELECT key, token FROM rowlock
    WHERE key = $1 AND owner = $2 AND $3::bigint IN (token, 0) AND placement = @placement FOR NO KEY UPDATE
), head AS (
  SELECT q.waiter, q.note, q.ttl FROM held AS h JOIN rowlock_queue AS q ON q.key = h.key
  WHERE q.waiter <> $2 AND q.rank IS NOT NULL AND q.alive_until > clock_timestamp()
    AND h.token BETWEEN 0 AND @last_token - 1
  ORDER BY q.rank, q.ticket LIMIT 1 FOR UPDATE OF q
), passed AS (
  UPDATE rowlock AS r
  SET owner = n.waiter, note = coalesce(n.note, ''),
    token = CASE WHEN n.waiter IS NULL THEN r.token ELSE greatest(r.token, @era) + 1 END,
      acquired_at = CASE WHEN n.waiter IS NULL THEN r.acquired_at ELSE clock_timestamp() END,
      expires_at = clock_timestamp() + coalesce(n.ttl, 0) * interval '1 microsecond'
  FROM held AS h LEFT JOIN head AS n ON true
  WHERE r.key = h.key AND r.owner = $2 AND r.token = h.token
  RETURNING r.owner, r.token
), used AS (
  DELETE FROM rowlock_queue AS q USING passed AS p WHERE q.key = $1 AND q.waiter = p.owner
)
SELECT owner, token FROM passed

-- name: queue-dead
-- $1 key and $2 waiter of the last, $3 retention in µs, $4 limit. Returns the next dead tickets,
-- but for what another hand has named.
SELECT key, waiter FROM rowlock_queue
WHERE (key, waiter) > ($1, $2)
  AND alive_until <= clock_timestamp() - $3::bigint * interval '1 microsecond'
  AND octet_length(waiter) = 16
ORDER BY key, waiter LIMIT $4::bigint

-- name: queue-reap
-- $1 keys, $2 waiters, each as an array, $3 retention in µs. A ticket that another
-- transaction changes is not dead.
DELETE FROM rowlock_queue AS q
USING (
  SELECT t.key, t.waiter FROM rowlock_queue AS t
  JOIN unnest($1::bytea[], $2::bytea[]) AS w (key, waiter) ON t.key = w.key
    AND t.waiter = w.waiter
  WHERE t.alive_until <= clock_timestamp() - $3::bigint * interval '1 microsecond'
  FOR UPDATE OF t SKIP LOCKED
) AS dead
WHERE q.key = dead.key AND q.waiter = dead.waiter
