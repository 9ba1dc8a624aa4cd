-- A lock in the caller's own transaction, for SQLite. It has no holds, because a transaction that
-- stayed open would keep every other writer out.

-- name: write-lock
-- A write that changes nothing takes the file's write lock, also in a transaction that was begun
-- DEFERRED.
UPDATE rowlock_hold SET made_at = made_at WHERE key = x''
