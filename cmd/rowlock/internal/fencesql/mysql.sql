-- name: fence
-- It locks the row until the transaction ends. If the row is another holder's, it reads a subquery
-- with two rows where one is allowed, and the server answers with error 1242: roll back.
SELECT CASE WHEN (SELECT count(*) FROM rowlock WHERE `key` = x'@key' AND owner = x'@owner'
    AND token = @token AND placement = 0 FOR UPDATE) = 1 THEN 'held'
  ELSE (SELECT concat('@name: fenced: roll back', name) FROM rowlock_meta) END AS lock_is;

-- name: extend
-- An extended lease counts from the commit on. Protected tables look for the mark.
UPDATE rowlock SET fenced_by = CONNECTION_ID(), fenced_token = token, expires_at = greatest(expires_at, UTC_TIMESTAMP(6) + INTERVAL @ttl MICROSECOND)
WHERE `key` = x'@key' AND owner = x'@owner' AND token = @token AND placement = 0
  AND expires_at > UTC_TIMESTAMP(6);
