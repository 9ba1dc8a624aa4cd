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
-- key: the token, how many rows have the key, and whether the column is exact. It follows each
-- token-raise and token-make, because the driver may count an equal token as no change, a lax
-- sql_mode cuts off a token that does not fit its column, token-make adds a row if the key is not
-- unique, and a DOUBLE or VARCHAR compares two tokens as equal, or "9" as above "10". No function
-- tells the type of a column. But with a DOUBLE and with text 0.1 + 0.2 is not 0.3, as it is with
-- integers, and numbers have the coercibility of 0: 5, and 7 on MariaDB 11.8. The locking read
-- returns the row as it is committed now, or as this transaction has written it.
SELECT MAX(@table.@token), COUNT(*),
  COALESCE(MIN(@table.@token * 0 + 0.1 + 0.2 = 0.3 AND COERCIBILITY(@table.@token) = COERCIBILITY(0)), 1)
FROM @table WHERE @table.@key = ?
LOCK IN SHARE MODE
