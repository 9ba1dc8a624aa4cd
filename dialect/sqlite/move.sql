-- Keys that move to another home and back. The row says where: every statement carries the home that it is of.

-- name: depart
-- home, next token, key, owner, token. Without a look at the clock, as a fence: an expired lease that the row still names is nobody else's.
UPDATE rowlock SET home = ?, token = ?, owner = NULL, note = '', expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE key = ? AND owner = ? AND token = ? AND home = @home

-- name: return
-- next token, key, home, the first token of its epoch and the first of the next. Tokens within the epoch are those fenced with.
UPDATE rowlock SET home = @home, token = ?, owner = NULL, note = '', expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE key = ? AND home = ? AND token >= ? AND token < ?

-- name: recall
-- key, home, the first token of the epoch, bucket. A row that is made here begins above its floor, as any other. One that is made
-- elsewhere is of that epoch exactly, and is not made if the floor is above it: this may be a late call, and the row may have come back
-- since, and been swept.
INSERT INTO rowlock (key, home, token, note, acquired_at, expires_at)
SELECT ?1, ?2, CASE WHEN ?2 = @home THEN max(floor, ?3) ELSE ?3 END, '',
       CAST(unixepoch('subsec') * 1000 AS INTEGER), CAST(unixepoch('subsec') * 1000 AS INTEGER)
FROM rowlock_floor WHERE bucket = ?4 AND (?2 = @home OR floor < ?3 OR EXISTS (SELECT 1 FROM rowlock WHERE key = ?1))
ON CONFLICT (key) DO UPDATE SET home = excluded.home, token = ?3, owner = NULL, note = '', expires_at = excluded.expires_at
WHERE token < ?3

-- name: confirm-home
-- key, home, the first token of its epoch and of the next. As confirm: acquired_at changes, because the expiry of a key that is away
-- is when it left.
UPDATE rowlock SET acquired_at = acquired_at + 1 WHERE key = ? AND home = ? AND token >= ? AND token < ?

-- name: fence-at
-- key, home, the first token of the epoch, token. A write that changes nothing: see fence.
UPDATE rowlock SET token = token WHERE key = ? AND home = ? AND token BETWEEN ? AND ? RETURNING token

-- name: fence-at-token
-- token, key, of a row that fence-at has locked
UPDATE rowlock SET token = ? WHERE key = ?
