-- name: keys
-- Comparisons of the columns alone, so that the range is sought, and a row that is free is passed over
-- at the least cost.
SELECT key FROM rowlock WHERE key > $1 AND key <= $2 ORDER BY key LIMIT $3;

-- name: held-keys
SELECT key FROM rowlock WHERE key > $1 AND key <= $2
  AND owner IS NOT NULL
  AND ((expires_at > clock_timestamp()) IS NOT FALSE OR expires_at = '-infinity')
ORDER BY key LIMIT $3;
