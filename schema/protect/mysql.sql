-- What protects a table, for MySQL and MariaDB, whose triggers are of rows. Names and text of the
-- user's are hexadecimal numbers, which mean the same under every sql_mode and character set.

-- name: trigger
-- AFTER, because what another trigger has made of a row is checked, too. A SELECT INTO is a
-- consistent read, which locks nothing and waits for nothing, except under SERIALIZABLE. What this
-- transaction has written is in its every snapshot, and DoTx commits no mark that could be believed.
CREATE TRIGGER @name AFTER @event ON @target FOR EACH ROW
BEGIN
  DECLARE fenced INT;
@checks;
END

-- name: check
-- The number is what Protect was told. Who has logged in is not CURRENT_USER, who made the trigger.
-- Variables are declared where they are needed, because each costs something for each row.
  SELECT COUNT(*) INTO fenced FROM @locks AS r
  WHERE r.`key` @match AND r.fenced_by = CONNECTION_ID() AND r.fenced_token = r.token
    AND r.owner IS NOT NULL AND r.expires_at < '9999-01-01' AND r.placement = 0;
  IF fenced = 0 THEN
    BEGIN
      DECLARE unfenced VARBINARY(1024) DEFAULT @key;
      DECLARE who VARBINARY(512) DEFAULT LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER())));
      DECLARE said VARCHAR(128) CHARACTER SET utf8mb4;
      DO 0x@definition;
      IF who NOT IN (@exempt) THEN
@refuse;
      END IF;
    END;
  END IF;

-- name: moved
-- A row whose key changes needs both fences.
  IF NOT @old <=> @new THEN
@check;
  END IF;

-- name: raise
-- The server takes 128 characters.
        SET said = COALESCE(CONCAT('rowlock: no fence of "', LEFT(CONVERT(unfenced USING utf8mb4), 40), '@any" for ',
          LEFT(CONVERT(@table USING utf8mb4), 20), ': write in DoTx of it, or Fence first'),
          'rowlock: a row has NULL in its key, so that it has no lock');
        SIGNAL SQLSTATE 'P0RLF' SET MESSAGE_TEXT = said;

-- name: count
-- The number goes on whatever becomes of the row, or the table would grow with every write.
        INSERT INTO @seen (`at`, role, application, `key`)
        VALUES (UTC_TIMESTAMP(6), who, SUBSTRING_INDEX(USER(), '@', -1), unfenced);
        IF LAST_INSERT_ID() > 100 AND LAST_INSERT_ID() % 1000 > 0 THEN
          DELETE FROM @seen WHERE n = LAST_INSERT_ID();
        END IF;

-- name: counted
CREATE TABLE IF NOT EXISTS @seen (
  n BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, `at` DATETIME(6) NOT NULL, role VARBINARY(512) NOT NULL,
  application VARBINARY(512) NOT NULL, `key` VARBINARY(1024) NULL
) ENGINE = InnoDB

-- name: readable
-- The triggers read it as the user who makes them.
SELECT fenced_by FROM @locks LIMIT 0

-- name: table
-- schema, table. The server may have another spelling of both.
SELECT table_type, COALESCE(engine, ''), table_schema, table_name FROM information_schema.tables
WHERE table_schema = ? AND table_name = ?

-- name: cascades
-- schema, table. What a foreign key does to its rows fires no trigger.
SELECT COUNT(*) FROM information_schema.referential_constraints
WHERE constraint_schema = ? AND table_name = ?
  AND NOT (update_rule IN ('NO ACTION', 'RESTRICT') AND delete_rule IN ('NO ACTION', 'RESTRICT'))

-- name: columns
-- schema, table
SELECT column_name, data_type, column_type, COALESCE(character_set_name, '') FROM information_schema.columns
WHERE table_schema = ? AND table_name = ?

-- name: triggers
-- beginning of their names, schema of the locks, the locks' table as triggers name it
SELECT event_object_schema, event_object_table, trigger_name, LOWER(event_manipulation), action_statement
FROM information_schema.triggers
WHERE LOCATE(?, trigger_name) = 1 AND (trigger_schema = ? OR LOCATE(?, action_statement) > 0)
ORDER BY event_object_schema, event_object_table

-- name: seen
-- Who has written to @seen without a fence. In a trigger the server does not tell its statement.
SELECT role, application, COALESCE(MIN(`key`), ''), '', COUNT(*),
  TIMESTAMPDIFF(MICROSECOND, '1970-01-01', MAX(`at`)),
  (SELECT COALESCE(MAX(auto_increment), 1) - 1 FROM information_schema.tables
    WHERE CONCAT('`', table_schema, '`.`', table_name, '`') = '@seen')
FROM @seen GROUP BY role, application ORDER BY COUNT(*) DESC, role, application LIMIT 100
