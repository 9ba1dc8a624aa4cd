-- Statements around a migration that are the same in every dialect, but for @now and @never.

-- name: guard-leases
-- The row of a key that readers hold never expires: see guard-members.
SELECT count(*) FROM rowlock WHERE owner IS NOT NULL AND expires_at > @now AND expires_at < @never

-- name: guard-keys
-- -1 are rows of forupdate, whose locks Down waits for. The last token would exhaust a floor.
SELECT count(*) FROM rowlock
WHERE placement NOT IN (0, -1) OR token NOT BETWEEN 0 AND 9223372036853727230

-- name: guard-once
SELECT count(*) FROM rowlock_once WHERE expires_at > @now

-- name: guard-latches
SELECT count(*) FROM rowlock_latch WHERE expires_at > @now

-- name: waiters
SELECT count(*) FROM rowlock_queue WHERE alive_until > @now

-- name: forget-version
-- It goes first, because MySQL undoes no DROP: a version never says more than there is.
DELETE FROM rowlock_meta
WHERE substr(name, 1, 14) = 'schema_version' OR substr(name, 1, 15) = 'compatible_from'

