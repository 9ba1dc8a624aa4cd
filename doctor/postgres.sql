-- What a PostgreSQL says about itself. The section names are the same for every database, of which
-- one may have no such thing, and no such section. Every statement only reads.

-- name: server
-- The version, and the user as a GRANT names it
SELECT version(), quote_ident(current_user)

-- name: settings
-- name, value, where it was set, the role or database that has it set. First what holds in this
-- session, then the defaults of other roles that may lock.
SELECT s.name, current_setting(s.name), s.source, CASE s.source
    WHEN 'user' THEN 'ROLE ' || quote_ident(current_user)
    WHEN 'database' THEN 'DATABASE ' || quote_ident(current_database())
    WHEN 'database user'
      THEN 'ROLE ' || quote_ident(current_user) || ' IN DATABASE ' || quote_ident(current_database())
    ELSE '' END
FROM pg_settings AS s WHERE s.name IN ('fsync', 'full_page_writes', 'synchronous_commit',
  'synchronous_standby_names', 'default_transaction_isolation', 'default_transaction_read_only',
  'statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout',
  'idle_session_timeout', 'transaction_timeout', 'autovacuum', 'track_counts')
UNION ALL
SELECT split_part(c, '=', 1), substr(c, strpos(c, '=') + 1), 'pg_db_role_setting',
  concat_ws(' IN DATABASE ', 'ROLE ' || quote_ident(r.rolname), quote_ident(d.datname))
FROM pg_db_role_setting AS p
JOIN pg_roles AS r ON r.oid = p.setrole AND r.rolname <> current_user
LEFT JOIN pg_database AS d ON d.oid = p.setdatabase
CROSS JOIN LATERAL unnest(p.setconfig) AS c
WHERE (p.setdatabase = 0 OR d.datname = current_database())
  AND split_part(c, '=', 1) IN ('synchronous_commit', 'default_transaction_isolation',
    'default_transaction_read_only', 'statement_timeout', 'lock_timeout',
    'idle_in_transaction_session_timeout', 'idle_session_timeout', 'transaction_timeout')
  AND (SELECT bool_or(has_table_privilege(r.oid, t.oid, 'UPDATE'))
    FROM pg_class AS t WHERE t.oid = to_regclass('rowlock'))

-- name: standby
SELECT pg_is_in_recovery()

-- name: replicas
-- Each that this server sends to: name, how it is waited for, how far it lags. A user without the
-- rights of pg_monitor sees that there is one, and nothing else.
SELECT coalesce(nullif(application_name, ''), client_addr::text, 'a replica'),
  coalesce(sync_state, ''), coalesce(extract(epoch FROM replay_lag), 0)::float8
FROM pg_stat_replication

-- name: session
SELECT pg_backend_pid()

-- name: left-behind
-- What an earlier client has set in this session. A pooler sets those that are left out.
SELECT name, current_setting(name) FROM pg_settings
WHERE source = 'session' AND name NOT IN ('client_encoding', 'DateStyle', 'TimeZone',
  'standard_conforming_strings', 'application_name', 'IntervalStyle', 'search_path',
  'default_transaction_read_only', 'in_hot_standby', 'session_authorization', 'role')

-- name: encryption
SELECT v.name, v.value FROM pg_stat_ssl AS s, LATERAL (VALUES ('ssl', s.ssl::text),
  ('version', coalesce(s.version, '')), ('cipher', coalesce(s.cipher, ''))) AS v(name, value)
WHERE s.pid = pg_backend_pid()

-- name: peer
-- From which host the server sees this session come: none for a socket, or for its own address
SELECT coalesce(host(nullif(inet_client_addr(), inet_server_addr())), '')

-- name: clock
-- In µs since 1970
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint

-- name: connections
-- name, value: limits, and what is in use
SELECT 'max_connections', current_setting('max_connections')::bigint
UNION ALL SELECT name, setting::bigint FROM pg_settings
  WHERE name IN ('superuser_reserved_connections', 'reserved_connections')
UNION ALL SELECT 'limit of this role', rolconnlimit FROM pg_roles WHERE rolname = current_user
UNION ALL SELECT 'limit of this database', datconnlimit FROM pg_database
  WHERE datname = current_database()
UNION ALL SELECT 'connections in use', coalesce(sum(numbackends), 0)::bigint FROM pg_stat_database

-- name: columns
-- Of each table whose name begins with $1: table, column with its type and whether it has a default
SELECT c.relname, concat_ws(' ', a.attname, a.atttypid::regtype, CASE WHEN a.atthasdef OR a.attidentity <> '' THEN 'with a default' END)
FROM pg_class AS c
JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relkind IN ('r', 'p') AND left(c.relname, length($1::text)) = $1::text
  AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('rowlock_meta'))

-- name: indexes
-- table, of which kind it is, columns
SELECT t.relname, CASE WHEN i.indisprimary THEN 'primary' WHEN i.indisunique THEN 'unique' ELSE 'index' END, (SELECT string_agg(a.attname, ',' ORDER BY k.n)
    FROM unnest(i.indkey::smallint[]) WITH ORDINALITY AS k (num, n)
    JOIN pg_attribute AS a ON a.attrelid = t.oid AND a.attnum = k.num)
FROM pg_index AS i JOIN pg_class AS t ON t.oid = i.indrelid
WHERE i.indisvalid AND i.indpred IS NULL AND left(t.relname, length($1::text)) = $1::text
  AND t.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('rowlock_meta'))

-- name: alterations
-- What was changed in the tables: kind, table, detail
SELECT 'storage', relname, CASE relpersistence WHEN 'u' THEN 'UNLOGGED' ELSE 'temporary' END
FROM pg_class WHERE relkind = 'r' AND relpersistence <> 'p'
  AND left(relname, length($1::text)) = $1::text
  AND relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('rowlock_meta'))
UNION ALL
SELECT 'trigger', t.relname, g.tgname FROM pg_trigger AS g JOIN pg_class AS t ON t.oid = g.tgrelid
WHERE NOT g.tgisinternal AND g.tgenabled <> 'D' AND left(t.relname, length($1::text)) = $1::text
  AND t.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('rowlock_meta'))
UNION ALL
SELECT 'row-level security', relname, 'ENABLE ROW LEVEL SECURITY'
FROM pg_class WHERE relrowsecurity AND left(relname, length($1::text)) = $1::text
  AND relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('rowlock_meta'))

-- name: bloat
-- table, live rows, dead rows, bytes, whether it is vacuumed, when last, by the server's counters
SELECT s.relname, s.n_live_tup, s.n_dead_tup, pg_table_size(s.relid),
  NOT coalesce((SELECT o.option_value IN ('false', 'off', 'no', '0')
    FROM pg_options_to_table(c.reloptions) AS o WHERE o.option_name = 'autovacuum_enabled'), false),
  coalesce(to_char(greatest(s.last_vacuum, s.last_autovacuum) AT TIME ZONE 'UTC',
    'YYYY-MM-DD HH24:MI:SS UTC'), 'never')
FROM pg_stat_all_tables AS s JOIN pg_class AS c ON c.oid = s.relid
WHERE left(s.relname, length($1::text)) = $1::text
  AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('rowlock_meta'))

-- name: horizon
-- What keeps dead versions from being removed: what, which, for how many seconds. It says whether
-- something was hidden from this user.
SELECT 'transaction', 'pid ' || pid || ' of ' || usename || ' (' || state || ')',
  coalesce(extract(epoch FROM clock_timestamp() - xact_start), 0)::float8
FROM pg_stat_activity
WHERE xact_start IS NOT NULL AND pid <> pg_backend_pid() AND datname = current_database()
  AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
UNION ALL
SELECT 'prepared transaction', gid, extract(epoch FROM clock_timestamp() - prepared)::float8
FROM pg_prepared_xacts WHERE database = current_database()
UNION ALL
SELECT 'replication slot', slot_name, 0 FROM pg_replication_slots
WHERE NOT active AND (xmin IS NOT NULL OR catalog_xmin IS NOT NULL)
UNION ALL
SELECT 'hidden', count(*) || ' sessions of other users', 0 FROM pg_stat_activity
WHERE datname = current_database() AND backend_type IS NULL HAVING count(*) > 0
