-- For package optimistic: it reads a row, and changes the row only if it is still as it was read.
-- No statement here locks a row that it does not write. The parameters have the same order in every
-- dialect. Times are µs, and expiries µs since 1970.

-- name: cas-setup
-- A change of a row waits for a transaction that has it locked, but no longer than a slow commit
-- takes, because the pinned connection has other work. Returns for how many ms.
SELECT 100 FROM set_config('lock_timeout', '100', false)

-- name: cas-look
-- $1 owner, $2 key. The times of a free row are useless, and numeric is slow.
SELECT CASE WHEN placement <> @placement THEN 4
            WHEN owner = $1 AND expires_at > clock_timestamp() THEN 7
            WHEN owner IS NOT NULL AND expires_at > clock_timestamp() THEN 0
            WHEN token NOT BETWEEN 0 AND @last_token - 1 THEN 3
            WHEN owner IS NOT NULL THEN 5
            ELSE 2 END AS state,
       token, left(note, 384), CASE WHEN owner IS NULL THEN 0 WHEN isfinite(expires_at)
         THEN (extract(epoch FROM expires_at - clock_timestamp()) * 1000000)::bigint END
         AS remaining,
       owner, CASE WHEN owner IS NULL THEN 0 WHEN expires_at BETWEEN '0001-01-01' AND '9999-12-31'
         THEN (extract(epoch FROM expires_at) * 1000000)::bigint END AS expires
FROM rowlock WHERE key = $2

-- name: cas-take-free
-- $1 owner, $2 note, $3 ttl, $4 next token; $5 key, and $6 token as read. A row without owner is as
-- it was read if its token is, because every grant raises it. No client can fence such a row, so a
-- wait is only for another taker's commit.
UPDATE rowlock AS r
SET owner = $1, note = $2, expires_at = clock_timestamp() + $3::bigint * interval '1 microsecond',
  acquired_at = clock_timestamp(), token = greatest($4::bigint - 1, @era) + 1
WHERE r.key = $5 AND r.placement = @placement AND r.token = $6 AND r.owner IS NULL

-- name: cas-take
-- $1 owner, $2 note, $3 ttl, $4 next token; $5 key, and $6 token, $7 owner, $8 expiry as read
UPDATE rowlock AS r
SET owner = $1, note = $2, expires_at = clock_timestamp() + $3::bigint * interval '1 microsecond',
  acquired_at = clock_timestamp(), token = greatest($4::bigint - 1, @era) + 1
WHERE r.key = $5 AND r.placement = @placement AND r.token = $6 AND r.owner = $7::bytea
  AND (extract(epoch FROM r.expires_at) * 1000000)::bigint = $8::bigint
  AND r.expires_at <= clock_timestamp()

-- name: cas-insert
-- $1 key, $2 owner, $3 note, $4 ttl, $5 bucket. The statement does not lock the floor: see cas-made.
INSERT INTO rowlock (key, owner, note, token, acquired_at, expires_at, placement)
SELECT $1, $2, $3, greatest(f.floor, @era) + 1, clock_timestamp(),
  clock_timestamp() + $4::bigint * interval '1 microsecond', @placement
FROM rowlock_floor AS f WHERE f.bucket = $5::int AND f.floor < @last_token - 1
ON CONFLICT (key) DO NOTHING

-- name: cas-made
-- $1 bucket, $2 key: the row that this transaction has made, and the floor as it is by now
SELECT r.token, f.floor FROM rowlock AS r, rowlock_floor AS f
  WHERE f.bucket = $1::int AND r.key = $2

-- name: cas-raise
-- $1 token, $2 key: the row that this transaction has made
UPDATE rowlock SET token = greatest($1::bigint - 1, @era) + 1 WHERE key = $2

-- name: cas-renew
-- $1 JSON array of {k, o, t, d}: hexadecimal key and owner, token, ttl
UPDATE rowlock AS r SET expires_at = clock_timestamp() + w.d * interval '1 microsecond'
FROM json_to_recordset($1::json) AS w (k text, o text, t bigint, d bigint)
WHERE r.key = decode(w.k, 'hex') AND r.owner = decode(w.o, 'hex') AND r.token = w.t
  AND r.placement = @placement
  AND r.expires_at > clock_timestamp()

-- name: cas-renew-look
-- $1 JSON array as for cas-renew: the rows that still name this owner and token, and the µs left of
-- their leases
SELECT w.n, CASE WHEN isfinite(r.expires_at)
         THEN (extract(epoch FROM r.expires_at - clock_timestamp()) * 1000000)::bigint END AS remaining,
       (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS clock
FROM json_array_elements($1::json) WITH ORDINALITY AS w (j, n)
  JOIN rowlock AS r ON r.key = decode(w.j ->> 'k', 'hex')
WHERE r.owner = decode(w.j ->> 'o', 'hex') AND r.token = (w.j ->> 't')::bigint AND r.placement = @placement

-- name: cas-fence
-- $1 key, $2 owner, $3 token. A write that changes nothing locks the row too.
UPDATE rowlock SET token = token WHERE key = $1 AND owner = $2 AND token = $3 AND placement = @placement

-- name: cas-floor
-- $1 bucket
SELECT floor FROM rowlock_floor WHERE bucket = $1::int

-- name: cas-dead
-- $1 keys as an array, $2 retention: the highest token of those that are dead, or -1
SELECT coalesce(max(token), -1) FROM rowlock
WHERE key = ANY ($1::bytea[]) AND placement = @placement AND token BETWEEN 0 AND @last_token - 1
  AND expires_at <= clock_timestamp() - $2::bigint * interval '1 microsecond'

-- name: cas-reap
-- $1 keys as an array, $2 retention, $3 floor
DELETE FROM rowlock
WHERE key = ANY ($1::bytea[]) AND placement = @placement
  AND expires_at <= clock_timestamp() - $2::bigint * interval '1 microsecond'
  AND token <= $3

-- name: cas-drop-dead
-- $1 key, $2 waiter, $3 retention
DELETE FROM rowlock_queue
WHERE key = $1 AND waiter = $2
  AND alive_until <= clock_timestamp() - $3::bigint * interval '1 microsecond'
