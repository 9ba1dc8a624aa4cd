package sqlstore

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/rowlockdb/rowlock/lease"
)

// Names says where rowlock's tables stand. The zero value means tables called rowlock,
// rowlock_floor and so on, in the schema or database that Located finds.
type Names struct {
	// Schema is the Postgres schema or MySQL database that has the tables, or "main" of an SQLite
	// file. It is empty until Located has found it, unless the user names it.
	Schema string
	// Found says that Located has found the schema, which may then have any name.
	Found bool
	// Prefix is put before each table's name: "billing_" gives billing_rowlock,
	// billing_rowlock_floor, …
	Prefix string
	// Placement is the placement of the rows that these statements may touch: 0 for leases. See
	// Dialect.At.
	Placement int
}

// Settings configure a dialect.
type Settings struct {
	Names
	// Listen and Pooled are adapter.Place's.
	Listen string
	Pooled bool
	// Unswept says that the user need not have the rights that only sweeping needs.
	Unswept bool
	// Lockless says that the user reads what the tables of locks say of their version, and need not
	// even see the others.
	Lockless bool
	// Set is what the user needs besides Core. Empty: nothing.
	Set Set
	// Identity is that of the client, for sessions that can show it. Empty: host/pid/program.
	Identity string
	// Missing is the number of the first option that was nil: 1 for the first. 0: none was.
	Missing int
}

// An identifier cannot be bound as a parameter, so Check checks it here and statements quote it. 40
// bytes leave room for our own suffixes below the 63 bytes at which Postgres cuts a name off
// without an error.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,39}$`)

// Check returns an error that wraps lease.ErrConfig for a name that is not a plain identifier.
func (n Names) Check() error {
	for what, name := range map[string]string{"table prefix": n.Prefix, "schema": n.Schema} {
		found := n.Found && what == "schema"
		if name != "" && !found && !identifier.MatchString(name) {
			return fmt.Errorf("%w: %s %q: use a letter or _, then up to 39 letters, digits or _",
				lease.ErrConfig, what, name)
		}
	}
	return nil
}

// Table returns the quoted name of one of rowlock's tables.
func (n Names) Table(table, quote string) string {
	name := quote + n.Prefix + table + quote
	if n.Schema != "" {
		name = quote + n.Schema + quote + "." + name
	}
	return name
}

// blank is what Fill fills.
var blank = regexp.MustCompile(`@placement|@last_token|rowlock(_floor|_meta|_queue|_hold|_once|_once_expiry|` +
	`_wait|_wait_key|_member|_party|_latch|_limit|_forced|_trace|_era|_down)?\b`)

// Fill replaces the default names of the tables in SQL by their quoted names, @placement by the
// placement, and @last_token by the largest token that is ever granted. @era stays, because each
// session has its own: see package era.
func (n Names) Fill(sql, quote string) string {
	return n.fill(sql, quote, blank.FindAllStringIndex(sql, -1))
}

// fill is Fill with the places of blanks, looked for once: each client fills all its statements.
func (n Names) fill(sql, quote string, blanks [][]int) string {
	if strings.Contains(sql, quote+"rowlock") {
		panic("dialect: SQL text must not quote the tables itself: " + sql)
	}
	other := map[string]string{"@placement": strconv.Itoa(n.Placement), "@last_token": (lease.MaxToken - 1).String()}
	for _, index := range []string{"rowlock_once_expiry", "rowlock_wait_key"} {
		other[index] = Names{Prefix: n.Prefix}.Table(index, quote) // SQLite wants no file's name
	}
	var out strings.Builder
	end := 0
	for _, b := range blanks {
		word := sql[b[0]:b[1]]
		out.WriteString(sql[end:b[0]] + cmp.Or(other[word], n.Table(word, quote)))
		end = b[1]
	}
	return out.String() + sql[end:]
}
