package console_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/console"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

func rowlockFilter(key string) lease.Filter { return lease.Filter{Keys: []string{key}} }

// counting counts what is asked of a database, and can refuse it.
type counting struct {
	*sql.DB
	statements atomic.Int64
	lost       atomic.Bool
}

func (c *counting) Conn(ctx context.Context) (*sql.Conn, error) {
	c.statements.Add(1)
	if c.lost.Load() {
		return nil, fmt.Errorf("dial tcp 127.0.0.1:5432: connection refused")
	}
	return c.DB.Conn(ctx)
}

func newCounting(t testing.TB, every time.Duration) (*bed, *counting) {
	e := testdb.Kinds[0].Open(t)
	db := &counting{DB: e.DB}
	return newBed(t, e, func(o *console.Options) { o.DB, o.Every = db, every }), db
}

func TestFiftyViewersCostOneStatementEachTime(t *testing.T) {
	const every = 100 * time.Millisecond
	b, db := newCounting(t, every)
	b.lock("k")
	var viewers sync.WaitGroup
	begun := time.Now()
	for range 50 {
		s := b.stream("page=held")
		viewers.Go(func() {
			for range 3 {
				s.until("view", "k")
			}
		})
	}
	viewers.Wait()
	// The first asks besides which sets of tables there are.
	if n, most := db.statements.Load(), int64(time.Since(begun)/every)+2; n > most || n < 3 {
		t.Errorf("50 viewers of 3 refreshes cost %d statements, want 3 to %d", n, most)
	}
}

func TestViewsThatDifferTakeTurns(t *testing.T) {
	const every = 50 * time.Millisecond
	b, db := newCounting(t, every)
	b.lock("k")
	var viewers sync.WaitGroup
	begun := time.Now()
	for i, query := range []string{
		"page=held", "page=held&sort=age", "page=waits", "page=cycles", "page=held&prefix=k",
	} {
		s := b.stream(query)
		viewers.Go(func() {
			for range 2 {
				s.until("view", []string{"k", "k", "No key", "No callers", "k"}[i])
			}
		})
	}
	viewers.Wait()
	// The first asks besides which sets of tables there are.
	if n, most := db.statements.Load(), int64(time.Since(begun)/every)+2; n > most {
		t.Errorf("5 views cost %d statements, want %d at most", n, most)
	}
}

func TestWithoutViewersNothingIsRead(t *testing.T) {
	b, db := newCounting(t, 20*time.Millisecond)
	s := b.stream("page=held")
	s.until("view", "No key is held")
	s.close()
	quiet := func() bool {
		before := db.statements.Load()
		time.Sleep(100 * time.Millisecond) // that nothing happens can only be waited for
		return db.statements.Load() == before
	}
	for range 100 {
		if quiet() {
			return
		}
	}
	t.Error("the console goes on reading after its viewer has left")
}

func TestALostDatabaseIsSaidAndComesBack(t *testing.T) {
	b, db := newCounting(t, 10*time.Millisecond)
	b.lock("k")
	s := b.stream("page=held")
	s.until("view", "k")
	db.lost.Store(true)
	s.until("trouble", "connection refused")
	if code, page := b.get("?sort=age"); code != http.StatusServiceUnavailable ||
		!strings.Contains(page, "The database does not answer") {
		t.Errorf("a page is answered with %d: %s", code, page)
	}
	db.lost.Store(false)
	s.until("view", "k")
	b.becomes("?sort=age", "k")
}

// A page that cannot be read is reloaded: that sends no statement each time.
func TestReloadsOfAPageThatFailsShareAReading(t *testing.T) {
	b, db := newCounting(t, time.Hour)
	db.lost.Store(true)
	for range 5 {
		if code, page := b.get("?sort=age"); code != http.StatusServiceUnavailable ||
			!strings.Contains(page, "connection refused") {
			t.Fatalf("a page is answered with %d: %s", code, page)
		}
	}
	if n := db.statements.Load(); n != 1 {
		t.Errorf("5 pages that fail cost %d statements, want 1", n)
	}
}

func TestMissingTablesAreSaid(t *testing.T) {
	each(t, func(b *bed) {
		b.serve(b.client, func(o *console.Options) { o.Dialect = b.New(dialect.Prefix("nothing_")) })
		code, page := b.get("")
		if code != http.StatusServiceUnavailable || !strings.Contains(page, "The tables are missing") {
			b.Errorf("a page is answered with %d: %s", code, page)
		}
		b.stream("page=held").until("trouble", "The tables are missing")
	})
}

func TestAClosedClientIsSaid(t *testing.T) {
	b, _ := newCounting(t, 10*time.Millisecond)
	_ = b.client.Close()
	if code, page := b.get("key?k=k"); code != http.StatusServiceUnavailable ||
		!strings.Contains(page, "The client was closed") {
		t.Errorf("a page is answered with %d: %s", code, page)
	}
}

// A page has the longest keys and notes, each byte of which takes four characters.
func TestAPageIsSmallerThan200KB(t *testing.T) {
	b, _ := newCounting(t, 10*time.Millisecond)
	keys := make([]string, 60)
	for i := range keys {
		keys[i] = fmt.Sprintf("%03d", i) + strings.Repeat("k", 97)
	}
	all, err := b.client.LockAll(t.Context(), keys, rowlock.Note(strings.Repeat("n", 100)))
	if err != nil {
		t.Fatal(err)
	}
	b.keep(all)
	if page := b.wants(""); len(page) > 200<<10 {
		t.Errorf("a page has %d bytes", len(page))
	}
}
