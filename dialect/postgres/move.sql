-- Keys that move to another placement and back. The row names the placement, and every statement
-- carries the placement that it is of.

-- name: depart
-- placement, next token, key, owner, token. It reads no clock, as a fence: an expired lease that
-- the row still names belongs to no other client.
UPDATE rowlock SET placement = $1, token = $2, owner = NULL, note = '', expires_at = clock_timestamp()
WHERE key = $3 AND owner = $4 AND token = $5 AND placement = @placement

-- name: return
-- next token, key, placement, the first token of its epoch and the first of the next. Tokens within
-- the epoch are those of fences.
UPDATE rowlock SET placement = @placement, token = $1, owner = NULL, note = '', expires_at = clock_timestamp()
WHERE key = $2 AND placement = $3 AND token >= $4 AND token < $5

-- name: recall
-- $1 key, $2 placement, $3 the first token of the epoch, $4 bucket. A row made for this placement
-- begins above its floor, as any other, and so the statement share-locks its floor. A row made for
-- another placement is of that epoch exactly. It is not made if the floor is above the epoch,
-- because a late call may come after the row has returned and been swept.
INSERT INTO rowlock AS r (key, token, acquired_at, expires_at, placement)
SELECT $1, CASE WHEN $2::int = @placement THEN greatest(f.floor, $3::bigint) ELSE $3::bigint END,
  clock_timestamp(), clock_timestamp(), $2::int
FROM (SELECT floor FROM rowlock_floor WHERE bucket = $4::int FOR SHARE) AS f
WHERE $2::int = @placement OR f.floor < $3::bigint OR EXISTS (SELECT 1 FROM rowlock WHERE key = $1)
ON CONFLICT (key) DO UPDATE
  SET placement = $2::int, token = $3::bigint, owner = NULL, note = '',
  expires_at = clock_timestamp() WHERE r.token < $3::bigint

-- name: confirm-placement
-- $1 key, $2 placement, $3 the first token of its epoch and $4 of the next. As confirm, but
-- acquired_at changes, because the expiry of a key that is away is when it left.
UPDATE rowlock SET acquired_at = acquired_at + interval '1 microsecond'
  WHERE key = $1 AND placement = $2 AND token >= $3 AND token < $4

-- name: fence-at
-- $1 key, $2 placement, $3 the first token of the epoch, $4 token. It always writes, as every fence.
UPDATE rowlock SET token = $4 WHERE key = $1 AND placement = $2 AND token BETWEEN $3 AND $4 RETURNING token

-- name: fence-at-token
-- $1 token, $2 key, of a row that fence-at has locked
UPDATE rowlock SET token = $1 WHERE key = $2
