-- What a program in any language needs to lock keys of rowlock on MySQL and MariaDB. docs/protocol.md says
-- when to run each, and what must never be done. These are the statements that rowlock itself runs.
-- Written by go generate ./dialect.
--
-- :name is a parameter: put your driver's placeholder there. A prefix of the tables goes before
-- each "rowlock".

-- name: session
-- First on each connection.
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;
SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', autocommit = 1,
  innodb_lock_wait_timeout = 1, completion_type = 'NO_CHAIN', sql_safe_updates = 0,
  timestamp = DEFAULT

-- name: schema-version
SELECT v.value, f.value, v.name FROM rowlock_meta AS v LEFT JOIN rowlock_meta AS f
  ON f.name = REPLACE(v.name, 'schema_version', 'compatible_from') WHERE substr(v.name, 1, 14) = 'schema_version' ORDER BY v.name LIMIT 100

-- name: look
SELECT CASE WHEN placement <> 0 THEN 4
            WHEN owner = :owner AND expires_at > UTC_TIMESTAMP(6) THEN 7
            WHEN owner IS NOT NULL AND expires_at > UTC_TIMESTAMP(6) THEN 0
            WHEN token NOT BETWEEN 0 AND 9223372036853727230 THEN 3
            WHEN owner IS NOT NULL THEN 5
            ELSE 2 END AS state,
       token, LEFT(note, 384), TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at) AS remaining
FROM rowlock WHERE `key` = :key

-- name: make
INSERT INTO rowlock (`key`, owner, note, token, acquired_at, expires_at, placement)
SELECT :key, :owner, :note, LAST_INSERT_ID(GREATEST(f.floor, (SELECT max(start) FROM rowlock_meta)) + 1), UTC_TIMESTAMP(6),
  UTC_TIMESTAMP(6) + INTERVAL :ttl_us MICROSECOND, 0
FROM rowlock_floor AS f WHERE f.bucket = :bucket AND f.floor < 9223372036853727231
  AND NOT EXISTS (SELECT 1 FROM rowlock AS r WHERE r.`key` = :key)
LOCK IN SHARE MODE

-- name: take
UPDATE rowlock SET token = LAST_INSERT_ID(GREATEST(token, (SELECT max(start) FROM rowlock_meta)) + 1), owner = :owner, note = :note,
  acquired_at = UTC_TIMESTAMP(6), expires_at = UTC_TIMESTAMP(6) + INTERVAL :ttl_us MICROSECOND
WHERE `key` = (SELECT k FROM (SELECT `key` AS k FROM rowlock
  WHERE `key` = :key AND placement = 0 AND (owner IS NULL OR expires_at <= UTC_TIMESTAMP(6))
    AND token BETWEEN 0 AND 9223372036853727230
  FOR UPDATE SKIP LOCKED) AS d)

-- name: renew
UPDATE rowlock SET expires_at = GREATEST(expires_at + INTERVAL 1 MICROSECOND,
  UTC_TIMESTAMP(6) + INTERVAL :ttl_us MICROSECOND)
WHERE `key` = :key AND owner = :owner AND token = :token AND placement = 0 AND expires_at > UTC_TIMESTAMP(6)

-- name: fence
UPDATE rowlock SET fenced_by = CONNECTION_ID(), fenced_token = token,
  acquired_at = acquired_at + INTERVAL 1 MICROSECOND
WHERE `key` = :key AND owner = :owner AND token = :token AND placement = 0

-- name: release
UPDATE rowlock SET owner = NULL, expires_at = UTC_TIMESTAMP(6),
  note = ''
WHERE `key` = :key AND owner = :owner AND :token IN (token, 0) AND placement = 0
