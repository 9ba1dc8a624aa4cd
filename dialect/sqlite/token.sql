-- For package tokenfence: tokens in a table of the application's, which need not be in the database
-- of the locks. @table, @key and @token stand for its quoted names. The parameters have the same
-- order in every dialect. SQLite takes an unknown column for a string if no table stands before it.

-- name: token-raise
-- token, key, token. It changes nothing if the row has a higher token.
UPDATE @table SET @token = ?1 WHERE @table.@key = ?2 AND @table.@token <= ?3

-- name: token-make
-- key, token, token. It makes a missing row, and otherwise does what token-raise does.
INSERT INTO @table AS t (@key, @token) VALUES (?1, ?2)
ON CONFLICT (@key) DO UPDATE SET @token = ?3 WHERE t.@token <= ?3

-- name: token-seen
-- key: the token by which token-raise or token-make was refused, and how many rows have the key
SELECT MAX(@table.@token), COUNT(*) FROM @table WHERE @table.@key = ?1
