-- Keys that are held by several members at once. The row of such a key has a reader group as its owner and no
-- end: it expires in the year 9999, so that every other statement finds it held. A reader group is called
-- rowlockT and its token. Its members have rows of their own, and only their own statements change those. The
-- reader group of 16 zero bytes are intents: callers that wait for the key exclusively.

-- name: share
-- $1 note, and of each member, as arrays: $2 key, $3 owner, $4 nothing, $5 ttl in µs. A row
-- that another transaction is ending is skipped. FOR KEY SHARE keeps a reader group from being
-- ended before this commits, and conflicts neither with other members nor with their fences. The
-- oldest intent refuses for 10 s, and not for 1 s, and so on.
WITH want AS (
  SELECT * FROM unnest($2::bytea[], $3::bytea[], $4::bigint[], $5::bigint[])
    AS w (key, owner, token, ttl)
), reader_group AS (
  SELECT r.key, r.owner FROM rowlock AS r
  WHERE r.key = ANY ($2::bytea[]) AND r.placement = @placement AND r.owner IS NOT NULL
    AND r.expires_at = '9999-01-01 00:00:00+00'
    AND coalesce((SELECT CASE WHEN isfinite(min(w.joined_at))
         THEN (extract(epoch FROM clock_timestamp() - min(w.joined_at))
        * 1000000)::bigint END % 11000000 < 10000000
      FROM rowlock_member AS w WHERE w.key = r.key
        AND w.reader_group = decode('00000000000000000000000000000000', 'hex')
        AND w.expires_at > clock_timestamp()), false) = false
  ORDER BY r.key FOR KEY SHARE SKIP LOCKED
)
INSERT INTO rowlock_member AS m (key, reader_group, owner, note, joined_at, expires_at)
SELECT w.key, t.owner, w.owner, $1::text, clock_timestamp(),
  clock_timestamp() + w.ttl * interval '1 microsecond'
FROM reader_group AS t JOIN want AS w ON w.key = t.key
ON CONFLICT (key, reader_group, owner) DO UPDATE SET expires_at = excluded.expires_at
RETURNING m.key, m.owner, m.reader_group

-- name: share-one
-- $1 owner, $2 note, $3 ttl in µs, $4 key. As share, for one member.
WITH reader_group AS (
  SELECT r.key, r.owner FROM rowlock AS r
  WHERE r.key = $4 AND r.placement = @placement AND r.owner IS NOT NULL
    AND r.expires_at = '9999-01-01 00:00:00+00'
    AND coalesce((SELECT CASE WHEN isfinite(min(w.joined_at))
         THEN (extract(epoch FROM clock_timestamp() - min(w.joined_at))
        * 1000000)::bigint END % 11000000 < 10000000
      FROM rowlock_member AS w WHERE w.key = $4
        AND w.reader_group = decode('00000000000000000000000000000000', 'hex')
        AND w.expires_at > clock_timestamp()), false) = false
  FOR KEY SHARE SKIP LOCKED
)
INSERT INTO rowlock_member AS m (key, reader_group, owner, note, joined_at, expires_at)
SELECT t.key, t.owner, $1::bytea, $2::text, clock_timestamp(),
  clock_timestamp() + $3::bigint * interval '1 microsecond'
FROM reader_group AS t
ON CONFLICT (key, reader_group, owner) DO UPDATE SET expires_at = excluded.expires_at
RETURNING m.reader_group

-- name: member-look
-- $1 keys as an array. Of each key that a reader group holds: how many members live, the
-- longest remaining time in µs and that member's note, and whether an intent refuses new members.
SELECT r.key,
  (SELECT count(*) FROM rowlock_member AS m
   WHERE m.key = r.key AND m.reader_group = r.owner AND m.expires_at > clock_timestamp()),
  coalesce((SELECT CASE WHEN isfinite(max(m.expires_at))
         THEN (extract(epoch FROM max(m.expires_at) - clock_timestamp()) * 1000000)::bigint END
   FROM rowlock_member AS m WHERE m.key = r.key AND m.reader_group = r.owner), 0),
  coalesce((SELECT left(m.note, 384) FROM rowlock_member AS m WHERE m.key = r.key AND m.reader_group = r.owner
   ORDER BY m.expires_at DESC LIMIT 1), ''),
  coalesce((SELECT CASE WHEN isfinite(min(w.joined_at))
         THEN (extract(epoch FROM clock_timestamp() - min(w.joined_at))
      * 1000000)::bigint END % 11000000 < 10000000
    FROM rowlock_member AS w WHERE w.key = r.key AND w.reader_group = decode('00000000000000000000000000000000', 'hex')
      AND w.expires_at > clock_timestamp()), false)::int
FROM rowlock AS r
WHERE r.key = ANY ($1::bytea[]) AND r.placement = @placement AND r.owner IS NOT NULL
  AND r.expires_at = '9999-01-01 00:00:00+00'

-- name: member-others
-- $1 keys as an array. Those that a reader group without a live member holds, and whether an
-- intent for the key lives.
SELECT r.key, EXISTS (SELECT 1 FROM rowlock_member AS w WHERE w.key = r.key
    AND w.reader_group = decode('00000000000000000000000000000000', 'hex') AND w.expires_at > clock_timestamp())::int
FROM rowlock AS r
WHERE r.key = ANY ($1::bytea[]) AND r.placement = @placement AND r.owner IS NOT NULL
  AND r.expires_at = '9999-01-01 00:00:00+00'
  AND NOT EXISTS (SELECT 1 FROM rowlock_member AS m
    WHERE m.key = r.key AND m.reader_group = r.owner AND m.expires_at > clock_timestamp())

-- name: member-find
-- Of each member, as arrays: $1 key, $2 owner, $3 nothing, $4 nothing. The members' reader groups.
SELECT m.key, m.owner, m.reader_group
FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::bigint[])
  AS w (key, owner, token, nothing)
JOIN rowlock_member AS m ON m.key = w.key AND m.owner = w.owner
WHERE m.reader_group <> decode('00000000000000000000000000000000', 'hex')

-- name: member-renew
-- Of each member, as arrays: $1 key, $2 owner, $3 token, $4 ttl in µs. A member that has expired stays
-- so. One that the holder's own transaction has locked is skipped. The clock is read under the row's lock: a
-- taker that looks for the living removes the dead first, and waits for this.
WITH want AS (
  SELECT w.key, w.owner, 'rowlockT'::bytea || int8send(w.token) AS reader_group, w.ttl
  FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::bigint[])
    AS w (key, owner, token, ttl)
), locked AS (
  SELECT m.key, m.reader_group, m.owner FROM rowlock_member AS m
  JOIN want AS w ON m.key = w.key AND m.reader_group = w.reader_group AND m.owner = w.owner
  ORDER BY m.key, m.reader_group, m.owner FOR NO KEY UPDATE OF m SKIP LOCKED
)
UPDATE rowlock_member AS m SET expires_at = clock_timestamp() + w.ttl * interval '1 microsecond'
FROM locked AS l JOIN want AS w ON w.key = l.key AND w.reader_group = l.reader_group AND w.owner = l.owner
WHERE m.key = l.key AND m.reader_group = l.reader_group AND m.owner = l.owner AND m.expires_at > clock_timestamp()
RETURNING m.key, m.owner, m.reader_group

-- name: member-left
-- As for member-renew. What remains of each member in µs, as committed, and the clock.
SELECT m.key, m.owner, m.reader_group,
  CASE WHEN isfinite(m.expires_at)
         THEN (extract(epoch FROM m.expires_at - clock_timestamp()) * 1000000)::bigint END
FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::bigint[])
  AS w (key, owner, token, nothing)
JOIN rowlock_member AS m ON m.key = w.key AND m.reader_group = 'rowlockT'::bytea || int8send(w.token)
  AND m.owner = w.owner

-- name: member-leave
-- Of each member, as arrays: $1 key, $2 owner, $3 token, $4 nothing
DELETE FROM rowlock_member AS m
USING unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::bigint[])
  AS w (key, owner, token, nothing)
WHERE m.key = w.key AND m.reader_group = 'rowlockT'::bytea || int8send(w.token) AND m.owner = w.owner
RETURNING m.key, m.owner, m.reader_group

-- name: member-leave-one
-- $1 key, $2 reader group, $3 owner. Whether another member lives, and whether an intent for the key does, as
-- this statement's snapshot has them: of two members that leave at once, each may see the other.
DELETE FROM rowlock_member AS m WHERE m.key = $1 AND m.reader_group = $2 AND m.owner = $3
RETURNING EXISTS (SELECT 1 FROM rowlock_member AS o WHERE o.key = $1 AND o.reader_group = $2
    AND o.owner <> $3 AND o.expires_at > clock_timestamp())::int,
  EXISTS (SELECT 1 FROM rowlock_member AS w WHERE w.key = $1
    AND w.reader_group = decode('00000000000000000000000000000000', 'hex') AND w.expires_at > clock_timestamp())::int

-- name: member-leave-tx
-- $1 key, $2 reader group, $3 owner
DELETE FROM rowlock_member WHERE key = $1 AND reader_group = $2 AND owner = $3

-- name: member-dead
-- $1 retention in µs, $2 limit. Members and intents dead for so long, but for what others have named.
SELECT key, owner, reader_group FROM rowlock_member
WHERE expires_at <= clock_timestamp() - $1::bigint * interval '1 microsecond'
  AND octet_length(owner) = 16 AND octet_length(reader_group) = 16
LIMIT $2::bigint

-- name: intend
-- $1 waiter, $2 life in µs, $3 keys as an array. An intent that lives keeps its age. All begin at
-- multiples of 11 s: readers of several keys need them to admit at once.
INSERT INTO rowlock_member AS m (key, reader_group, owner, joined_at, expires_at)
SELECT k, decode('00000000000000000000000000000000', 'hex'), $1::bytea,
  to_timestamp(round(extract(epoch FROM clock_timestamp()) / 11) * 11),
  clock_timestamp() + $2::bigint * interval '1 microsecond' FROM unnest($3::bytea[]) AS k
ON CONFLICT (key, reader_group, owner) DO UPDATE SET expires_at = excluded.expires_at,
  joined_at = CASE WHEN m.expires_at > clock_timestamp() THEN m.joined_at ELSE excluded.joined_at END

-- name: unintend
-- $1 keys as an array, $2 waiter
DELETE FROM rowlock_member WHERE key = ANY ($1::bytea[])
  AND reader_group = decode('00000000000000000000000000000000', 'hex') AND owner = $2::bytea

-- name: readers-lock
-- $1 key. It conflicts with a member that joins, and with every member's fence, and skips the row
-- then. The statements after it see what was committed before.
SELECT owner FROM rowlock
WHERE key = $1 AND placement = @placement AND owner IS NOT NULL AND expires_at = '9999-01-01 00:00:00+00'
FOR UPDATE SKIP LOCKED

-- name: readers-clear
-- $1 key, $2 reader group, of a row that readers-lock has locked. It waits for a renewal that is under way, and
-- leaves what that has extended: a look alone could miss a renewal whose clock was read before the member expired.
DELETE FROM rowlock_member WHERE key = $1 AND reader_group = $2 AND expires_at <= clock_timestamp()

-- name: readers-left
-- $1 key, $2 reader group. A statement of its own, after readers-lock: one statement would look at
-- a snapshot from before it has locked the row, and miss a member that has joined meanwhile.
SELECT 1 FROM rowlock_member WHERE key = $1 AND reader_group = $2 LIMIT 1

-- name: readers-end
-- $1 key, $2 reader group
UPDATE rowlock SET owner = NULL, note = '', expires_at = clock_timestamp()
WHERE key = $1 AND owner = $2 AND placement = @placement

-- name: readers-make
-- $1 reader group, $2 key, $3 owner, $4 token. The holder's row becomes a reader group's.
UPDATE rowlock SET owner = $1, expires_at = '9999-01-01 00:00:00+00'
WHERE key = $2 AND owner = $3 AND token = $4 AND placement = @placement AND expires_at > clock_timestamp()

-- name: readers-first
-- $1 owner, $2 ttl in µs, $3 key, $4 reader group, of the row that readers-make has changed
INSERT INTO rowlock_member (key, reader_group, owner, note, joined_at, expires_at)
SELECT key, owner, $1::bytea, note, clock_timestamp(),
  clock_timestamp() + $2::bigint * interval '1 microsecond'
FROM rowlock WHERE key = $3 AND owner = $4

-- name: readers-idle
-- $1 limit. Keys that a reader group without a live member holds.
SELECT r.key FROM rowlock AS r
WHERE r.placement = @placement AND r.owner IS NOT NULL AND r.expires_at = '9999-01-01 00:00:00+00'
  AND NOT EXISTS (SELECT 1 FROM rowlock_member AS m
    WHERE m.key = r.key AND m.reader_group = r.owner AND m.expires_at > clock_timestamp())
LIMIT $1::bigint

-- name: readers-fence
-- $1 key, $2 reader group, $3 token. Members' fences pass side by side. Whatever ends the reader group skips the row.
SELECT 1 FROM rowlock WHERE key = $1 AND owner = $2 AND token = $3 AND placement = @placement FOR SHARE

-- name: late-readers
-- Replaces @late for a key that readers share, none of whom has a lease any more.
r.expires_at = '9999-01-01 00:00:00+00' AND NOT EXISTS (SELECT 1 FROM rowlock_member AS m
  WHERE m.key = r.key AND m.reader_group = r.owner AND m.expires_at > clock_timestamp())

-- name: force-members
-- key, reader group
DELETE FROM rowlock_member WHERE key = $1 AND reader_group = $2
