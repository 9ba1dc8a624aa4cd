-- The trace: what became of keys. No lock reads it or waits for it.

-- name: trace-write
-- age in ms, id, key, event, token, owner, note, number, detail
INSERT INTO rowlock_trace (at, id, key, event, token, owner, note, number, detail)
VALUES (CAST(unixepoch('subsec') * 1000 AS INTEGER) - ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: trace-list
-- prefix's length, prefix, time in ms, the same, id: those before; limit. substr of a key of no bytes
-- is NULL.
SELECT at * 1000, id, key, event, token, owner, substr(note, 1, 384), number, substr(detail, 1, 255) FROM rowlock_trace
WHERE ifnull(substr(key, 1, ?), x'') = ? AND at <= ? AND (at < ? OR id < ?)
ORDER BY at DESC, id DESC LIMIT ?

-- name: trace-list-key
-- key, time in ms, the same, id: those before; limit
SELECT at * 1000, id, key, event, token, owner, substr(note, 1, 384), number, substr(detail, 1, 255) FROM rowlock_trace
WHERE key = ? AND at <= ? AND (at < ? OR id < ?)
ORDER BY at DESC, id DESC LIMIT ?

-- name: trace-sweep
-- retention in µs, rounded up to ms, the most rows to remove: the oldest
DELETE FROM rowlock_trace WHERE (at, id) IN (
  SELECT at, id FROM rowlock_trace WHERE at < CAST(unixepoch('subsec') * 1000 AS INTEGER) - (? + 999) / 1000
  ORDER BY at, id LIMIT ?)
