-- The registrations of waiters and the messages to them, for Postgres. The section names are the
-- same in every dialect.
--
-- Safety needs nothing of this, so no commit waits for the disk: set_config(…, true) is for this
-- transaction alone.

-- name: register
-- $1 process, $2 note, $3 how long in µs, $4 keys as an array, in order. The note is the
-- process's identity, a tab, and 'listens' if it does: wake chooses only such a process, because a
-- message to one that does not listen would be lost each time it is chosen.
WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
INSERT INTO rowlock_queue (key, waiter, note, alive_until)
SELECT w.key, $1::bytea, $2::text, clock_timestamp() + $3::bigint * interval '1 microsecond'
FROM quick, unnest($4::bytea[]) AS w (key)
ON CONFLICT (key, waiter) DO UPDATE
  SET note = $2::text, alive_until = clock_timestamp() + $3::bigint * interval '1 microsecond'

-- name: unregister
-- $1 keys as an array, in order, $2 process
WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
DELETE FROM rowlock_queue AS q USING quick, unnest($1::bytea[]) AS w (key)
WHERE q.key = w.key AND q.waiter = $2 AND q.rank IS NULL

-- name: awaited
-- $1 process, $2 keys as an array
SELECT EXISTS (SELECT 1 FROM rowlock_queue AS q
               WHERE q.key = w.key AND q.waiter <> $1 AND q.alive_until > clock_timestamp())
                 AS awaited
FROM unnest($2::bytea[]) WITH ORDINALITY AS w (key, n) ORDER BY w.n

-- name: waiting
-- $1 keys as an array. It counts to 100, because beyond that it makes no difference.
SELECT (SELECT count(*) FROM (SELECT 1 FROM rowlock_queue AS q
        WHERE q.key = w.key AND q.rank IS NULL AND q.alive_until > clock_timestamp() LIMIT 100)
          AS live)
FROM unnest($1::bytea[]) WITH ORDINALITY AS w (key, n) ORDER BY w.n

-- name: announce
-- $1 channel, $2 messages as an array. It is never part of a transaction that writes: a
-- NOTIFY holds a lock of the whole cluster until its commit has ended, and only the commit of a
-- NOTIFY alone does not wait for the disk (measured with 15.18).
SELECT pg_notify($1::text, m) FROM unnest($2::text[]) AS m

-- name: wake
-- $1 channel, $2 keys as an array, $3 the process that wakes. It sends one message for each
-- key, as announce does, on the channel of one process: the next by owner, or the first of all.
-- Each process that is woken wakes the next after itself, so that each is chosen in turn without a
-- record of the order. If there is none, the message is for all.
SELECT pg_notify($1::text || coalesce('_' || encode(substr(coalesce(
  (SELECT q.waiter FROM rowlock_queue AS q
   WHERE q.key = w.key AND q.waiter > $3 AND q.rank IS NULL AND right(q.note, 7) = 'listens'
     AND q.alive_until > clock_timestamp()
   ORDER BY q.key, q.waiter LIMIT 1),
  (SELECT q.waiter FROM rowlock_queue AS q
   WHERE q.key = w.key AND q.waiter < $3 AND q.rank IS NULL AND right(q.note, 7) = 'listens'
     AND q.alive_until > clock_timestamp()
   ORDER BY q.key, q.waiter LIMIT 1)), 1, 8), 'hex'), ''), encode(w.key, 'hex'))
FROM unnest($2::bytea[]) AS w (key)
