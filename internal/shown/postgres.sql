-- What the console shows. These statements read, change nothing, and lock nothing. A page finds its
-- rows first, so that what is computed for a row is computed for those that are shown.

-- name: held
-- What a page has of each of its rows.
SELECT r.key, r.owner, r.token, left(r.note, 384), r.placement,
  CASE WHEN r.acquired_at BETWEEN '0001-01-01' AND '9999-12-31'
    THEN (extract(epoch FROM r.acquired_at) * 1000000)::bigint END AS acquired,
  CASE WHEN r.expires_at BETWEEN '0001-01-01' AND '9999-12-31'
    THEN (extract(epoch FROM r.expires_at) * 1000000)::bigint ELSE 9223372036854775 END AS expires,
  CASE WHEN isfinite(r.expires_at)
    THEN (extract(epoch FROM r.expires_at - r.now) * 1000000)::bigint END AS remaining,
  CASE WHEN isfinite(r.acquired_at)
    THEN (extract(epoch FROM r.now - r.acquired_at) * 1000000)::bigint END AS age,
  (SELECT count(*) FROM rowlock_member AS m
    WHERE m.key = r.key AND m.reader_group = r.owner AND m.expires_at > r.now) AS members,
  coalesce((SELECT CASE WHEN isfinite(max(m.expires_at))
    THEN (extract(epoch FROM max(m.expires_at) - r.now) * 1000000)::bigint END
    FROM rowlock_member AS m WHERE m.key = r.key AND m.reader_group = r.owner), 0) AS shared,
  (SELECT count(*) FROM rowlock_queue AS q
    WHERE q.key = r.key AND q.alive_until > r.now) AS waiting
FROM (@page) AS r

-- name: by-key
SELECT *, clock_timestamp() AS now FROM rowlock
WHERE key > $1 AND key <= $2 AND owner IS NOT NULL AND expires_at > clock_timestamp()
  AND ($3 = '' OR strpos(note, $3) = 1)
ORDER BY key LIMIT $4

-- name: by-age
-- by-expiry is the same statement by another column.
SELECT *, clock_timestamp() AS now FROM rowlock
WHERE key > $1 AND key <= $2 AND owner IS NOT NULL AND expires_at > clock_timestamp()
  AND acquired_at >= timestamptz 'epoch' + $3::bigint * interval '1 microsecond'
  AND (acquired_at > timestamptz 'epoch' + $4::bigint * interval '1 microsecond' OR key > $5)
ORDER BY acquired_at, key LIMIT $6

-- name: waited
-- Keys by how many wait for them. The queue has a row for each waiter, and none for a key that is
-- only held.
SELECT q.key, q.queued, q.processes, coalesce(r.placement, 0) AS placement, r.owner, coalesce(left(r.note, 384), ''),
  coalesce(r.expires_at > clock_timestamp(), false) AS live,
  coalesce(CASE WHEN isfinite(r.acquired_at)
    THEN (extract(epoch FROM clock_timestamp() - r.acquired_at) * 1000000)::bigint END, 0) AS age
FROM (SELECT key, count(rank) AS queued, count(*) - count(rank) AS processes
  FROM rowlock_queue WHERE key > $1 AND key <= $2 AND alive_until > clock_timestamp()
    AND ($3 = '' OR strpos(translate(note, chr(11), chr(9)), $3) = 1)
  GROUP BY key ORDER BY count(*) DESC, key LIMIT $4) AS q
LEFT JOIN rowlock AS r ON r.key = q.key
ORDER BY q.queued + q.processes DESC, q.key

-- name: edges
-- Who waits for a key that another caller holds, as both have said, with the token that the key's
-- row has now and had when the wait was recorded.
SELECT w.caller, h.caller AS holder, w.key, r.token, left(w.note, 384), w.process,
  CASE WHEN isfinite(w.since)
    THEN (extract(epoch FROM clock_timestamp() - w.since) * 1000000)::bigint END AS waited
FROM rowlock_wait AS w
JOIN rowlock AS r ON r.key = w.key AND r.token = w.awaits AND r.placement = 0 AND r.owner IS NOT NULL
  AND r.expires_at > clock_timestamp()
JOIN rowlock_wait AS h ON h.key = r.key AND h.token = r.token AND h.process = w.process
  AND h.alive_until > clock_timestamp()
WHERE w.token = 0 AND w.key > $1 AND w.key <= $2 AND w.alive_until > clock_timestamp()
LIMIT $3

-- name: members
SELECT m.owner, left(m.note, 384),
  CASE WHEN isfinite(m.expires_at)
    THEN (extract(epoch FROM m.expires_at - clock_timestamp()) * 1000000)::bigint END AS remaining,
  CASE WHEN isfinite(m.joined_at)
    THEN (extract(epoch FROM clock_timestamp() - m.joined_at) * 1000000)::bigint END AS age
FROM rowlock AS r JOIN rowlock_member AS m ON m.key = r.key AND m.reader_group = r.owner
WHERE r.key = $1 AND m.expires_at > clock_timestamp()
ORDER BY m.joined_at, m.owner LIMIT $2

-- name: waiters
-- The queue in its order, then processes, then what waits while it holds other keys: calls (2) and
-- processes (3), with a row for each of those keys that the key's own row confirms.
SELECT kind, note, age, alive, caller, held FROM (
  SELECT CASE WHEN rank IS NULL THEN 1 ELSE 0 END AS kind, left(note, 384) AS note, 0::bigint AS age, rank, ticket,
    CASE WHEN isfinite(alive_until)
    THEN (extract(epoch FROM alive_until - clock_timestamp()) * 1000000)::bigint END AS alive,
    waiter AS caller, NULL::bytea AS held
  FROM rowlock_queue WHERE key = $1 AND alive_until > clock_timestamp()
  UNION ALL
  SELECT 2 + w.process, left(w.note, 384), CASE WHEN isfinite(w.since)
    THEN (extract(epoch FROM clock_timestamp() - w.since) * 1000000)::bigint END,
    CASE WHEN w.since BETWEEN '0001-01-01' AND '9999-12-31'
      THEN (extract(epoch FROM w.since) * 1000000)::bigint END, 0::bigint,
    CASE WHEN isfinite(w.alive_until)
    THEN (extract(epoch FROM w.alive_until - clock_timestamp()) * 1000000)::bigint END, w.caller, h.key
  FROM rowlock_wait AS w LEFT JOIN (rowlock_wait AS h JOIN rowlock AS r ON r.key = h.key AND r.token = h.token
      AND r.owner IS NOT NULL AND r.expires_at > clock_timestamp())
    ON h.caller = w.caller AND h.token > 0 AND h.alive_until > clock_timestamp()
  WHERE w.key = $2 AND w.token = 0 AND w.alive_until > clock_timestamp()
) AS w ORDER BY kind, rank, ticket, held LIMIT $3
