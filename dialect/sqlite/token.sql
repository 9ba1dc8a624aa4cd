-- For package tokenfence: tokens in a table of the application's, which need not be in the database
-- of the locks. @table, @key and @token stand for its quoted names. The parameters have the same
-- order in every dialect. SQLite takes an unknown column for a string if no table stands before it.
-- A column with the affinity REAL or TEXT changes what is written to it: two tokens can be equal then,
-- and text has '9' above '10'.

-- name: token-raise
-- token, key, token. It changes nothing if the row has a higher token, or what is no integer.
UPDATE @table SET @token = ?1
WHERE @table.@key = ?2 AND @table.@token <= ?3 AND typeof(@table.@token) = 'integer'

-- name: token-make
-- key, token, token. It makes a missing row, and otherwise does what token-raise does.
INSERT INTO @table AS t (@key, @token) VALUES (?1, ?2)
ON CONFLICT (@key) DO UPDATE SET @token = ?3 WHERE t.@token <= ?3 AND typeof(t.@token) = 'integer'

-- name: token-seen
-- key: the token, how many rows have the key, and whether what they have are integers. It follows
-- each token-raise and token-make, because only what was stored shows what the column makes of it.
SELECT MAX(@table.@token), COUNT(*),
  coalesce(min(typeof(@table.@token) IN ('integer', 'null')), 1)
FROM @table WHERE @table.@key = ?1
