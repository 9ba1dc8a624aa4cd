-- The wait queue, for SQLite. A ticket is live if it has a rank and alive_until has not passed.

-- name: queue-join
-- JSON array of {k, o, h, c, d}: hexadecimal key, waiter and note, head start and ttl in µs. The
-- statement leaves out the holder: its ticket is used up, and a late heartbeat must not bring it
-- back. A dead ticket gets a new number, because ranks are equal within one tick of the clock.
INSERT INTO rowlock_queue (key, waiter, rank, note, ttl, alive_until)
SELECT unhex(j.value ->> 'k'), unhex(j.value ->> 'o'),
       CAST(unixepoch('subsec') * 1000 AS INTEGER) * 1000 - (j.value ->> 'h'),
       CAST(unhex(j.value ->> 'c') AS TEXT), j.value ->> 'd',
       CAST(unixepoch('subsec') * 1000 AS INTEGER) + ((j.value ->> 'd') + 999) / 1000
FROM json_each(?) AS j
WHERE NOT EXISTS (SELECT 1 FROM rowlock AS r
                  WHERE r.key = unhex(j.value ->> 'k') AND r.owner = unhex(j.value ->> 'o')
                    AND r.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER))
ORDER BY j.key
ON CONFLICT (key, waiter) DO UPDATE
SET ticket = CASE WHEN rank IS NOT NULL AND alive_until
  > CAST(unixepoch('subsec') * 1000 AS INTEGER) THEN ticket
                  ELSE (SELECT max(ticket) + 1 FROM rowlock_queue) END,
    rank = CASE WHEN rank IS NOT NULL AND alive_until
      > CAST(unixepoch('subsec') * 1000 AS INTEGER) THEN rank
                ELSE excluded.rank END,
    note = excluded.note, ttl = excluded.ttl, alive_until = excluded.alive_until

-- name: queue-leave
-- JSON array of {k, o}: hexadecimal key and waiter
DELETE FROM rowlock_queue
WHERE (key, waiter) IN (SELECT unhex(value ->> 'k'), unhex(value ->> 'o') FROM json_each(?))

-- name: queue-head
-- key. Returns the head of the queue.
SELECT waiter FROM rowlock_queue
WHERE key = ? AND rank IS NOT NULL AND alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER)
ORDER BY rank, ticket LIMIT 1

-- name: places
-- JSON array of {k, o}: hexadecimal key and waiter. It numbers each queue once, for any number of
-- waiters.
WITH want AS MATERIALIZED (
  SELECT key + 1 AS n, unhex(value ->> 'k') AS k, unhex(value ->> 'o') AS o FROM json_each(?)
), line AS MATERIALIZED (
  SELECT key, waiter, row_number() OVER (PARTITION BY key ORDER BY rank, ticket) - 1 AS ahead
    FROM rowlock_queue
  WHERE key IN (SELECT k FROM want) AND rank IS NOT NULL
    AND alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER)
)
SELECT w.n,
       CASE WHEN r.placement <> @placement THEN 4
            WHEN r.owner = w.o AND r.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER) THEN 1
            WHEN r.owner IS NOT NULL AND r.expires_at
              > CAST(unixepoch('subsec') * 1000 AS INTEGER) THEN 0
            ELSE 2 END AS state,
       q.waiter IS NOT NULL AS waits, coalesce(r.token, 0) AS token, coalesce(substr(r.note, 1, 384), '') AS note,
       coalesce(r.expires_at - CAST(unixepoch('subsec') * 1000 AS INTEGER), 0) * 1000 AS remaining,
       coalesce(q.ahead, 0) AS ahead
FROM want AS w
LEFT JOIN rowlock AS r ON r.key = w.k
LEFT JOIN line AS q ON q.key = w.k AND q.waiter = w.o

-- name: pass
-- ?1 key, ?2 owner, ?3 token, or 0 for any token of this owner. The first statement of a
-- transaction, so that it waits for the write lock. If the queue is empty, or no token is left, it
-- is a release. queue-leave deletes the ticket.
UPDATE rowlock
SET owner = n.waiter, note = coalesce(n.note, ''),
    token = iif(n.waiter IS NULL, rowlock.token, max(rowlock.token, @era) + 1),
    acquired_at = CASE WHEN n.waiter IS NULL THEN acquired_at
      ELSE CAST(unixepoch('subsec') * 1000 AS INTEGER) END,
    expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) + coalesce((n.ttl + 999) / 1000, 0)
FROM (SELECT 1) AS one LEFT JOIN (
  SELECT q.waiter, q.note, q.ttl FROM rowlock_queue AS q JOIN rowlock AS r ON r.key = q.key
  WHERE q.key = ?1 AND q.waiter <> ?2 AND q.rank IS NOT NULL
    AND q.alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER)
    AND r.token BETWEEN 0 AND @last_token - 1
  ORDER BY q.rank, q.ticket LIMIT 1
) AS n
WHERE rowlock.key = ?1 AND rowlock.owner = ?2 AND ?3 IN (rowlock.token, 0) AND placement = @placement
RETURNING owner, token

-- name: queue-dead
-- key and waiter of the last, retention in µs, limit. Returns the next dead tickets, but
-- for what another hand has named.
SELECT key, waiter FROM rowlock_queue
WHERE (key, waiter) > (?, ?) AND alive_until
  <= CAST(unixepoch('subsec') * 1000 AS INTEGER) - ? / 1000
  AND length(waiter) = 16
ORDER BY key, waiter LIMIT ?

-- name: queue-reap
-- JSON array of {k, o}: hexadecimal key and waiter; retention in µs
DELETE FROM rowlock_queue
WHERE (key, waiter) IN (SELECT unhex(value ->> 'k'), unhex(value ->> 'o') FROM json_each(?))
  AND alive_until <= CAST(unixepoch('subsec') * 1000 AS INTEGER) - ? / 1000
