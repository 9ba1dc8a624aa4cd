package console_test

import (
	"bytes"
	"context"
	"database/sql"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rowlockdb/rowlock/console"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// A panic of the application's functions is said and logged, and ends neither the application nor
// the stream.
func TestAPanicIsSaid(t *testing.T) {
	var calm atomic.Bool
	var log bytes.Buffer // read after the requests that write to it
	b := newBed(t, testdb.Kinds[0].Open(t), func(o *console.Options) {
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		o.Timeline = func(context.Context, string) ([]console.Event, error) {
			if !calm.Load() {
				panic("no timeline")
			}
			return []console.Event{{Kind: "granted again"}}, nil
		}
		o.Findings = func(context.Context) ([]console.Finding, error) { panic("no findings") }
	})
	code, page := b.get("findings")
	if code != http.StatusServiceUnavailable || !strings.Contains(page, "Options.Findings: no findings") {
		t.Errorf("findings are answered with %d: %s", code, page)
	}
	if text := log.String(); !strings.Contains(text, "panics_test.go") {
		t.Errorf("the log has no stack: %s", text)
	}
	b.lock("k")
	s := b.stream("page=key&k=k")
	s.until("view", "Options.Timeline: no timeline") // and the rest of the page
	calm.Store(true)
	s.until("view", "granted again")
}

// panicking is a driver's pool that panics.
type panicking struct {
	*sql.DB
	calm atomic.Bool
}

func (p *panicking) Conn(ctx context.Context) (*sql.Conn, error) {
	if !p.calm.Load() {
		panic("the driver is broken")
	}
	return p.DB.Conn(ctx)
}

func TestAPanicOfADriverIsSaid(t *testing.T) {
	e := testdb.Kinds[0].Open(t)
	db := &panicking{DB: e.DB}
	b := newBed(t, e, func(o *console.Options) { o.DB = db })
	s := b.stream("page=waits")
	s.until("trouble", "the driver is broken")
	db.calm.Store(true)
	s.until("view", "No key is waited for")
}
