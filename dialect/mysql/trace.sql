-- The trace: what became of keys. No lock reads it or waits for it.

-- name: trace-write
-- JSON array of [a, i, k, e, t, o, n, m, d]: age in µs, id, hexadecimal key, event, token,
-- hexadecimal owner and note, number, hexadecimal detail. An event happened so long before the
-- statement arrived.
INSERT INTO rowlock_trace (`at`, id, `key`, event, token, owner, note, number, detail)
SELECT UTC_TIMESTAMP(6) - INTERVAL j.a MICROSECOND, j.i, UNHEX(j.k), j.e, j.t, UNHEX(j.o), UNHEX(j.n), j.m,
  UNHEX(j.d)
FROM JSON_TABLE(?, '$[*]' COLUMNS (
  a BIGINT PATH '$[0]', i BIGINT PATH '$[1]', k VARCHAR(510) CHARACTER SET latin1 PATH '$[2]',
  e VARCHAR(16) CHARACTER SET latin1 PATH '$[3]', t BIGINT PATH '$[4]',
  o VARCHAR(32) CHARACTER SET latin1 PATH '$[5]', n VARCHAR(768) CHARACTER SET latin1 PATH '$[6]',
  m BIGINT PATH '$[7]', d VARCHAR(510) CHARACTER SET latin1 PATH '$[8]')) AS j

-- name: trace-list
-- prefix's length, prefix, time in µs, the same, id: those before; limit
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', `at`), id, `key`, event, token, owner, LEFT(note, 384), number,
  LEFT(detail, 255)
FROM rowlock_trace
WHERE LEFT(`key`, ?) = ? AND `at` <= TIMESTAMPADD(MICROSECOND, ?, '1970-01-01 00:00:00.000000')
  AND (`at` < TIMESTAMPADD(MICROSECOND, ?, '1970-01-01 00:00:00.000000') OR id < ?)
ORDER BY `at` DESC, id DESC LIMIT ?

-- name: trace-list-key
-- key, time in µs, the same, id: those before; limit
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', `at`), id, `key`, event, token, owner, LEFT(note, 384), number,
  LEFT(detail, 255)
FROM rowlock_trace
WHERE `key` = ? AND `at` <= TIMESTAMPADD(MICROSECOND, ?, '1970-01-01 00:00:00.000000')
  AND (`at` < TIMESTAMPADD(MICROSECOND, ?, '1970-01-01 00:00:00.000000') OR id < ?)
ORDER BY `at` DESC, id DESC LIMIT ?

-- name: trace-sweep
-- retention in µs, the most rows to remove: the oldest
DELETE FROM rowlock_trace WHERE `at` < UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND ORDER BY `at`, id LIMIT ?
