-- Keys that are held by several members at once. The row of such a key has a team as its owner and
-- no end: it expires in the year 9999, so that every other statement finds it held. A team is called
-- rowlockT and its token. Its members have rows of their own, and only their own statements change
-- those. The team of 16 zero bytes are wishes: callers that wait for the key exclusively.

-- name: share
-- note, JSON array of {k, o, t, d}: hexadecimal key and owner, nothing, ttl in µs. The oldest wish
-- refuses for 10 s, and not for 1 s, and so on.
INSERT INTO rowlock_member (key, team, owner, note, joined_at, expires_at)
SELECT r.key, r.owner, unhex(j.value ->> 'o'), ?, CAST(unixepoch('subsec') * 1000 AS INTEGER),
  CAST(unixepoch('subsec') * 1000 AS INTEGER) + ((j.value ->> 'd') + 999) / 1000
FROM json_each(?) AS j CROSS JOIN rowlock AS r ON r.key = unhex(j.value ->> 'k')
WHERE r.home = @home AND r.owner IS NOT NULL AND r.expires_at = 253370764800000
  AND coalesce((SELECT (CAST(unixepoch('subsec') * 1000 AS INTEGER) - min(w.joined_at)) % 11000 < 10000
      FROM rowlock_member AS w WHERE w.key = r.key AND w.team = zeroblob(16)
        AND w.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)), 0) = 0
ON CONFLICT (key, team, owner) DO UPDATE SET expires_at = excluded.expires_at
RETURNING key, owner, team

-- name: share-one
-- owner, note, ttl in µs, key. As share, for one member.
INSERT INTO rowlock_member (key, team, owner, note, joined_at, expires_at)
SELECT r.key, r.owner, ?1, ?2, CAST(unixepoch('subsec') * 1000 AS INTEGER),
  CAST(unixepoch('subsec') * 1000 AS INTEGER) + (?3 + 999) / 1000
FROM rowlock AS r
WHERE r.key = ?4 AND r.home = @home AND r.owner IS NOT NULL AND r.expires_at = 253370764800000
  AND coalesce((SELECT (CAST(unixepoch('subsec') * 1000 AS INTEGER) - min(w.joined_at)) % 11000 < 10000
      FROM rowlock_member AS w WHERE w.key = ?4 AND w.team = zeroblob(16)
        AND w.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)), 0) = 0
ON CONFLICT (key, team, owner) DO UPDATE SET expires_at = excluded.expires_at
RETURNING team

-- name: member-look
-- JSON array of hexadecimal keys. Of each key that a team holds: how many members live, the longest
-- remaining time in µs and that member's note, and whether a wish refuses new members.
SELECT r.key,
  (SELECT count(*) FROM rowlock_member AS m WHERE m.key = r.key AND m.team = r.owner
    AND m.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)),
  coalesce((SELECT max(m.expires_at) - CAST(unixepoch('subsec') * 1000 AS INTEGER)
    FROM rowlock_member AS m WHERE m.key = r.key AND m.team = r.owner), 0) * 1000,
  coalesce((SELECT substr(m.note, 1, 384) FROM rowlock_member AS m WHERE m.key = r.key AND m.team = r.owner
    ORDER BY m.expires_at DESC LIMIT 1), ''),
  coalesce((SELECT (CAST(unixepoch('subsec') * 1000 AS INTEGER) - min(w.joined_at)) % 11000 < 10000
      FROM rowlock_member AS w WHERE w.key = r.key AND w.team = zeroblob(16)
        AND w.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)), 0)
FROM json_each(?) AS j CROSS JOIN rowlock AS r ON r.key = unhex(j.value)
WHERE r.home = @home AND r.owner IS NOT NULL AND r.expires_at = 253370764800000

-- name: member-others
-- JSON array of hexadecimal keys. Those that a team without a live member holds, and whether a wish
-- for the key lives.
SELECT r.key, EXISTS (SELECT 1 FROM rowlock_member AS w WHERE w.key = r.key
  AND w.team = zeroblob(16) AND w.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER))
FROM json_each(?) AS j CROSS JOIN rowlock AS r ON r.key = unhex(j.value)
WHERE r.home = @home AND r.owner IS NOT NULL AND r.expires_at = 253370764800000
  AND NOT EXISTS (SELECT 1 FROM rowlock_member AS m WHERE m.key = r.key AND m.team = r.owner
    AND m.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER))

-- name: member-find
-- JSON array as for share. The members' teams.
SELECT m.key, m.owner, m.team FROM json_each(?) AS j CROSS JOIN rowlock_member AS m
  ON m.key = unhex(j.value ->> 'k') AND m.owner = unhex(j.value ->> 'o')
WHERE m.team <> zeroblob(16)

-- name: member-renew
-- JSON array of {k, o, t, d}: hexadecimal key and owner, token, ttl in µs. A member that has
-- expired stays so.
UPDATE rowlock_member SET expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) + (j.d + 999) / 1000
FROM (SELECT unhex(value ->> 'k') AS k, unhex(value ->> 'o') AS o,
  unhex('726F776C6F636B54' || printf('%016x', value ->> 't')) AS t, value ->> 'd' AS d
      FROM json_each(?)) AS j
WHERE rowlock_member.key = j.k AND team = j.t AND owner = j.o
  AND expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)
RETURNING key, owner, team

-- name: member-left
-- JSON array as for member-renew. What remains of each member in µs, as committed.
SELECT m.key, m.owner, m.team, (m.expires_at - CAST(unixepoch('subsec') * 1000 AS INTEGER)) * 1000
FROM json_each(?) AS j CROSS JOIN rowlock_member AS m ON m.key = unhex(j.value ->> 'k')
  AND m.team = unhex('726F776C6F636B54' || printf('%016x', j.value ->> 't'))
  AND m.owner = unhex(j.value ->> 'o')

-- name: member-leave
-- JSON array as for member-renew
DELETE FROM rowlock_member WHERE (key, team, owner) IN (SELECT unhex(j.value ->> 'k'),
  unhex('726F776C6F636B54' || printf('%016x', j.value ->> 't')), unhex(j.value ->> 'o')
  FROM json_each(?) AS j)
RETURNING key, owner, team

-- name: member-leave-one
-- key, team, owner. Whether another member lives, and whether a wish for the key does.
DELETE FROM rowlock_member WHERE key = ?1 AND team = ?2 AND owner = ?3
RETURNING EXISTS (SELECT 1 FROM rowlock_member AS o WHERE o.key = ?1 AND o.team = ?2
    AND o.owner <> ?3 AND o.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)),
  EXISTS (SELECT 1 FROM rowlock_member AS w WHERE w.key = ?1 AND w.team = zeroblob(16)
    AND w.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER))

-- name: member-leave-tx
-- key, team, owner
DELETE FROM rowlock_member WHERE key = ? AND team = ? AND owner = ?

-- name: member-dead
-- retention in µs, limit. Members and wishes that have been dead for so long, but for
-- what another hand has named.
SELECT key, owner, team FROM rowlock_member
WHERE expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER) - ? / 1000
  AND length(owner) = 16 AND length(team) = 16
LIMIT ?

-- name: wish
-- waiter, life in µs, keys as a JSON array. A wish that lives keeps its age.
INSERT INTO rowlock_member (key, team, owner, joined_at, expires_at)
SELECT unhex(j.value), zeroblob(16), ?1, CAST(unixepoch('subsec') * 1000 AS INTEGER),
  CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?2 / 1000
FROM json_each(?3) AS j WHERE true
ON CONFLICT (key, team, owner) DO UPDATE SET
  joined_at = iif(expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER), joined_at, excluded.joined_at),
  expires_at = excluded.expires_at

-- name: unwish
-- keys as a JSON array, waiter
DELETE FROM rowlock_member WHERE key IN (SELECT unhex(value) FROM json_each(?))
  AND team = zeroblob(16) AND owner = ?

-- name: team-lock
-- key. An UPDATE that changes nothing, because it begins the transaction with the write lock.
UPDATE rowlock SET home = home
WHERE key = ? AND home = @home AND owner IS NOT NULL AND expires_at = 253370764800000
RETURNING owner

-- name: team-clear
-- key, team
DELETE FROM rowlock_member WHERE key = ? AND team = ?
  AND expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER)

-- name: team-left
-- key, team
SELECT 1 FROM rowlock_member WHERE key = ? AND team = ? LIMIT 1

-- name: team-end
-- key, team
UPDATE rowlock SET owner = NULL, note = '', expires_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE key = ? AND owner = ? AND home = @home

-- name: team-make
-- team, key, owner, token. The holder's row becomes a team's.
UPDATE rowlock SET owner = ?, expires_at = 253370764800000
WHERE key = ? AND owner = ? AND token = ? AND home = @home
  AND expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)

-- name: team-first
-- owner, ttl in µs, key, team, of the row that team-make has changed
INSERT INTO rowlock_member (key, team, owner, note, joined_at, expires_at)
SELECT key, owner, ?1, note, CAST(unixepoch('subsec') * 1000 AS INTEGER),
  CAST(unixepoch('subsec') * 1000 AS INTEGER) + (?2 + 999) / 1000
FROM rowlock WHERE key = ?3 AND owner = ?4

-- name: team-idle
-- limit. Keys that a team without a live member holds.
SELECT r.key FROM rowlock AS r
WHERE r.home = @home AND r.owner IS NOT NULL AND r.expires_at = 253370764800000
  AND NOT EXISTS (SELECT 1 FROM rowlock_member AS m WHERE m.key = r.key AND m.team = r.owner
    AND m.expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER))
LIMIT ?

-- name: team-fence
-- key, team, token. A write, because it takes the file's write lock in a transaction that was begun
-- DEFERRED.
UPDATE rowlock SET home = home WHERE key = ? AND owner = ? AND token = ? AND home = @home RETURNING 1

-- name: force-members
-- key, team
DELETE FROM rowlock_member WHERE key = ? AND team = ?
