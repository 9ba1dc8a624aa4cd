-- The least that a lease in a row needs: who, until when and a growing token, if it is free; and no
-- owner, if it is still ours.

-- name: make
INSERT INTO rowlock (key, token, acquired_at, expires_at)
VALUES (?, 0, unixepoch() * 1000, unixepoch() * 1000);

-- name: take
UPDATE rowlock SET owner = ?, token = token + 1,
  expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) + 30000
WHERE key = ? AND (owner IS NULL OR expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER));

-- name: clear
UPDATE rowlock SET owner = NULL WHERE key = ? AND owner = ?;
