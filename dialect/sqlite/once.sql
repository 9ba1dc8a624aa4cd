-- Effects by key, for SQLite. Only a transaction with the file's write lock can be in flight.

-- name: once-claim
-- tenant, key, fingerprint, how long to keep it in µs. No row: the key has one. Even then the
-- transaction has the write lock from here on, and reads the latest rows.
INSERT INTO rowlock_once (tenant, key, fingerprint, made_at, expires_at)
VALUES (?1, ?2, ?3, CAST(unixepoch('subsec') * 1000 AS INTEGER),
  CAST(unixepoch('subsec') * 1000 AS INTEGER) + (?4 + 999) / 1000)
ON CONFLICT (tenant, key) DO NOTHING
RETURNING 1 AS state

-- name: once-look
-- tenant, key. 5: the row has no expiry, so that nothing could take it.
SELECT CASE WHEN expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER) THEN 2
            WHEN expires_at IS NOT NULL THEN 3 ELSE 5 END
  AS state, fingerprint, result
FROM rowlock_once WHERE tenant = ?1 AND key = ?2

-- name: once-take
-- fingerprint, how long to keep it in µs, tenant, key
UPDATE rowlock_once
SET fingerprint = ?1, result = NULL, made_at = CAST(unixepoch('subsec') * 1000 AS INTEGER),
    expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) + (?2 + 999) / 1000
WHERE tenant = ?3 AND key = ?4 AND expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER)

-- name: once-store
-- result, tenant, key
UPDATE rowlock_once SET result = ?1 WHERE tenant = ?2 AND key = ?3

-- name: once-confirm
-- tenant, key. The row was read as committed, and a read proves nothing about durability: see
-- confirm. made_at has no index.
UPDATE rowlock_once SET made_at = made_at + 1 WHERE tenant = ?1 AND key = ?2

-- name: once-count
-- tenant, limit: how many rows the tenant has, up to the limit
SELECT count(*) FROM (SELECT 1 FROM rowlock_once WHERE tenant = ?1 LIMIT ?2) AS t

-- name: once-sweep
-- limit
DELETE FROM rowlock_once WHERE rowid IN (
  SELECT rowid FROM rowlock_once INDEXED BY rowlock_once_expiry
  WHERE expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER) ORDER BY expires_at LIMIT ?1)
