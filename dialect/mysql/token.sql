-- For package tokenfence: tokens in a table of the application's, which need not be in the database
-- of the locks. @table, @key and @token stand for its quoted names. The parameters have the same
-- order in every dialect.

-- name: token-raise
-- token, key, token. It changes nothing if the row has a higher token.
UPDATE @table SET @token = ? WHERE @table.@key = ? AND @table.@token <= ?

-- name: token-make
-- key, token, token. It makes a missing row, and never lowers a token. A changed row counts as 2,
-- and an unchanged one as 0 or 1, so that only token-seen tells the outcome.
INSERT INTO @table (@key, @token) VALUES (?, ?)
ON DUPLICATE KEY UPDATE @token = GREATEST(@token, ?)

-- name: token-seen
-- key: the token, and how many rows have the key. It follows each token-raise and token-make,
-- because the driver may count an equal token as no change, a lax sql_mode cuts off a token that
-- does not fit its column, and token-make adds a row if the key is not unique. The locking read
-- returns the row as it is committed now, or as this transaction has written it.
SELECT MAX(@table.@token), COUNT(*) FROM @table WHERE @table.@key = ?
LOCK IN SHARE MODE
