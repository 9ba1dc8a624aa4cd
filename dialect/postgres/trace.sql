-- The trace: what became of keys. No lock reads it or waits for it.

-- name: trace-write
-- $1 ages in µs, $2 ids, $3 keys, $4 events, $5 tokens, $6 owners, $7 notes, $8 numbers, $9 details,
-- each as an array. An event happened so long before the statement arrived.
INSERT INTO rowlock_trace (at, id, key, event, token, owner, note, number, detail)
SELECT statement_timestamp() - w.age * interval '1 microsecond', w.id, w.key, w.event, w.token, w.owner,
  w.note, w.number, w.detail
FROM unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::text[],
  $5::bigint[], $6::bytea[], $7::text[], $8::bigint[], $9::text[])
  AS w (age, id, key, event, token, owner, note, number, detail)

-- name: trace-list
-- $1 prefix's length, $2 prefix, $3 time in µs, $4 id: those before; $5 limit
SELECT CASE WHEN at BETWEEN '0001-01-01' AND '9999-12-31'
         THEN (extract(epoch FROM at) * 1000000)::bigint END,
  id, key, event, token, owner, left(note, 384), number, left(detail, 255)
FROM rowlock_trace
WHERE substr(key, 1, $1::int) = $2
  AND at <= 'epoch'::timestamptz + $3::bigint * interval '1 microsecond'
  AND (at < 'epoch'::timestamptz + $3::bigint * interval '1 microsecond' OR id < $4::bigint)
ORDER BY at DESC, id DESC LIMIT $5::bigint

-- name: trace-list-key
-- $1 key, $2 time in µs, $3 id: those before; $4 limit
SELECT CASE WHEN at BETWEEN '0001-01-01' AND '9999-12-31'
         THEN (extract(epoch FROM at) * 1000000)::bigint END,
  id, key, event, token, owner, left(note, 384), number, left(detail, 255)
FROM rowlock_trace
WHERE key = $1 AND at <= 'epoch'::timestamptz + $2::bigint * interval '1 microsecond'
  AND (at < 'epoch'::timestamptz + $2::bigint * interval '1 microsecond' OR id < $3::bigint)
ORDER BY at DESC, id DESC LIMIT $4::bigint

-- name: trace-sweep
-- $1 retention in µs, $2 the most rows to remove: the oldest. statement_timestamp, because an index
-- cannot be searched for a clock that goes on.
DELETE FROM rowlock_trace WHERE at < statement_timestamp() - $1::bigint * interval '1 microsecond' AND ctid = ANY (ARRAY(
  SELECT ctid FROM rowlock_trace WHERE at < statement_timestamp() - $1::bigint * interval '1 microsecond'
  ORDER BY at, id LIMIT $2::bigint))
