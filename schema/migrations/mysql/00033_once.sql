-- +goose Up

-- What was done once, by the key that asked for it: the fingerprint of the request, and the result. It is written in the
-- transaction that does it, so it is there exactly if that was committed.
CREATE TABLE IF NOT EXISTS rowlock_once (
    tenant      VARBINARY(255) NOT NULL DEFAULT '',
    `key`       VARBINARY(255) NOT NULL CHECK (LENGTH(`key`) BETWEEN 1 AND 255),
    fingerprint VARBINARY(32)  NOT NULL DEFAULT '',
    result      LONGBLOB       NULL,
    made_at     DATETIME(6)    NOT NULL,
    expires_at  DATETIME(6)    NOT NULL,
    PRIMARY KEY (tenant, `key`),
    INDEX (expires_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

INSERT IGNORE INTO rowlock_meta (name, value) VALUES ('compatible_from/once', '3');

INSERT IGNORE INTO rowlock_meta (name, value) VALUES ('schema_version/once', '3');

-- +goose Down

CREATE TABLE IF NOT EXISTS rowlock_once (expires_at DATETIME(6) PRIMARY KEY, fingerprint INT);
INSERT INTO rowlock_meta (name) SELECT 'the tables stay: results of once have not expired'
FROM (SELECT 1 UNION ALL SELECT 2) AS twice WHERE EXISTS (SELECT 1 FROM rowlock_once WHERE expires_at > UTC_TIMESTAMP(6));
DELETE FROM rowlock_meta WHERE name IN ('schema_version/once', 'compatible_from/once');
DROP TABLE IF EXISTS rowlock_once;
