-- name: fence
-- If the row is another holder's, abs() overflows, and SQLite answers with "integer overflow": roll back. The count
-- keeps SQLite from computing it beforehand. In a transaction that was begun without IMMEDIATE this read is safe too:
-- a later write fails if another process has written since.
SELECT CASE WHEN EXISTS (SELECT 1 FROM rowlock WHERE key = x'@key' AND owner = x'@owner'
    AND token = @token AND placement = 0) THEN 'held'
  ELSE abs(-9223372036854775807 - min(1, (SELECT count(*) FROM rowlock_meta))) END AS lock_is;

-- name: extend
-- An extended lease counts from the commit on.
UPDATE rowlock SET expires_at = max(expires_at,
    CAST(unixepoch('subsec') * 1000 AS INTEGER) + @ttl / 1000)
WHERE key = x'@key' AND owner = x'@owner' AND token = @token AND placement = 0
  AND expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER);
