-- The registrations of waiters, for SQLite. The section names are the same in every dialect.

-- name: register
-- process, note, how long in µs, keys as a JSON array. "WHERE true", because SQLite would otherwise
-- take the ON of the upsert for that of a join.
INSERT INTO rowlock_queue (key, waiter, note, alive_until)
SELECT unhex(j.value), p.waiter, p.note, CAST(unixepoch('subsec') * 1000 AS INTEGER) + p.ms
FROM (SELECT ? AS waiter, ? AS note, (? + 999) / 1000 AS ms) AS p, json_each(?) AS j WHERE true
ON CONFLICT (key, waiter) DO UPDATE SET note = excluded.note, alive_until = excluded.alive_until

-- name: unregister
-- keys as a JSON array, process
DELETE FROM rowlock_queue
  WHERE key IN (SELECT unhex(value) FROM json_each(?)) AND waiter = ? AND rank IS NULL

-- name: awaited
-- process, keys as a JSON array
SELECT EXISTS (SELECT 1 FROM rowlock_queue AS q
               WHERE q.key = unhex(j.value) AND q.waiter <> p.waiter
                 AND q.alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER)) AS awaited
FROM (SELECT ? AS waiter) AS p, json_each(?) AS j ORDER BY j.key

-- name: waiting
-- keys as a JSON array. It counts to 100, because beyond that it makes no difference.
SELECT (SELECT count(*) FROM (SELECT 1 FROM rowlock_queue AS q
        WHERE q.key = unhex(j.value) AND q.rank IS NULL
          AND q.alive_until > CAST(unixepoch('subsec') * 1000 AS INTEGER) LIMIT 100))
FROM json_each(?) AS j ORDER BY j.key

-- name: version
-- Returns another number after each commit of another connection; this connection's own commits do
-- not count.
PRAGMA data_version
