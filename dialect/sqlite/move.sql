-- Keys that move to another placement and back. The row names the placement, and every statement
-- carries the placement that it is of.

-- name: depart
-- placement, next token, key, owner, token. It reads no clock, as a fence: an expired lease that
-- the row still names belongs to no other client.
UPDATE rowlock SET placement = ?, token = ?, owner = NULL, note = '',
  expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE key = ? AND owner = ? AND token = ? AND placement = @placement

-- name: return
-- next token, key, placement, the first token of its epoch and the first of the next. Tokens within
-- the epoch are those of fences.
UPDATE rowlock SET placement = @placement, token = ?, owner = NULL, note = '',
  expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE key = ? AND placement = ? AND token >= ? AND token < ?

-- name: recall
-- key, placement, the first token of the epoch, bucket. A row made for this placement begins above its floor, as any
-- other. A row made for another placement is of that epoch exactly. It is not made if the floor is above the epoch,
-- because a late call may come after the row has returned and been swept.
INSERT INTO rowlock (key, placement, token, note, acquired_at, expires_at)
SELECT ?1, ?2, CASE WHEN ?2 = @placement THEN max(floor, ?3) ELSE ?3 END, '',
       CAST(unixepoch('subsec') * 1000 AS INTEGER), CAST(unixepoch('subsec') * 1000 AS INTEGER)
FROM rowlock_floor WHERE bucket = ?4 AND (?2 = @placement OR floor < ?3
  OR EXISTS (SELECT 1 FROM rowlock WHERE key = ?1))
ON CONFLICT (key) DO UPDATE
  SET placement = excluded.placement, token = ?3, owner = NULL, note = '', expires_at = excluded.expires_at
WHERE token < ?3

-- name: confirm-placement
-- key, placement, the first token of its epoch and of the next. As confirm, but acquired_at
-- changes, because the expiry of a key that is away is when it left.
UPDATE rowlock SET acquired_at = acquired_at + 1
  WHERE key = ? AND placement = ? AND token >= ? AND token < ?

-- name: fence-at
-- key, placement, the first token of the epoch, token. A write that changes nothing: see fence.
UPDATE rowlock SET token = token WHERE key = ? AND placement = ? AND token BETWEEN ? AND ?
  RETURNING token

-- name: fence-at-token
-- token, key, of a row that fence-at has locked
UPDATE rowlock SET token = ? WHERE key = ?
