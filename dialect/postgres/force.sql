-- Leases that an operator takes away. A transaction locks the row first, and so waits for the
-- holder's fence; what it reads afterwards was committed before.

-- name: force-lock
-- key
SELECT owner, token, left(note, 384) FROM rowlock WHERE key = $1 AND placement = @placement AND owner IS NOT NULL
FOR UPDATE

-- name: force-placement
-- key: whether the row, if there is one, has another placement
SELECT count(*) FROM rowlock WHERE key = $1 AND placement <> @placement

-- name: force-end
-- next token, key, owner, token, of a row that force-lock has locked. No client may be granted the
-- last token, so that it is not raised beyond that.
UPDATE rowlock SET owner = NULL, note = '', token = least($1::bigint, @last_token),
  expires_at = clock_timestamp()
WHERE key = $2 AND owner = $3 AND token = $4 AND placement = @placement

-- name: force-lock-bad
-- key. As force-lock, whatever the row says.
SELECT key FROM rowlock WHERE key = $1 FOR UPDATE

-- name: force-repair
-- token, key, of a row that has values which rowlock does not write. It becomes a free one.
UPDATE rowlock SET owner = NULL, note = '', token = $1, acquired_at = clock_timestamp(),
  expires_at = clock_timestamp(), placement = @placement
WHERE key = $2 AND (placement = @placement OR placement IS NULL OR placement < -1)

-- name: force-tickets
-- key. It removes what has no heartbeat that could end: no process writes one for a day.
DELETE FROM rowlock_queue
WHERE key = $1 AND (alive_until IS NULL OR NOT isfinite(alive_until)
  OR alive_until > clock_timestamp() + interval '1 day' OR octet_length(waiter) <> 16)

-- name: force-record
-- id, operator, reason, token asked for, owner, token, note, key. The operator is what a caller
-- claims; the session's user follows it behind a tab.
INSERT INTO rowlock_forced (key, at, id, actor, reason, asked, owner, token, note, raised)
SELECT r.key, clock_timestamp(), $1::bytea, $2::text || chr(9) || session_user, $3::text, $4::bigint, $5::bytea, $6::bigint,
  $7::text, r.token
FROM rowlock AS r WHERE r.key = $8

-- name: force-find
-- key, id
SELECT key, CASE WHEN at BETWEEN '0001-01-01' AND '9999-12-31'
         THEN (extract(epoch FROM at) * 1000000)::bigint END,
  id, left(actor, 384), left(reason, 1000), asked, owner, token, left(note, 384), raised
FROM rowlock_forced WHERE key = $1 AND id = $2

-- name: force-confirm
-- key. A repetition has found the record of an earlier try whose commit may not have been
-- acknowledged, and a read proves nothing about durability. This commit comes after that one.
UPDATE rowlock SET acquired_at = acquired_at + interval '1 microsecond' WHERE key = $1

-- name: force-list
-- prefix's length, prefix, time in µs, raised, id: those before; limit
SELECT key, CASE WHEN at BETWEEN '0001-01-01' AND '9999-12-31'
         THEN (extract(epoch FROM at) * 1000000)::bigint END,
  id, left(actor, 384), left(reason, 1000), asked, owner, token, left(note, 384), raised
FROM rowlock_forced
WHERE substr(key, 1, $1::int) = $2 AND (at, raised, id) < ('epoch'::timestamptz + $3::bigint * interval '1 microsecond', $4::bigint, $5::bytea)
ORDER BY at DESC, raised DESC, id DESC LIMIT $6::bigint

-- name: force-list-key
-- key, time in µs, raised, id: those before; limit
SELECT key, CASE WHEN at BETWEEN '0001-01-01' AND '9999-12-31'
         THEN (extract(epoch FROM at) * 1000000)::bigint END,
  id, left(actor, 384), left(reason, 1000), asked, owner, token, left(note, 384), raised
FROM rowlock_forced
WHERE key = $1 AND (at, raised, id) < ('epoch'::timestamptz + $2::bigint * interval '1 microsecond', $3::bigint, $4::bytea)
ORDER BY at DESC, raised DESC, id DESC LIMIT $5::bigint
