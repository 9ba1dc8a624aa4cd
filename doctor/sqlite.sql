-- What an SQLite says about itself. The section names are the same for every database, of which
-- one may have no such thing, and no such section. Every statement only reads.

-- name: server
-- The version, and no user
SELECT 'SQLite ' || sqlite_version(), ''

-- name: settings
-- Of one connection of the pool: name, value, where it is set, nothing
SELECT 'journal_mode', journal_mode, 'PRAGMA', '' FROM pragma_journal_mode
UNION ALL SELECT 'synchronous', CAST(synchronous AS TEXT), 'PRAGMA', '' FROM pragma_synchronous
UNION ALL SELECT 'busy_timeout', CAST(timeout AS TEXT), 'PRAGMA', '' FROM pragma_busy_timeout
UNION ALL SELECT 'query_only', CAST(query_only AS TEXT), 'PRAGMA', '' FROM pragma_query_only
UNION ALL SELECT 'read_uncommitted', CAST(read_uncommitted AS TEXT), 'PRAGMA', ''
  FROM pragma_read_uncommitted
UNION ALL SELECT 'locking_mode', locking_mode, 'PRAGMA', '' FROM pragma_locking_mode
UNION ALL SELECT 'file', file, 'PRAGMA database_list', '' FROM pragma_database_list
  WHERE name = 'main'

-- name: clock
-- In µs since 1970, to the millisecond
SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER) * 1000

-- name: columns
-- Of each table whose name begins with ?2: table, column with its type and whether it has a default
SELECT m.name, c.name || ' ' || c.type || iif(c.dflt_value IS NULL, '', ' with a default')
FROM main.sqlite_schema AS m CROSS JOIN pragma_table_info(m.name, 'main') AS c
WHERE m.type = 'table' AND substr(m.name, 1, length(?2)) = ?3 COLLATE NOCASE AND ?1 = 'main'

-- name: indexes
-- table, of which kind it is, columns
SELECT m.name, iif(i.origin = 'pk', 'primary', iif(i."unique", 'unique', 'index')), (SELECT group_concat(c.name) FROM
    (SELECT name FROM pragma_index_info(i.name, 'main') ORDER BY seqno) AS c)
FROM main.sqlite_schema AS m CROSS JOIN pragma_index_list(m.name, 'main') AS i
WHERE m.type = 'table' AND substr(m.name, 1, length(?2)) = ?3 COLLATE NOCASE AND ?1 = 'main'

-- name: alterations
-- What was changed in the tables: kind, table, detail
SELECT 'trigger', tbl_name, name FROM main.sqlite_schema
WHERE type = 'trigger' AND substr(tbl_name, 1, length(?2)) = ?3 COLLATE NOCASE AND ?1 = 'main'

-- name: bloat
-- The file, its pages, those that are free, bytes of a page
SELECT p.page_count, f.freelist_count, z.page_size
FROM pragma_page_count AS p, pragma_freelist_count AS f, pragma_page_size AS z
