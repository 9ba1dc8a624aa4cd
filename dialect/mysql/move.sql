-- Keys that move to another placement and back. The row names the placement, and every statement
-- carries the placement that it is of.

-- name: depart
-- placement, next token, key, owner, token. It reads no clock, as a fence: an expired lease that
-- the row still names belongs to no other client.
UPDATE rowlock SET placement = ?, token = ?, owner = NULL, note = '', expires_at = UTC_TIMESTAMP(6)
WHERE `key` = ? AND owner = ? AND token = ? AND placement = @placement

-- name: return
-- next token, key, placement, the first token of its epoch and the first of the next. Tokens within
-- the epoch are those of fences.
UPDATE rowlock SET placement = @placement, token = ?, owner = NULL, note = '', expires_at = UTC_TIMESTAMP(6)
WHERE `key` = ? AND placement = ? AND token >= ? AND token < ?

-- name: recall
-- key, placement, the first token of the epoch, bucket. A row made for this placement begins above its floor, as any
-- other, and so the statement share-locks its floor. A row made for another placement is of that epoch exactly. It is
-- not made if the floor is above the epoch, because a late call may come after the row has returned and been swept.
-- The server runs assignments from left to right, and each sees those before it, so the token comes last.
INSERT INTO rowlock (`key`, placement, token, note, acquired_at, expires_at)
SELECT p.k, p.h, IF(p.h = @placement, GREATEST(f.floor, p.t), p.t), '', UTC_TIMESTAMP(6),
  UTC_TIMESTAMP(6)
FROM (SELECT CAST(? AS BINARY) AS k, CAST(? AS SIGNED) AS h, CAST(? AS SIGNED) AS t)
  AS p STRAIGHT_JOIN rowlock_floor AS f FORCE INDEX (PRIMARY) ON f.bucket = ?
WHERE p.h = @placement OR f.floor < p.t OR (SELECT COUNT(*) FROM rowlock AS r FORCE INDEX (PRIMARY)
  WHERE r.`key` = p.k) = 1
/*M! LOCK IN SHARE MODE */ /*!80000 FOR SHARE OF f */
ON DUPLICATE KEY UPDATE placement = IF(rowlock.token < p.t, p.h, rowlock.placement),
  owner = IF(rowlock.token < p.t, NULL, rowlock.owner),
  note = IF(rowlock.token < p.t, '', rowlock.note),
    expires_at = IF(rowlock.token < p.t, UTC_TIMESTAMP(6), rowlock.expires_at),
  token = GREATEST(rowlock.token, p.t)

-- name: confirm-placement
-- key, placement, the first token of its epoch and of the next. As confirm, but acquired_at
-- changes, because the expiry of a key that is away is when it left.
UPDATE rowlock SET acquired_at = acquired_at + INTERVAL 1 MICROSECOND
  WHERE `key` = ? AND placement = ? AND token >= ? AND token < ?

-- name: fence-at
-- key, placement, the first token of the epoch, token
SELECT token FROM rowlock WHERE `key` = ? AND placement = ? AND token BETWEEN ? AND ? FOR UPDATE

-- name: fence-at-token
-- token, key, of a row that fence-at has locked
UPDATE rowlock SET token = ? WHERE `key` = ?
