package tokenfence

import (
	"fmt"
	"strings"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Rows says where the tokens stand: in a table of your own, in the database that has the data.
// Names are compared exactly: on PostgreSQL a name that was created without quotes is in lower
// case.
type Rows struct {
	// Table is its name, or "schema.name". A name without a schema is found as the transaction's
	// own session finds it: write the schema if sessions of the pool change it.
	Table string
	// Key is the column that names the row. It must be the primary key, or unique. The database
	// decides which row a key names, for example by the column's collation.
	Key string
	// Token is the column that keeps the highest token: BIGINT NOT NULL DEFAULT 0. Only Pass writes
	// to it, and no trigger may change what Pass writes: PostgreSQL does not tell of that.
	Token string
	// Create makes a missing row of a key and a token. All other columns need a default. It is
	// meant for a table of tokens alone, whose rows are never deleted and whose keys are the locks'
	// own:
	//
	//	CREATE TABLE lock_token (name VARCHAR(255) PRIMARY KEY, token BIGINT NOT NULL)
	//
	// On MySQL and MariaDB use VARBINARY(255), so that "a" and "A" are two keys.
	Create bool
}

// Fence lets a transaction write under a token unless a newer one has written. It holds no
// connection and is safe for concurrent use.
type Fence struct {
	d           *sqlstore.Dialect
	at          Rows
	raise, seen string
}

// New returns a Fence for the tokens of a table. d is the dialect of the database with the table;
// its Prefix and Schema do not matter. New sends nothing: the first Pass finds out whether the
// table is as described. An error is lease.ErrConfig.
func New(d dialect.Dialect, at Rows) (*Fence, error) {
	if isnil.Value(d) {
		return nil, fmt.Errorf("%w: tokenfence.New needs the dialect of the database with the table",
			lease.ErrConfig)
	}
	of := sqlstore.Of(d)
	names, err := at.quote(of)
	if err != nil {
		return nil, err
	}
	on := strings.NewReplacer("@table", names[0], "@key", names[1], "@token", names[2])
	raise := "token-raise"
	if at.Create {
		raise = "token-make"
	}
	return &Fence{
		d: of, at: at,
		raise: on.Replace(of.Sections.Text(raise)),
		seen:  on.Replace(of.Sections.Text("token-seen")),
	}, nil
}

// quote returns the names of the table, the key and the token as the database writes them.
func (r Rows) quote(d *sqlstore.Dialect) (names [3]string, err error) {
	fields := []struct{ field, name string }{{"Table", r.Table}, {"Key", r.Key}, {"Token", r.Token}}
	for i, f := range fields {
		names[i], err = d.Quote(f.name)
		if err != nil || i > 0 && strings.Contains(f.name, ".") {
			return names, fmt.Errorf("%w: tokenfence.Rows.%s is %q: use a letter or _, then up to 62 "+
				"letters, digits or _; only the table may have a schema and a dot before it",
				lease.ErrConfig, f.field, f.name)
		}
	}
	if strings.EqualFold(r.Key, r.Token) {
		return names, fmt.Errorf("%w: tokenfence.Rows.Key and Token are both %q: name two columns",
			lease.ErrConfig, r.Key)
	}
	return names, nil
}
