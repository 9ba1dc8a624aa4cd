-- Leases that an operator takes away. A transaction begins with the file's write lock.

-- name: force-lock
-- key. An UPDATE that changes nothing, because it begins the transaction with the write lock.
UPDATE rowlock SET placement = placement WHERE key = ? AND placement = @placement AND owner IS NOT NULL
RETURNING owner, token, substr(note, 1, 384)

-- name: force-placement
-- key: whether the row, if there is one, has another placement
SELECT count(*) FROM rowlock WHERE key = ? AND placement <> @placement

-- name: force-end
-- next token, key, owner, token, of a row that force-lock has locked. No client may be granted the
-- last token, so that it is not raised beyond that.
UPDATE rowlock SET owner = NULL, note = '', token = min(?, @last_token),
  expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE key = ? AND owner = ? AND token = ? AND placement = @placement

-- name: force-lock-bad
-- key. As force-lock, whatever the row says.
UPDATE rowlock SET placement = placement WHERE key = ? RETURNING key

-- name: force-repair
-- token, key, of a row that has values which rowlock does not write. It becomes a free one.
UPDATE rowlock SET owner = NULL, note = '', token = ?, acquired_at = CAST(unixepoch('subsec') * 1000 AS INTEGER),
  expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER), placement = @placement
WHERE key = ? AND (placement = @placement OR placement IS NULL OR placement < -1 OR typeof(placement) <> 'integer')

-- name: force-tickets
-- key. It removes what has no heartbeat that could end: no process writes one for a day.
DELETE FROM rowlock_queue
WHERE key = ? AND (typeof(alive_until) <> 'integer'
  OR alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER) + 86400000
  OR typeof(waiter) <> 'blob' OR length(waiter) <> 16)

-- name: force-record
-- id, operator, reason, token asked for, owner, token, note, key. A tab ends the operator, who is
-- what a caller claims. Other databases add the session's user.
INSERT INTO rowlock_forced (key, at, id, actor, reason, asked, owner, token, note, raised)
SELECT r.key, CAST(unixepoch('subsec') * 1000 AS INTEGER), ?, ? || char(9), ?, ?, ?, ?, ?, r.token
FROM rowlock AS r WHERE r.key = ?

-- name: force-find
-- key, id
SELECT key, at * 1000, id, substr(actor, 1, 384), substr(reason, 1, 1000), asked, owner, token, substr(note, 1, 384), raised
FROM rowlock_forced WHERE key = ? AND id = ?

-- name: force-confirm
-- key. A repetition has found the record of an earlier try whose commit may not have been
-- acknowledged, and a read proves nothing about durability. This commit comes after that one.
UPDATE rowlock SET acquired_at = acquired_at + 1 WHERE key = ?

-- name: force-list
-- prefix's length, prefix, time in µs, raised, id: those before; limit. Within a millisecond, raised tells the later.
SELECT key, at * 1000, id, substr(actor, 1, 384), substr(reason, 1, 1000), asked, owner, token, substr(note, 1, 384), raised FROM rowlock_forced
WHERE substr(key, 1, ?) = ? AND (at * 1000, raised, id) < (?, ?, ?)
ORDER BY at DESC, raised DESC, id DESC LIMIT ?

-- name: force-list-key
-- key, time in µs, raised, id: those before; limit
SELECT key, at * 1000, id, substr(actor, 1, 384), substr(reason, 1, 1000), asked, owner, token, substr(note, 1, 384), raised FROM rowlock_forced
WHERE key = ? AND (at * 1000, raised, id) < (?, ?, ?)
ORDER BY at DESC, raised DESC, id DESC LIMIT ?
