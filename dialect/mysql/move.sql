-- Keys that move to another home and back. The row says where: every statement carries the home that it is of.

-- name: depart
-- home, next token, key, owner, token. Without a look at the clock, as a fence: an expired lease that the row still names is nobody else's.
UPDATE rowlock SET home = ?, token = ?, owner = NULL, note = '', expires_at = UTC_TIMESTAMP(6)
WHERE `key` = ? AND owner = ? AND token = ? AND home = @home

-- name: return
-- next token, key, home, the first token of its epoch and the first of the next. Tokens within the epoch are those fenced with.
UPDATE rowlock SET home = @home, token = ?, owner = NULL, note = '', expires_at = UTC_TIMESTAMP(6)
WHERE `key` = ? AND home = ? AND token >= ? AND token < ?

-- name: recall
-- key, home, the first token of the epoch. Assignments are made from left to right, and each sees those before it: the token comes last.
INSERT INTO rowlock (`key`, home, token, note, acquired_at, expires_at) VALUES (?, ?, ?, '', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE home = IF(token < VALUES(token), VALUES(home), home), owner = IF(token < VALUES(token), NULL, owner),
  note = IF(token < VALUES(token), '', note), expires_at = IF(token < VALUES(token), VALUES(expires_at), expires_at),
  token = GREATEST(token, VALUES(token))

-- name: fence-at
-- key, home, the first token of the epoch, token
SELECT token FROM rowlock WHERE `key` = ? AND home = ? AND token BETWEEN ? AND ? FOR UPDATE

-- name: fence-at-token
-- token, key, of a row that fence-at has locked
UPDATE rowlock SET token = ? WHERE `key` = ?
