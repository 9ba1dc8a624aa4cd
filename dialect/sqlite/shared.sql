-- Keys that are held by several members at once. The row of such a key has a reader group as its owner and no
-- end: it expires in the year 9999, so that every other statement finds it held. A reader group is called
-- rowlockT and its token. Its members have rows of their own, and only their own statements change those. The
-- reader group of 16 zero bytes are intents: callers that wait for the key exclusively.

-- name: share
-- note, JSON array of {k, o, t, d}: hexadecimal key and owner, nothing, ttl in µs. The oldest intent refuses
-- for 10 s, and not for 1 s, and so on.
INSERT INTO rowlock_member (key, reader_group, owner, note, joined_at, expires_at)
SELECT r.key, r.owner, unhex(j.value ->> 'o'), ?, CAST(unixepoch('subsec') * 1000 AS INTEGER),
  CAST(unixepoch('subsec') * 1000 AS INTEGER) + ((j.value ->> 'd') + 999) / 1000
FROM json_each(?) AS j CROSS JOIN rowlock AS r ON r.key = unhex(j.value ->> 'k')
WHERE r.placement = @placement AND r.owner IS NOT NULL AND r.expires_at = 253370764800000
  AND coalesce((SELECT (CAST(unixepoch('subsec') * 1000 AS INTEGER) - min(w.joined_at)) % 11000 < 10000
      FROM rowlock_member AS w WHERE w.key = r.key AND w.reader_group = zeroblob(16)
        AND w.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)), 0) = 0
ON CONFLICT (key, reader_group, owner) DO UPDATE SET expires_at = excluded.expires_at
RETURNING key, owner, reader_group

-- name: share-one
-- owner, note, ttl in µs, key. As share, for one member.
INSERT INTO rowlock_member (key, reader_group, owner, note, joined_at, expires_at)
SELECT r.key, r.owner, ?1, ?2, CAST(unixepoch('subsec') * 1000 AS INTEGER),
  CAST(unixepoch('subsec') * 1000 AS INTEGER) + (?3 + 999) / 1000
FROM rowlock AS r
WHERE r.key = ?4 AND r.placement = @placement AND r.owner IS NOT NULL AND r.expires_at = 253370764800000
  AND coalesce((SELECT (CAST(unixepoch('subsec') * 1000 AS INTEGER) - min(w.joined_at)) % 11000 < 10000
      FROM rowlock_member AS w WHERE w.key = ?4 AND w.reader_group = zeroblob(16)
        AND w.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)), 0) = 0
ON CONFLICT (key, reader_group, owner) DO UPDATE SET expires_at = excluded.expires_at
RETURNING reader_group

-- name: member-look
-- JSON array of hexadecimal keys. Of each key that a reader group holds: how many members live, the
-- longest remaining time in µs and that member's note, and whether an intent refuses new members.
SELECT r.key,
  (SELECT count(*) FROM rowlock_member AS m WHERE m.key = r.key AND m.reader_group = r.owner
    AND m.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)),
  coalesce((SELECT max(m.expires_at) - CAST(unixepoch('subsec') * 1000 AS INTEGER)
    FROM rowlock_member AS m WHERE m.key = r.key AND m.reader_group = r.owner), 0) * 1000,
  coalesce((SELECT substr(m.note, 1, 384) FROM rowlock_member AS m WHERE m.key = r.key AND m.reader_group = r.owner
    ORDER BY m.expires_at DESC LIMIT 1), ''),
  coalesce((SELECT (CAST(unixepoch('subsec') * 1000 AS INTEGER) - min(w.joined_at)) % 11000 < 10000
      FROM rowlock_member AS w WHERE w.key = r.key AND w.reader_group = zeroblob(16)
        AND w.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)), 0)
FROM json_each(?) AS j CROSS JOIN rowlock AS r ON r.key = unhex(j.value)
WHERE r.placement = @placement AND r.owner IS NOT NULL AND r.expires_at = 253370764800000

-- name: member-others
-- JSON array of hexadecimal keys. Those that a reader group without a live member holds, and
-- whether an intent for the key lives.
SELECT r.key, EXISTS (SELECT 1 FROM rowlock_member AS w WHERE w.key = r.key
  AND w.reader_group = zeroblob(16) AND w.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER))
FROM json_each(?) AS j CROSS JOIN rowlock AS r ON r.key = unhex(j.value)
WHERE r.placement = @placement AND r.owner IS NOT NULL AND r.expires_at = 253370764800000
  AND NOT EXISTS (SELECT 1 FROM rowlock_member AS m WHERE m.key = r.key AND m.reader_group = r.owner
    AND m.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER))

-- name: member-find
-- JSON array as for share. The members' reader groups.
SELECT m.key, m.owner, m.reader_group FROM json_each(?) AS j CROSS JOIN rowlock_member AS m
  ON m.key = unhex(j.value ->> 'k') AND m.owner = unhex(j.value ->> 'o')
WHERE m.reader_group <> zeroblob(16)

-- name: member-renew
-- JSON array of {k, o, t, d}: hexadecimal key and owner, token, ttl in µs. A member that has expired stays so.
UPDATE rowlock_member SET expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) + (j.d + 999) / 1000
FROM (SELECT unhex(value ->> 'k') AS k, unhex(value ->> 'o') AS o,
  unhex('726F776C6F636B54' || printf('%016x', value ->> 't')) AS t, value ->> 'd' AS d
      FROM json_each(?)) AS j
WHERE rowlock_member.key = j.k AND reader_group = j.t AND owner = j.o
  AND expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)
RETURNING key, owner, reader_group

-- name: member-left
-- JSON array as for member-renew. What remains of each member in µs, as committed.
SELECT m.key, m.owner, m.reader_group, (m.expires_at - CAST(unixepoch('subsec') * 1000 AS INTEGER)) * 1000
FROM json_each(?) AS j CROSS JOIN rowlock_member AS m ON m.key = unhex(j.value ->> 'k')
  AND m.reader_group = unhex('726F776C6F636B54' || printf('%016x', j.value ->> 't'))
  AND m.owner = unhex(j.value ->> 'o')

-- name: member-leave
-- JSON array as for member-renew
DELETE FROM rowlock_member WHERE (key, reader_group, owner) IN (SELECT unhex(j.value ->> 'k'),
  unhex('726F776C6F636B54' || printf('%016x', j.value ->> 't')), unhex(j.value ->> 'o')
  FROM json_each(?) AS j)
RETURNING key, owner, reader_group

-- name: member-leave-one
-- key, reader group, owner. Whether another member lives, and whether an intent for the key does.
DELETE FROM rowlock_member WHERE key = ?1 AND reader_group = ?2 AND owner = ?3
RETURNING EXISTS (SELECT 1 FROM rowlock_member AS o WHERE o.key = ?1 AND o.reader_group = ?2
    AND o.owner <> ?3 AND o.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)),
  EXISTS (SELECT 1 FROM rowlock_member AS w WHERE w.key = ?1 AND w.reader_group = zeroblob(16)
    AND w.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER))

-- name: member-leave-tx
-- key, reader group, owner
DELETE FROM rowlock_member WHERE key = ? AND reader_group = ? AND owner = ?

-- name: member-dead
-- retention in µs, limit. Members and intents that have been dead for so long, but for
-- what another hand has named.
SELECT key, owner, reader_group FROM rowlock_member
WHERE expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER) - ? / 1000
  AND length(owner) = 16 AND length(reader_group) = 16
LIMIT ?

-- name: intend
-- waiter, life in µs, keys as a JSON array. An intent that lives keeps its age. All begin at
-- multiples of 11 s: readers of several keys need them to admit at once.
INSERT INTO rowlock_member (key, reader_group, owner, joined_at, expires_at)
SELECT unhex(j.value), zeroblob(16), ?1, (unixepoch() + 5) / 11 * 11000,
  CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?2 / 1000 FROM json_each(?3) AS j WHERE true
ON CONFLICT (key, reader_group, owner) DO UPDATE SET
  joined_at = iif(expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER), joined_at, excluded.joined_at),
  expires_at = excluded.expires_at

-- name: unintend
-- keys as a JSON array, waiter
DELETE FROM rowlock_member WHERE key IN (SELECT unhex(value) FROM json_each(?))
  AND reader_group = zeroblob(16) AND owner = ?

-- name: readers-lock
-- key. An UPDATE that changes nothing, because it begins the transaction with the write lock.
UPDATE rowlock SET placement = placement
WHERE key = ? AND placement = @placement AND owner IS NOT NULL AND expires_at = 253370764800000
RETURNING owner

-- name: readers-clear
-- key, reader group
DELETE FROM rowlock_member WHERE key = ? AND reader_group = ?
  AND expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER)

-- name: readers-left
-- key, reader group
SELECT 1 FROM rowlock_member WHERE key = ? AND reader_group = ? LIMIT 1

-- name: readers-end
-- key, reader group
UPDATE rowlock SET owner = NULL, note = '', expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE key = ? AND owner = ? AND placement = @placement

-- name: readers-make
-- reader group, key, owner, token. The holder's row becomes a reader group's.
UPDATE rowlock SET owner = ?, expires_at = 253370764800000
WHERE key = ? AND owner = ? AND token = ? AND placement = @placement
  AND expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)

-- name: readers-first
-- owner, ttl in µs, key, reader group, of the row that readers-make has changed
INSERT INTO rowlock_member (key, reader_group, owner, note, joined_at, expires_at)
SELECT key, owner, ?1, note, CAST(unixepoch('subsec') * 1000 AS INTEGER),
  CAST(unixepoch('subsec') * 1000 AS INTEGER) + (?2 + 999) / 1000
FROM rowlock WHERE key = ?3 AND owner = ?4

-- name: readers-idle
-- limit. Keys that a reader group without a live member holds.
SELECT r.key FROM rowlock AS r
WHERE r.placement = @placement AND r.owner IS NOT NULL AND r.expires_at = 253370764800000
  AND NOT EXISTS (SELECT 1 FROM rowlock_member AS m WHERE m.key = r.key AND m.reader_group = r.owner
    AND m.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER))
LIMIT ?

-- name: readers-fence
-- key, reader group, token. A write, because it takes the file's write lock in a transaction that was begun DEFERRED.
UPDATE rowlock SET placement = placement WHERE key = ? AND owner = ? AND token = ? AND placement = @placement RETURNING 1

-- name: force-members
-- key, reader group
DELETE FROM rowlock_member WHERE key = ? AND reader_group = ?
