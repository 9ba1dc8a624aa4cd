package schema

import (
	"fmt"
	"strings"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/lease"
)

// quotes is what each dialect puts around a name.
var quotes = map[string]string{"postgres": `"`, "mysql": "`", "sqlite": `"`}

// check refuses names under which the tables could not be made, before anything is sent.
func check(d dialect.Dialect) error {
	if lease.IsNil(d) {
		return fmt.Errorf("%w: no dialect", lease.ErrConfig)
	}
	if _, ok := quotes[d.Name()]; !ok {
		return fmt.Errorf("%w: there are no tables for the dialect %q", lease.ErrConfig, d.Name())
	}
	if err := d.Names().Check(); err != nil {
		return err
	}
	if d.Name() == "sqlite" {
		return checkSQLite(d.Names())
	}
	return nil
}

// checkSQLite refuses schemas: an attached database belongs to one connection, and the pool's next
// connection lacks it.
func checkSQLite(n dialect.Names) error {
	switch {
	case n.Schema != "":
		return fmt.Errorf("%w: schema %q: SQLite has none; use a file of its own, or a table prefix",
			lease.ErrConfig, n.Schema)
	case strings.HasPrefix(strings.ToLower(n.Prefix), "sqlite_"):
		return fmt.Errorf("%w: table prefix %q: SQLite keeps names that begin with sqlite_ for itself",
			lease.ErrConfig, n.Prefix)
	}
	return nil
}

// fill puts the names into text.
func fill(text string, d dialect.Dialect) string {
	return d.Names().Fill(text, quotes[d.Name()])
}
