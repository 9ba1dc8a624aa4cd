-- What a program in any language needs to lock keys of rowlock on Postgres. docs/protocol.md says
-- when to run each, and what must never be done. These are the statements that rowlock itself runs.
-- Written by go generate ./dialect.
--
-- :name is a parameter: put your driver's placeholder there. A prefix of the tables goes before
-- each "rowlock".

-- name: session
-- First on each connection.
SELECT set_config('default_transaction_isolation', 'read committed', false),
  set_config('lock_timeout', '1000', false), set_config('statement_timeout', '5000', false),
  set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'
    ELSE current_setting('synchronous_commit') END, false)

-- name: schema-version
SELECT v.value, f.value, v.name FROM rowlock_meta AS v LEFT JOIN rowlock_meta AS f
  ON f.name = replace(v.name, 'schema_version', 'compatible_from') WHERE substr(v.name, 1, 14) = 'schema_version' ORDER BY v.name

-- name: look
SELECT CASE WHEN placement <> 0 THEN 4
            WHEN owner = :owner AND expires_at > clock_timestamp() THEN 7
            WHEN owner IS NOT NULL AND expires_at > clock_timestamp() THEN 0
            WHEN token NOT BETWEEN 0 AND 9223372036853727230 THEN 3
            WHEN owner IS NOT NULL THEN 5
            ELSE 2 END AS state,
       token, left(note, 384), CASE WHEN owner IS NULL THEN 0 WHEN isfinite(expires_at)
         THEN (extract(epoch FROM expires_at - clock_timestamp()) * 1000000)::bigint END
         AS remaining,
       owner, CASE WHEN owner IS NULL THEN 0 WHEN expires_at BETWEEN '0001-01-01' AND '9999-12-31'
         THEN (extract(epoch FROM expires_at) * 1000000)::bigint END AS expires
FROM rowlock WHERE key = :key

-- name: make
INSERT INTO rowlock AS r (key, owner, note, token, acquired_at, expires_at, placement)
SELECT :key, :owner, :note, greatest(f.floor, (SELECT max(start) FROM rowlock_meta)) + 1, clock_timestamp(),
  clock_timestamp() + :ttl_us::bigint * interval '1 microsecond', 0
FROM (SELECT floor FROM rowlock_floor WHERE bucket = :bucket::int FOR SHARE) AS f
WHERE NOT EXISTS (SELECT 1 FROM rowlock WHERE key = :key) AND f.floor < 9223372036853727231
ON CONFLICT (key) DO NOTHING
RETURNING r.token

-- name: take
WITH expired AS (
  SELECT key FROM rowlock
  WHERE key = :key AND placement = 0 AND owner IS NOT NULL AND expires_at <= clock_timestamp()
  FOR NO KEY UPDATE SKIP LOCKED
), taken AS (
  UPDATE rowlock AS r
  SET owner = :owner, note = :note, token = greatest(r.token, (SELECT max(start) FROM rowlock_meta)) + 1, acquired_at = clock_timestamp(),
      expires_at = clock_timestamp() + :ttl_us::bigint * interval '1 microsecond'
  WHERE r.key = :key AND r.placement = 0 AND r.token BETWEEN 0 AND 9223372036853727230
    AND (r.owner IS NULL OR r.key IN (SELECT key FROM expired))
  RETURNING r.token
), made AS (
  INSERT INTO rowlock AS r (key, owner, note, token, acquired_at, expires_at, placement)
  SELECT :key, :owner, :note, greatest(f.floor, (SELECT max(start) FROM rowlock_meta)) + 1, clock_timestamp(),
    clock_timestamp() + :ttl_us::bigint * interval '1 microsecond', 0
  FROM (SELECT floor FROM rowlock_floor WHERE bucket = :bucket::int FOR SHARE) AS f
  WHERE NOT EXISTS (SELECT 1 FROM rowlock WHERE key = :key) AND f.floor < 9223372036853727231
  ON CONFLICT (key) DO NOTHING
  RETURNING r.token
)
SELECT 1 AS state, token, '' AS note, 0::bigint AS remaining FROM taken
UNION ALL
SELECT 1, token, '', 0 FROM made
UNION ALL
SELECT CASE WHEN r.placement <> 0 THEN 4
            WHEN r.owner = :owner AND r.expires_at > clock_timestamp() THEN 7
            WHEN r.owner IS NOT NULL AND r.expires_at > clock_timestamp() THEN 0
            WHEN r.token NOT BETWEEN 0 AND 9223372036853727230 THEN 3
            WHEN r.owner IS NOT NULL THEN 5
            ELSE 2 END,
       r.token, left(r.note, 384), CASE WHEN isfinite(r.expires_at)
         THEN (extract(epoch FROM r.expires_at - clock_timestamp()) * 1000000)::bigint END
FROM rowlock AS r WHERE r.key = :key AND NOT EXISTS (SELECT 1 FROM taken)

-- name: renew
UPDATE rowlock SET expires_at = greatest(expires_at + interval '1 microsecond',
  clock_timestamp() + :ttl_us::bigint * interval '1 microsecond')
WHERE key = :key AND owner = :owner AND token = :token AND placement = 0 AND expires_at > clock_timestamp()

-- name: fence
UPDATE rowlock SET expires_at = CASE WHEN :extend_us::bigint > 0 AND expires_at > clock_timestamp()
  THEN greatest(expires_at, clock_timestamp() + :extend_us::bigint * interval '1 microsecond')
    ELSE expires_at END
WHERE key = :key AND owner = :owner AND token = :token AND placement = 0
RETURNING (CASE WHEN xmin::text::bigint = txid_current() & 4294967295 THEN '1'
  WHEN (SELECT CASE WHEN past < 2147483648 THEN txid_status(txid_current() + past) END
    FROM (SELECT (before.xmin::text::bigint - txid_current()) & 4294967295 AS past
      FROM rowlock AS before WHERE before.key = :key) AS x) = 'in progress' THEN '1'
  ELSE 'a fence inside a savepoint' END)::int

-- name: release
UPDATE rowlock SET owner = NULL, note = '', expires_at = clock_timestamp()
WHERE key = :key AND owner = :owner AND :token::bigint IN (token, 0) AND placement = 0
RETURNING EXISTS (SELECT 1 FROM rowlock_queue AS q
  WHERE q.key = :key AND q.waiter <> :process AND q.alive_until > clock_timestamp())
