// Package scan finds the keys of a page in a table with many. What they are is then asked of the
// store, whose own listing computes too much for each row that is not shown.
package scan

import (
	"context"
	"database/sql"
	"embed"
	"strings"

	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/statement"
	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/target"
	"github.com/rowlockdb/rowlock/lease"
)

//go:embed *.sql
var files embed.FS

// Inspector lists rows.
type Inspector interface {
	Inspect(ctx context.Context, f lease.Filter) ([]lease.Record, error)
}

// Table is a store and its database.
type Table struct {
	db         *sql.DB
	store      Inspector
	statements map[string]string
}

// Of returns the table of a database, with a store on it.
func Of(t *target.Target, store Inspector) *Table {
	return &Table{db: t.DB, store: store, statements: statement.Labeled(files, t.Kind, t.Names())}
}

// batch is what one statement fetches.
const batch = 1000

// Page returns at most f.Limit rows, and whether there are more. With Held it leaves rowlock's own
// keys out, unless the prefix is theirs. f.Keys must be empty.
func (t *Table) Page(ctx context.Context, f lease.Filter) (page []lease.Record, more bool, err error) {
	first, _ := lease.Range(f.Prefix)
	after := max(f.After, first)
	for len(page) <= f.Limit {
		want := min(batch, f.Limit+1-len(page))
		keys, err := t.keys(ctx, f, after, want)
		if err != nil || len(keys) == 0 {
			return page, false, err
		}
		found, err := t.store.Inspect(ctx, lease.Filter{Keys: keys, Held: f.Held, Limit: len(keys)})
		if err != nil {
			return nil, false, err
		}
		for _, r := range found {
			own := strings.HasPrefix(r.Key, lease.Reserved) && !strings.HasPrefix(f.Prefix, lease.Reserved)
			if !f.Held || !own {
				page = append(page, r)
			}
		}
		if len(keys) < want {
			return page, false, nil
		}
		after = keys[len(keys)-1]
	}
	return page[:f.Limit], true, nil
}

func (t *Table) keys(ctx context.Context, f lease.Filter, after string, limit int) ([]string, error) {
	name := "keys"
	if f.Held {
		name = "held-keys"
	}
	_, last := lease.Range(f.Prefix)
	args := []any{[]byte(after), []byte(last), limit}
	return statement.Rows(ctx, t.db, t.statements[name], args, func(r *sql.Rows) (key string, err error) {
		return key, r.Scan(&key)
	})
}
