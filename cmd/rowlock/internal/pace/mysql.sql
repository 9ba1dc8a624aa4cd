-- The least that a lease in a row needs: who, until when and a growing token, if it is free; and no
-- owner, if it is still ours.

-- name: make
INSERT INTO rowlock (`key`, token, acquired_at, expires_at)
VALUES (?, 0, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6));

-- name: take
UPDATE rowlock SET owner = ?, token = token + 1,
  expires_at = UTC_TIMESTAMP(6) + INTERVAL 30 SECOND
WHERE `key` = ? AND (owner IS NULL OR expires_at <= UTC_TIMESTAMP(6));

-- name: clear
UPDATE rowlock SET owner = NULL WHERE `key` = ? AND owner = ?;
