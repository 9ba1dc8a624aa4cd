//go:build linux

package fight

import (
	"context"
	"database/sql"
	"time"

	"github.com/rowlockdb/rowlock/internal/attack/history"
)

// stalled is from when on a gap is recorded, and beat how often it is looked for. A write is a
// commit, which the database has others for too: it is sent more seldom.
const (
	stalled = 300 * time.Millisecond
	beat    = 50 * time.Millisecond
	pulse   = 100 * time.Millisecond
)

// watchProcess records times in which this process did not run: it was stopped, or the machine was
// busy.
func (w *worker) watchProcess(ctx context.Context) {
	last := Now()
	for ctx.Err() == nil {
		Sleep(ctx, beat)
		w.gap("process", last, beat)
		last = Now()
	}
}

// watchDatabase records times in which the database did not answer a write that waits for no row,
// on a connection of its own. A read would be answered while the disk makes every commit take
// seconds, for which locks are lost.
func (w *worker) watchDatabase(ctx context.Context) {
	for ctx.Err() == nil {
		if conn, err := w.db.Conn(ctx); err == nil {
			w.watchConn(ctx, conn)
			_ = conn.Close()
		}
		Sleep(ctx, beat)
	}
}

// watchConn returns when the connection fails.
func (w *worker) watchConn(ctx context.Context, conn *sql.Conn) {
	for ctx.Err() == nil {
		last := Now()
		_, err := conn.ExecContext(ctx, w.Database.pulse(), w.name)
		w.gap("database", last, 0)
		if err != nil {
			return
		}
		Sleep(ctx, pulse)
	}
}

func (w *worker) gap(what string, last int64, usual time.Duration) {
	if t := Now(); t-last > int64(stalled+usual) {
		w.record.Add(history.Event{Kind: history.Stall, Act: what, Process: w.name, Sent: last, Told: t})
	}
}
