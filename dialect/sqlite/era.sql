-- Eras. Each statement that grants gives a token above that of the row and above the start of its
-- session's era, @era. A file that was copied back has forgotten grants, and the first session that
-- meets it begins an era above every token that was granted before.

-- name: era-look
-- history. That again, the newest start (-1: none), how many histories are recorded, whether this
-- is one of several processes', and the larger compatible_from of two sets, core and shared.
SELECT ?1, coalesce((SELECT max(start) FROM rowlock_meta), -1), (SELECT count(*) FROM rowlock_meta WHERE name LIKE 'era/%'),
  (SELECT count(*) FROM rowlock_meta WHERE name = ?1), 0,
  (SELECT value FROM rowlock_meta WHERE name IN ('compatible_from', 'compatible_from/shared') ORDER BY length(value) DESC, value DESC LIMIT 1)

-- name: era-make
-- The row that era-lock locks, if it is gone.
INSERT INTO rowlock_meta (name, start, since)
VALUES ('eras', 0, CAST(unixepoch('subsec') * 1000 AS INTEGER)) ON CONFLICT (name) DO NOTHING

-- name: era-lock
-- One session at a time begins an era.
UPDATE rowlock_meta SET start = start WHERE name = 'eras'

-- name: era-fresh
-- Whether no key was ever granted, and the tables were made within the last five minutes.
SELECT NOT EXISTS (SELECT 1 FROM rowlock) AND (SELECT max(floor) FROM rowlock_floor) = 0
  AND (SELECT since FROM rowlock_meta WHERE name = 'eras')
    > CAST(unixepoch('subsec') * 1000 AS INTEGER) - 300000

-- name: era-clock
-- In µs since 1970
SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER) * 1000

-- name: era-write
-- history, start
INSERT INTO rowlock_meta (name, start, since)
VALUES (?, ?, CAST(unixepoch('subsec') * 1000 AS INTEGER))
ON CONFLICT (name) DO UPDATE SET start = excluded.start, since = excluded.since

-- name: era-kept
-- how many to keep: the start of the newest of the others
SELECT start FROM rowlock_meta WHERE name LIKE 'era/%' ORDER BY start DESC LIMIT 1 OFFSET ?

-- name: era-drop
-- start
DELETE FROM rowlock_meta WHERE name LIKE 'era/%' AND start <= ?
