-- Eras. Each statement that grants gives a token above that of the row and above the start of its
-- session's era, @era. A file that was copied back has forgotten grants, and the first session that
-- meets it begins an era above every token that was granted before.

-- name: era-look
-- history. That again, the newest start (-1: none), how many histories are recorded, and whether
-- this is one of them: several processes have the file open, each with its own.
SELECT ?1, coalesce((SELECT max(start) FROM rowlock_era), -1),
  (SELECT count(*) FROM rowlock_era WHERE history <> ''),
  (SELECT count(*) FROM rowlock_era WHERE history = ?1), 0

-- name: era-make
-- The row that era-lock locks, if it is gone.
INSERT INTO rowlock_era (history, start, since)
VALUES ('', 0, CAST(unixepoch('subsec') * 1000 AS INTEGER)) ON CONFLICT (history) DO NOTHING

-- name: era-lock
-- One session at a time begins an era.
UPDATE rowlock_era SET start = start WHERE history = ''

-- name: era-fresh
-- Whether no key was ever granted, and the tables were made within the last five minutes.
SELECT NOT EXISTS (SELECT 1 FROM rowlock) AND (SELECT max(floor) FROM rowlock_floor) = 0
  AND (SELECT since FROM rowlock_era WHERE history = '')
    > CAST(unixepoch('subsec') * 1000 AS INTEGER) - 300000

-- name: era-clock
-- In µs since 1970
SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER) * 1000

-- name: era-write
-- history, start
INSERT INTO rowlock_era (history, start, since)
VALUES (?, ?, CAST(unixepoch('subsec') * 1000 AS INTEGER))
ON CONFLICT (history) DO UPDATE SET start = excluded.start, since = excluded.since

-- name: era-kept
-- how many to keep: the start of the newest of the others
SELECT start FROM rowlock_era WHERE history <> '' ORDER BY start DESC LIMIT 1 OFFSET ?

-- name: era-drop
-- start
DELETE FROM rowlock_era WHERE history <> '' AND start <= ?
