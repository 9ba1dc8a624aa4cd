-- What a program in any language needs to lock keys of rowlock on SQLite. docs/protocol.md says
-- when to run each, and what must never be done. These are the statements that rowlock itself runs.
-- Written by go generate ./dialect.
--
-- :name is a parameter: put your driver's placeholder there. A prefix of the tables goes before
-- each "rowlock".

-- name: session
-- First on each connection.
PRAGMA busy_timeout = 1000;
PRAGMA synchronous = FULL

-- name: schema-version
SELECT v.value, f.value, v.name FROM rowlock_meta AS v LEFT JOIN rowlock_meta AS f
  ON f.name = replace(v.name, 'schema_version', 'compatible_from') WHERE substr(v.name, 1, 14) = 'schema_version' ORDER BY v.name

-- name: look
SELECT CASE WHEN placement <> 0 THEN 4
            WHEN owner = :owner AND expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER) THEN 7
            WHEN owner IS NOT NULL AND expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)
              THEN 0
            WHEN token NOT BETWEEN 0 AND 9223372036853727230 THEN 3
            WHEN owner IS NOT NULL THEN 5
            ELSE 2 END AS state,
       token, substr(note, 1, 384), (expires_at - CAST(unixepoch('subsec') * 1000 AS INTEGER)) * 1000 AS remaining
FROM rowlock WHERE key = :key

-- name: make
INSERT INTO rowlock (key, owner, note, token, acquired_at, expires_at, placement)
SELECT :key, :owner, :note, max(floor, (SELECT max(start) FROM rowlock_meta)) + 1, CAST(unixepoch('subsec') * 1000 AS INTEGER),
  CAST(unixepoch('subsec') * 1000 AS INTEGER) + :ttl_ms, 0
FROM rowlock_floor WHERE bucket = :bucket AND floor < 9223372036853727231
ON CONFLICT (key) DO NOTHING
RETURNING token

-- name: take
UPDATE rowlock SET token = max(token, (SELECT max(start) FROM rowlock_meta)) + 1,
  acquired_at = CAST(unixepoch('subsec') * 1000 AS INTEGER),
  expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) + :ttl_ms, owner = :owner, note = :note
WHERE key = :key AND placement = 0 AND (owner IS NULL
  OR expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER))
  AND token BETWEEN 0 AND 9223372036853727230
RETURNING token

-- name: renew
UPDATE rowlock SET expires_at = max(expires_at + 1,
  CAST(unixepoch('subsec') * 1000 AS INTEGER) + (:ttl_us + 999) / 1000)
WHERE key = :key AND owner = :owner AND token = :token AND placement = 0
  AND expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)

-- name: fence
UPDATE rowlock SET expires_at = iif(:extend_us > 0 AND expires_at
  > CAST(unixepoch('subsec') * 1000 AS INTEGER),
  max(expires_at, CAST(unixepoch('subsec') * 1000 AS INTEGER) + (:extend_us + 999) / 1000), expires_at)
WHERE key = :key AND owner = :owner AND token = :token AND placement = 0 RETURNING 1

-- name: release
UPDATE rowlock SET owner = NULL, note = '', expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE key = :key AND owner = :owner AND :token IN (token, 0) AND placement = 0
