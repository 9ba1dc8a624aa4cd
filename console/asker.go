package console

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/shown"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

// What it takes at most to open connections and to ask, in statements: one more with each look,
// while the server waits for the row. idle is how long connections stay open for the next page.
const (
	perOpening = 50
	perAnswer  = 8
	look       = 150 * time.Millisecond
	idle       = time.Minute
)

// asker asks the server what has the row of an expired key locked. It has connections of its own:
// those of the client would wait for the row, and hold up its locks.
type asker struct {
	o     Options
	space string // the client's KeyPrefix

	mu    sync.Mutex
	table rowlock.Table // nil unless open
	last  *time.Timer
}

// ask returns what the page says, and how many statements that took.
func (a *asker) ask(ctx context.Context, key string) (says string, statements int) {
	if isnil.Value(a.o.DB) || sqlstore.Of(a.o.Dialect).Evictor == nil {
		return shown.Unasked, 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.table == nil {
		table, err := rowlock.OpenTableContext(adapter.Reading(ctx), a.o.DB, a.o.Dialect, &rowlock.Config{
			Connections: 2, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			return shown.Unasked, perOpening
		}
		a.table, a.last = table, time.AfterFunc(idle, a.close)
		statements = perOpening
	}
	a.last.Reset(idle)
	began := time.Now()
	flags := shown.Flags(sqlstore.Of(a.o.Dialect).Names())
	if says = shown.WhoLocks(ctx, a.table, a.space+key, flags); says == shown.Unasked {
		a.shut() // another server may answer by now
	}
	return says, statements + perAnswer + int(time.Since(began)/look)
}

func (a *asker) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.shut()
}

func (a *asker) shut() {
	if a.table != nil {
		a.last.Stop()
		_ = a.table.Close()
		a.table = nil
	}
}
