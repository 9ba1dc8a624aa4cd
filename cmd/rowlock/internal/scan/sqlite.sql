-- name: keys
-- Comparisons of the columns alone, so that the range is sought, and a row that is free is passed over
-- at the least cost.
SELECT key FROM rowlock WHERE key > ? AND key <= ? ORDER BY key LIMIT ?;

-- name: held-keys
SELECT key FROM rowlock WHERE key > ? AND key <= ?
  AND owner IS NOT NULL
  AND (expires_at > (SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER))) IS NOT FALSE
ORDER BY key LIMIT ?;
