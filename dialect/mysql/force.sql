-- Leases that an operator takes away. A transaction locks the row first, and so waits for the
-- holder's fence; under READ COMMITTED, what it reads afterwards was committed before.

-- name: force-lock
-- key
SELECT owner, token, LEFT(note, 384) FROM rowlock WHERE `key` = ? AND placement = @placement AND owner IS NOT NULL
FOR UPDATE

-- name: force-placement
-- key: whether the row, if there is one, has another placement
SELECT COUNT(*) FROM rowlock WHERE `key` = ? AND placement <> @placement

-- name: force-end
-- next token, key, owner, token, of a row that force-lock has locked. No client may be granted the
-- last token, so that it is not raised beyond that.
UPDATE rowlock SET owner = NULL, note = '', token = LEAST(?, @last_token),
  expires_at = UTC_TIMESTAMP(6)
WHERE `key` = ? AND owner = ? AND token = ? AND placement = @placement

-- name: force-lock-bad
-- key. As force-lock, whatever the row says.
SELECT `key` FROM rowlock WHERE `key` = ? FOR UPDATE

-- name: force-repair
-- token, key, of a row that has values which rowlock does not write. It becomes a free one.
UPDATE rowlock SET owner = NULL, note = '', token = ?, acquired_at = UTC_TIMESTAMP(6),
  expires_at = UTC_TIMESTAMP(6), placement = @placement
WHERE `key` = ? AND (placement = @placement OR placement IS NULL OR placement < -1)

-- name: force-tickets
-- key. It removes what has no heartbeat that could end: no process writes one for a day.
DELETE FROM rowlock_queue
WHERE `key` = ? AND (alive_until IS NULL
  OR TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), alive_until) IS NULL
  OR alive_until > UTC_TIMESTAMP(6) + INTERVAL 1 DAY)

-- name: force-record
-- id, operator, reason, token asked for, owner, token, note, key. The operator is what a caller
-- claims; the session's user follows it behind a tab. USER() would be a claim too.
INSERT INTO rowlock_forced (`key`, `at`, id, actor, reason, asked, owner, token, note, raised)
SELECT r.`key`, UTC_TIMESTAMP(6), ?, CONCAT(?, X'09', CURRENT_USER()), ?, ?, ?, ?, ?, r.token
FROM rowlock AS r WHERE r.`key` = ?

-- name: force-find
-- key, id
SELECT `key`, TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', `at`), id, LEFT(actor, 384), LEFT(reason, 1000), asked, owner,
  token, LEFT(note, 384), raised
FROM rowlock_forced WHERE `key` = ? AND id = ?

-- name: force-confirm
-- key. A repetition has found the record of an earlier try whose commit may not have been
-- acknowledged, and a read proves nothing about durability. This commit comes after that one.
UPDATE rowlock SET acquired_at = acquired_at + INTERVAL 1 MICROSECOND WHERE `key` = ?

-- name: force-list
-- prefix's length, prefix, time in µs, raised, id: those before; limit
SELECT `key`, TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', `at`), id, LEFT(actor, 384), LEFT(reason, 1000), asked, owner,
  token, LEFT(note, 384), raised
FROM rowlock_forced
WHERE LEFT(`key`, ?) = ? AND (`at`, raised, id) < (TIMESTAMPADD(MICROSECOND, ?, '1970-01-01 00:00:00.000000'), ?, ?)
ORDER BY `at` DESC, raised DESC, id DESC LIMIT ?

-- name: force-list-key
-- key, time in µs, raised, id: those before; limit
SELECT `key`, TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', `at`), id, LEFT(actor, 384), LEFT(reason, 1000), asked, owner,
  token, LEFT(note, 384), raised
FROM rowlock_forced
WHERE `key` = ? AND (`at`, raised, id) < (TIMESTAMPADD(MICROSECOND, ?, '1970-01-01 00:00:00.000000'), ?, ?)
ORDER BY `at` DESC, raised DESC, id DESC LIMIT ?
