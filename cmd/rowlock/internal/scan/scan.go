// Package scan finds the keys of a page in a table with many. What they are is then asked of the
// store, whose own listing computes too much for each row that is not shown.
package scan

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"strings"

	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/statement"
	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/target"
	"github.com/rowlockdb/rowlock/lease"
)

//go:embed *.sql
var files embed.FS

// inspector lists rows.
type inspector interface {
	Inspect(ctx context.Context, f lease.Filter) ([]lease.Record, error)
}

// Table is a store and its database.
type Table struct {
	db         *sql.DB
	store      inspector
	statements map[string]string
}

// Of returns the table of a database, with a store on it.
func Of(t *target.Target, store inspector) *Table {
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
		if err != nil {
			return nil, false, err
		}
		found, err := t.records(ctx, keys, f.Held)
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

func (t *Table) records(ctx context.Context, keys []string, held bool) ([]lease.Record, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	return t.store.Inspect(ctx, lease.Filter{Keys: keys, Held: held, Limit: len(keys)})
}

func (t *Table) keys(ctx context.Context, f lease.Filter, after string, limit int) (keys []string, err error) {
	name := "keys"
	if f.Held {
		name = "held-keys"
	}
	_, last := lease.Range(f.Prefix)
	rows, err := t.db.QueryContext(ctx, t.statements[name], []byte(after), []byte(last), limit)
	if err != nil {
		return nil, fmt.Errorf("rowlock: list keys: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var key []byte
		if err := rows.Scan(&key); err != nil {
			return nil, fmt.Errorf("rowlock: list keys: %w", err)
		}
		keys = append(keys, string(key))
	}
	return keys, rows.Err()
}
