-- For package tokenfence: tokens in a table of the application's, which need not be in the database
-- of the locks. @table, @key and @token stand for its quoted names. The parameters have the same
-- order in every dialect.
-- In a column of another type than integers two tokens can be equal, and text has '9' above '10'. So
-- each statement asks for the type, which it gets without a row, and changes nothing if it is another.
-- The sum has the type below a domain, and fails for what is no number.

-- name: token-raise
-- $1 token, $2 key, $3 token. It changes nothing if the row has a higher token.
UPDATE @table SET @token = $1::bigint WHERE @table.@key = $2 AND @table.@token <= $3::bigint
  AND pg_typeof((SELECT @table.@token + 0::smallint FROM @table LIMIT 0))
    IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype)

-- name: token-make
-- $1 key, $2 token, $3 token. It makes a missing row, and otherwise does what token-raise does.
INSERT INTO @table AS t (@key, @token) SELECT $1, $2::bigint
WHERE pg_typeof((SELECT @table.@token + 0::smallint FROM @table LIMIT 0))
    IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype)
ON CONFLICT (@key) DO UPDATE SET @token = $3::bigint WHERE t.@token <= $3::bigint

-- name: token-seen
-- $1 key: the token by which token-raise or token-make was refused, how many rows have the key, and
-- whether the column is one of integers. As text, the answer has the same type for every column.
SELECT MAX(@table.@token)::text, COUNT(*),
  pg_typeof((SELECT @table.@token + 0::smallint FROM @table LIMIT 0))
    IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype)
FROM @table WHERE @table.@key = $1
