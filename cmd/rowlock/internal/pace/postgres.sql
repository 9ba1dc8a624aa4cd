-- The least that a lease in a row needs: who, until when and a growing token, if it is free; and no
-- owner, if it is still ours.

-- name: make
INSERT INTO rowlock (key, token, acquired_at, expires_at)
VALUES ($1, 0, clock_timestamp(), clock_timestamp());

-- name: take
UPDATE rowlock SET owner = $1, token = token + 1,
  expires_at = clock_timestamp() + interval '30 seconds'
WHERE key = $2 AND (owner IS NULL OR expires_at <= clock_timestamp());

-- name: clear
UPDATE rowlock SET owner = NULL WHERE key = $1 AND owner = $2;
