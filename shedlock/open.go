package shedlock

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Option configures Open.
type Option func(*string)

// Table names the table, if it is not shedlock: schema.name or name, as ShedLock was given it.
func Table(name string) Option { return func(table *string) { *table = name } }

var names = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*\.)?[A-Za-z_][A-Za-z0-9_]*$`)

// Open returns a store on ShedLock's table. It makes no table. Its error says what to change about
// one that is missing (ErrNoSchema) or otherwise (ErrSchemaVersion, ErrNotDurable), and about a pool
// whose sessions have a time zone of their own (ErrConfig). The caller closes db, after the client.
func Open(ctx context.Context, db *sql.DB, d dialect.Dialect, opts ...Option) (*Store, error) {
	of, err := sqlstore.CheckOpen("shedlock.Open", db, d)
	if err = cmp.Or(err, isnil.Context("shedlock.Open", ctx)); err != nil {
		return nil, err
	}
	table := "shedlock"
	for i, o := range opts {
		if o == nil {
			return nil, fmt.Errorf("%w: shedlock.Open: option %d is nil; leave it out", lease.ErrConfig, i+1)
		}
		o(&table)
	}
	if !names.MatchString(table) {
		return nil, fmt.Errorf("%w: shedlock: %q names no table; write name or schema.name", lease.ErrConfig, table)
	}
	catalog, ok := catalogs[d.Name()]
	if !ok {
		return nil, fmt.Errorf("%w: shedlock on %s; use PostgreSQL, MySQL or MariaDB", lease.ErrUnsupported, d.Name())
	}
	if catalog.numbered { // ShedLock quotes no name, and PostgreSQL then has it in lower case
		table = strings.ToLower(table)
	}
	quoted, err := of.OwnIn(ctx, db, table)
	if err != nil {
		return nil, err
	}
	t, err := catalog.read(ctx, db, quoted)
	if err != nil {
		return nil, err
	}
	if err := t.check(table, catalog); err != nil {
		return nil, err
	}
	s := &Store{
		db: db, dialect: of, text: statements(catalog.words, quoted, catalog.numbered), zone: t.zone,
		clocks: clocks{seen: make(map[string]sighting)}, ends: t.columns["lock_until"].kind == "timestamp",
		names: t.columns["name"].room(), most: t.columns["locked_by"].room(), widest: cmp.Or(widest[t.charset], unicode.MaxASCII),
	}
	return s, s.settle(ctx, "open", table, new(bool), func(*sql.Conn) (bool, error) { return false, nil })
}
