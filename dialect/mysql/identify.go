package mysql

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	driver "github.com/go-sql-driver/mysql"
	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

// programName is the attribute that sys.processlist and sys.session show.
const programName = "program_name"

// Identify returns dsn, of go-sql-driver/mysql, with the identity as the connection attribute
// program_name. Every session of the pool then has it in performance_schema.session_connect_attrs.
// Give the same identity to rowlock.Config. Empty is its default: host/pid/program.
//
// Everything else in dsn stays, and so does a program_name that is there already. A comma in the
// identity becomes an underscore, because it separates attributes. MySQL and MariaDB take
// attributes when a session connects and never after, so that rowlock.Open cannot do this by
// itself. MariaDB shows them only if performance_schema is on, and its default is off.
//
// The error wraps lease.ErrConfig if dsn cannot be parsed, or for an identity that rowlock.Config
// refuses.
func Identify(dsn, identity string) (string, error) {
	if err := adapter.CheckIdentity(identity); err != nil {
		return "", fmt.Errorf("mysql.Identify: %w", err)
	}
	cfg, err := driver.ParseDSN(dsn)
	if err != nil {
		return "", fmt.Errorf("%w: mysql.Identify: the DSN: %w", lease.ErrConfig, err)
	}
	attributes := strings.Split(cfg.ConnectionAttributes, ",")
	named := func(a string) bool { return strings.HasPrefix(a, programName+":") }
	if slices.ContainsFunc(attributes, named) {
		return dsn, nil
	}
	name := programName + ":" +
		strings.ReplaceAll(cmp.Or(identity, adapter.DefaultIdentity()), ",", "_")
	if cfg.ConnectionAttributes != "" {
		name = cfg.ConnectionAttributes + "," + name
	}
	cfg.ConnectionAttributes = name
	return cfg.FormatDSN(), nil
}
