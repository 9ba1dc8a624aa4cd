-- Eras. Each statement that grants gives a token above that of the row and above the start of its
-- session's era, @era. A server that has forgotten grants, because a replica that lagged was promoted
-- or a backup was restored, has a history of its own, and the first session that meets it begins an
-- era above every token that was granted before.

-- name: era-history
-- What differs after each start of the server and each restore. A replica that is promoted was started
-- at another moment than the primary, and every restore of the server's files starts it again. A copy
-- by CREATE DATABASE is another database, and one that is made under an oid of before has another row
-- in pg_database. A restore of the table gives it another file.
SELECT 'era/' || (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint || '/' || d.oid || '.'
  || d.xmin || '/' || coalesce(pg_relation_filenode('rowlock'::regclass), 0)
FROM pg_database AS d WHERE d.datname = current_database()

-- name: era-look
-- The server's history, the newest start (-1: none), how many histories are recorded, whether this
-- is the newest, whether the server is a replica, and the larger compatible_from of two sets.
-- Rows that were deleted and loaded back have another xmin than the one that era-write has put into
-- the name. One that is known and not the newest is of a server to which others have failed back.
SELECT h.name, coalesce((SELECT max(start) FROM rowlock_meta), -1), (SELECT count(*) FROM rowlock_meta WHERE name LIKE 'era/%'),
  coalesce((SELECT name = h.name || '/' || xmin FROM rowlock_meta WHERE name LIKE 'era/%'
    ORDER BY start DESC LIMIT 1), false)::int, pg_is_in_recovery()::int,
  (SELECT value FROM rowlock_meta WHERE name IN ('compatible_from', 'compatible_from/shared') ORDER BY length(value) DESC, value DESC LIMIT 1)
FROM (SELECT (@history) AS name) AS h

-- name: era-make
-- The row that era-lock locks, if it is gone.
INSERT INTO rowlock_meta (name, start, since) VALUES ('eras', 0, clock_timestamp())
ON CONFLICT (name) DO NOTHING

-- name: era-lock
-- One session at a time begins an era.
UPDATE rowlock_meta SET start = start WHERE name = 'eras'

-- name: era-fresh
-- Whether no key was ever granted, and the tables were made within the last five minutes.
SELECT (NOT EXISTS (SELECT 1 FROM rowlock) AND (SELECT max(floor) FROM rowlock_floor) = 0
  AND (SELECT since FROM rowlock_meta WHERE name = 'eras') > clock_timestamp() - interval '5 minutes')::int

-- name: era-clock
-- In µs since 1970
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint

-- name: era-write
-- $1 history, $2 start. The row names the transaction that wrote it: see era-look.
INSERT INTO rowlock_meta (name, start, since)
VALUES ($1 || '/' || (txid_current() & 4294967295), $2, clock_timestamp())
ON CONFLICT (name) DO UPDATE SET start = excluded.start, since = excluded.since

-- name: era-kept
-- $1 how many to keep: the start of the newest of the others
SELECT start FROM rowlock_meta WHERE name LIKE 'era/%' ORDER BY start DESC LIMIT 1 OFFSET $1::bigint

-- name: era-drop
-- $1 start
DELETE FROM rowlock_meta WHERE name LIKE 'era/%' AND start <= $1::bigint
