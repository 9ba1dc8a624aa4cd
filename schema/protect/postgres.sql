-- What protects a table, for Postgres. Every name is checked before it is put into this. The text
-- is a migration of the application's too, so that all is found out here, and not in Go.

-- name: protect
-- A fence writes the lock's row, and what was written is visible to its own transaction alone until
-- that ends. So a version that is visible and in progress is this transaction's, or one of its
-- savepoints'. ROLLBACK TO takes it away, and the next transaction finds it committed. A setting of
-- the session would prove nothing, because every user can set it. A shared fence locks the row, and
-- does not write it.
--
-- xmin is the lower half of a transaction's number, and no number of this transaction is below its
-- first. A row that was last written 2³² transactions ago could pass if it were so to the number;
-- one that seems to lie ahead makes the server raise an error.
DO $protect$
DECLARE
  target  regclass := to_regclass('@target');
  locks   regclass := to_regclass('@locks');
  columns text[] := ARRAY[@columns]::text[];
  exempt  text[] := ARRAY[@exempt]::text[];
  rel     pg_class;
  placement    name;
  guard   text;
  seen    text;
  refusal text;
  level   text := 'STATEMENT';
  picked  text := '1 AS c0';
  befores text := 'old_rows';
  afters  text := 'new_rows';
  checked text;
  body    text;
  event   text;
  old     record;
BEGIN
  SELECT * INTO rel FROM pg_class WHERE oid = target;
  SELECT n.nspname INTO placement FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
  WHERE c.oid = locks;
  IF locks IS NULL THEN
    RAISE undefined_table USING MESSAGE = 'cannot protect @target: there is no table @locks';
  END IF;
  refusal := CASE
    WHEN target IS NULL THEN 'there is no such table'
    WHEN target = locks THEN 'it has the locks'
    WHEN rel.relkind IN ('v', 'm') THEN 'it is a view: protect the tables below it'
    WHEN rel.relkind = 'f' THEN 'it is a foreign table: protect it where it stands'
    WHEN rel.relkind NOT IN ('r', 'p') THEN 'it is no table'
    WHEN rel.relispartition THEN 'it is a partition: protect its parent'
    WHEN rel.relkind = 'r' AND EXISTS (SELECT 1 FROM pg_inherits WHERE target IN (inhrelid, inhparent))
      THEN 'it inherits or is inherited from, and a statement on one table writes to the other past '
        'its triggers'
  END;
  IF refusal IS NULL THEN
    SELECT CASE WHEN a.attname IS NULL THEN format('it has no column %s, which the key names', w.name)
      ELSE format('its column %s is of type %s, whose text need not be the key''s: smallint, integer, '
        'bigint, text, varchar and uuid are taken', w.name, format_type(a.atttypid, a.atttypmod)) END
    INTO refusal
    FROM unnest(columns) AS w (name) LEFT JOIN pg_attribute AS a
      ON a.attrelid = target AND a.attname = w.name AND a.attnum > 0 AND NOT a.attisdropped
    WHERE a.attname IS NULL OR a.atttypid NOT IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype,
      'text'::regtype, 'varchar'::regtype, 'uuid'::regtype)
    LIMIT 1;
  END IF;
  IF refusal IS NULL THEN
    SELECT format('there is no role %s, which is to be exempt', name) INTO refusal
    FROM unnest(exempt) AS name WHERE NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = name) LIMIT 1;
  END IF;
  IF refusal IS NOT NULL THEN
    RAISE SQLSTATE 'P0RLT' USING MESSAGE = 'cannot protect @target: ' || refusal;
  END IF;
  refusal := CASE
    WHEN NOT has_table_privilege(target, 'TRIGGER') THEN 'make triggers on it (GRANT TRIGGER)'
    WHEN NOT has_schema_privilege(placement, 'CREATE') THEN format('make a function in schema %I', placement)
    WHEN NOT has_table_privilege(locks, 'SELECT') THEN 'read @locks'
  END;
  IF refusal IS NOT NULL THEN
    RAISE insufficient_privilege USING
      MESSAGE = format('cannot protect @target: %I may not %s', current_user, refusal);
  END IF;

@remove
  guard := left('@prefixrowlock_protect_' || rel.relname, 40) || '_' || target::oid;
  seen := format('%I.%I', placement, guard || '_seen');
  guard := format('%I.%I', placement, guard);
  -- By their bytes, as keys are compared: another collation may take two values for one.
  SELECT coalesce(string_agg(format('t.%I%s AS c%s', w.name,
    CASE WHEN a.attcollation <> 0 THEN ' COLLATE "C"' END, n - 1), ', ' ORDER BY n), picked) INTO picked
  FROM unnest(columns) WITH ORDINALITY AS w (name, n)
  JOIN pg_attribute AS a ON a.attrelid = target AND a.attname = w.name;
  -- What is written to a partition fires no trigger of statements on the parent. Those of rows are
  -- every partition's, also of later ones.
  IF rel.relkind = 'p' THEN
    level := 'ROW';
    befores := '(SELECT OLD.*)';
    afters := '(SELECT NEW.*)';
  END IF;
  checked := $check$
    SELECT k.key INTO unfenced FROM (SELECT @key AS key FROM ({rows}) AS d) AS k
    WHERE NOT EXISTS (SELECT 1 FROM {locks} AS r
      WHERE r.key @match AND (r.xmin = pg_current_xact_id()::xid
        OR CASE WHEN (r.xmin::text::bigint - top) & 4294967295 < 2147483648
          THEN txid_status(top + ((r.xmin::text::bigint - top) & 4294967295)) = 'in progress' END))
    LIMIT 1;$check$;
  body := $body$
DECLARE
  top bigint := txid_current();
  unfenced bytea;
BEGIN
  IF TG_OP = 'INSERT' THEN {insert}
  ELSIF TG_OP = 'UPDATE' THEN {update}
  ELSIF TG_OP = 'DELETE' THEN {delete}
  ELSE {truncate}
  END IF;
  IF FOUND THEN {refuse}
  END IF;
  RETURN NULL;
END $body$;
  befores := format('SELECT DISTINCT %s FROM %s AS t', picked, befores);
  afters := format('SELECT DISTINCT %s FROM %s AS t', picked, afters);
  body := replace(body, '{insert}', replace(checked, '{rows}', afters));
  body := replace(body, '{delete}', replace(checked, '{rows}', befores));
  body := replace(body, '{update}', replace(checked, '{rows}',
    replace(befores || ' UNION ' || afters, 'SELECT DISTINCT', 'SELECT')));
  body := replace(body, '{truncate}', CASE WHEN cardinality(columns) > 0 THEN 'SELECT NULL INTO unfenced;'
    ELSE replace(checked, '{rows}', 'SELECT ' || picked) END);
  body := replace(body, '{refuse}', CASE WHEN @warn THEN $count$
    top := nextval(pg_get_serial_sequence('{seen}', 'n'));
    IF top <= 100 OR top % 1000 = 0 THEN -- or the table would grow with every write
      INSERT INTO {seen} VALUES (top, clock_timestamp(), session_user, current_setting('application_name'),
        convert_from(unfenced, 'UTF8'), left(current_query(), 200));
    END IF;$count$ ELSE $raise$
    RAISE SQLSTATE 'P0RLF' USING MESSAGE = format('rowlock: table %I is protected, and %s', TG_TABLE_NAME, CASE
      WHEN unfenced IS NOT NULL THEN format('this transaction has not fenced the lock on %s: write in DoTx of that '
        'key, or call Fence first; a shared lock permits no writes', to_json(convert_from(unfenced, 'UTF8') || '@any'))
      WHEN TG_OP = 'TRUNCATE' THEN 'TRUNCATE has no key: delete the rows under their locks, or truncate as an exempt role'
      ELSE 'a row has NULL in its key, so that no lock is the row''s' END);$raise$ END);
  body := replace(body, '{locks}', format('%I.%I', placement, '@prefixrowlock'));
  body := replace(body, '{seen}', seen);

  IF @warn THEN
    EXECUTE format('CREATE TABLE %s (n bigint GENERATED BY DEFAULT AS IDENTITY, at timestamptz NOT NULL, '
      'role text NOT NULL, application text NOT NULL, key text, query text)', seen);
  END IF;
  EXECUTE format('CREATE FUNCTION %s() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER '
    'SET search_path = pg_catalog, pg_temp AS %L', guard, body);
  EXECUTE format('REVOKE ALL ON FUNCTION %s() FROM PUBLIC', guard);
  EXECUTE format('COMMENT ON FUNCTION %s() IS %L', guard, '@definition');
  FOREACH event IN ARRAY ARRAY['insert', 'update', 'delete', 'truncate'] LOOP
    EXECUTE format('CREATE TRIGGER %I %s %s ON %s%s FOR EACH %s%s EXECUTE FUNCTION %s()',
      '@prefixrowlock_protect_' || event,
      CASE event WHEN 'truncate' THEN 'BEFORE' ELSE 'AFTER' END, event, target,
      CASE WHEN level = 'ROW' OR event = 'truncate' THEN '' WHEN event = 'insert' THEN ' REFERENCING NEW TABLE AS new_rows'
        WHEN event = 'delete' THEN ' REFERENCING OLD TABLE AS old_rows'
        ELSE ' REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows' END,
      CASE event WHEN 'truncate' THEN 'STATEMENT' ELSE level END,
      -- Who has logged in, because a cascade is done as the table's owner.
      CASE WHEN cardinality(exempt) > 0 THEN format(' WHEN (session_user <> ALL (%L::name[]))', exempt) END, guard);
  END LOOP;
  -- It never fires, and keeps the table from becoming a partition or a child: the server takes none
  -- that has such a trigger. What is written to a parent would fire none of those above.
  IF level = 'STATEMENT' THEN
    EXECUTE format('CREATE TRIGGER %I AFTER DELETE ON %s REFERENCING OLD TABLE AS old_rows FOR EACH ROW WHEN (false) '
      'EXECUTE FUNCTION %s()', '@prefixrowlock_protect_alone', target, guard);
  END IF;
END $protect$;

-- name: unprotect
-- It does not need the table of locks, without which nothing can be written to a protected table.
DO $protect$
DECLARE
  target regclass := to_regclass('@target');
  old    record;
BEGIN
  IF target IS NULL THEN
    RAISE SQLSTATE 'P0RLT' USING MESSAGE = 'there is no table @target';
  END IF;
@remove
  IF NOT FOUND THEN
    RAISE SQLSTATE 'P0RLT' USING MESSAGE = '@target is not protected';
  END IF;
END $protect$;

-- name: remove
-- Part of both.
  FOR old IN
    SELECT array_agg(t.tgname) AS triggers, p.oid::regprocedure AS guard,
      format('%I.%I', n.nspname, p.proname || '_seen') AS seen
    FROM pg_trigger AS t JOIN pg_proc AS p ON p.oid = t.tgfoid JOIN pg_namespace AS n ON n.oid = p.pronamespace
    WHERE t.tgrelid = target AND starts_with(t.tgname::text, '@prefixrowlock_protect_') AND NOT t.tgisinternal
    GROUP BY p.oid, n.nspname
  LOOP
    FOR event IN 1 .. cardinality(old.triggers) LOOP
      EXECUTE format('DROP TRIGGER %I ON %s', old.triggers[event], target);
    END LOOP;
    EXECUTE format('DROP FUNCTION %s', old.guard);
    EXECUTE format('DROP TABLE IF EXISTS %s', old.seen);
  END LOOP;

-- name: protected
-- schema, trigger names. A table, what protects it, and which of the four triggers would fire.
SELECT rn.nspname || '.' || c.relname, obj_description(p.oid, 'pg_proc'),
  coalesce(string_agg(split_part(t.tgname, 'rowlock_protect_', 2), ',') FILTER (WHERE t.tgenabled IN ('O', 'A')), ''),
  coalesce(to_regclass(format('%I.%I', n.nspname, p.proname || '_seen'))::text, '')
FROM pg_trigger AS t JOIN pg_proc AS p ON p.oid = t.tgfoid JOIN pg_namespace AS n ON n.oid = p.pronamespace
JOIN pg_class AS c ON c.oid = t.tgrelid JOIN pg_namespace AS rn ON rn.oid = c.relnamespace
WHERE n.nspname = $1 AND starts_with(t.tgname::text, $2) AND NOT t.tgisinternal AND t.tgparentid = 0
GROUP BY rn.nspname, c.relname, p.oid, n.nspname, p.proname ORDER BY rn.nspname, c.relname

-- name: seen
-- Who has written to @seen without a fence.
SELECT role, application, coalesce(min(key), ''), coalesce(min(query), ''), count(*),
  (extract(epoch FROM max(at)) * 1000000)::bigint,
  pg_sequence_last_value(pg_get_serial_sequence('@seen', 'n')::regclass) FROM @seen
GROUP BY role, application ORDER BY count(*) DESC, role, application LIMIT 100
