-- The limits of semaphores. What is granted is counted in a generation of the limit. A statement
-- that grants locks the limit to be read until it has committed, and grants nothing if the
-- generation has changed. So a count that was read in a generation misses no grant of an earlier
-- one.

-- name: limit-look
-- name
SELECT slots, peak, generation FROM rowlock_limit WHERE name = $1

-- name: limit-make
-- name, slots, peak
INSERT INTO rowlock_limit (name, slots, peak, generation) VALUES ($1, $2, $3, 1)
ON CONFLICT (name) DO NOTHING

-- name: limit-resize
-- slots, slots, name
UPDATE rowlock_limit SET slots = $1, peak = greatest(peak, $2), generation = generation + 1
WHERE name = $3

-- name: apply-any-within
-- As apply-any; $6 the limit's name, $7 its generation. A limit that is being changed is no limit:
-- then the statement takes nothing.
WITH limited AS (
  SELECT 1 FROM rowlock_limit WHERE name = $6 AND generation = $7 FOR SHARE SKIP LOCKED
), want AS (
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
    AND EXISTS (SELECT 1 FROM limited)
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

-- name: apply-within
-- As apply, of hand-overs only; $7 the limit's name, $8 its generation. It answers with what it has
-- made.
WITH limited AS (
  SELECT 1 FROM rowlock_limit WHERE name = $7 AND generation = $8 FOR SHARE SKIP LOCKED
), want AS (
  SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::bytea[],
    $5::text[], $6::bigint[])
    WITH ORDINALITY AS w (key, was, token, owner, note, ttl, n)
), found AS (
  SELECT w.*, r.ctid AS place FROM want AS w JOIN rowlock AS r ON r.key = w.key
  WHERE r.placement = @placement AND r.token BETWEEN 0 AND @last_token - 1 AND r.owner = w.was AND r.token = w.token
    AND EXISTS (SELECT 1 FROM limited)
  ORDER BY r.key FOR NO KEY UPDATE OF r SKIP LOCKED
), done AS (
  UPDATE rowlock AS r
  SET owner = f.owner, note = f.note, token = greatest(r.token, @era) + 1, acquired_at = clock_timestamp(),
      expires_at = clock_timestamp() + f.ttl * interval '1 microsecond'
  FROM found AS f WHERE r.ctid = f.place AND r.key = f.key
  RETURNING f.n, r.token
)
SELECT n, 1 AS outcome, token, false AS awaited, '' AS note, 0::bigint AS remaining FROM done
