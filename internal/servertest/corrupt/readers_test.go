package corrupt

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"regexp"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/doctor"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// last is a key that every listing ends with.
const last = "z"

// FuzzWatch watches rows that change from one draw to another. It tells of a listing or its error,
// and of no key what its row does not say.
func FuzzWatch(f *testing.F) {
	seed(f)
	e := loose(f)
	c, err := rowlock.Open(e.Pool(f), e.Dialect, servertest.Config(func(c *rowlock.Config) {
		c.WatchEvery = 10 * time.Millisecond
	}))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = c.Close() })
	f.Fuzz(func(t *testing.T, before, after []byte) {
		ctx, cancel := context.WithTimeout(t.Context(), bound)
		defer cancel()
		next, stop := iter.Pull2(c.Watch(ctx, ""))
		defer stop()
		may := make(map[string]bool)
		for n, rows := range [][]byte{before, after} {
			fresh(t, e, &draw{rows}, ofLocks)
			e.Exec(t, `INSERT INTO {rowlock} (key, owner, token, acquired_at, expires_at) VALUES (?, ?, ?, 0, ?)`,
				[]byte(last), make([]byte, 16), 1+n, time.Now().Add(time.Hour).UnixMilli())
			rowsOf(t, e, may)
			told(t, may, next, lease.Token(1+n))
		}
	})
}

// told reads until the last key is granted with this token, or a listing fails.
func told(t *testing.T, may map[string]bool, next func() (lease.Event, error, bool), token lease.Token) {
	for {
		ev, err, more := next()
		switch {
		case !more:
			t.Fatal("the watch has ended")
		case err != nil:
			if !isTyped(err) {
				t.Error(err)
			}
			if ev.Key != "" {
				continue // one row of many
			}
			return
		case ev.Kind == lease.EventGranted && ev.Key == last && ev.Token == token:
			return
		}
		if ev.Kind < lease.EventGranted || ev.Kind > lease.EventForced || ev.Token < 0 || ev.Remaining < 0 {
			t.Errorf("%+v", ev)
		}
		if ev.Kind == lease.EventGranted && !may[fmt.Sprint(ev.Key, " ", ev.Token)] {
			t.Errorf("no row says %+v", ev)
		}
	}
}

// rowsOf adds what the rows say to what may be told of them: an event may wait for its reader.
func rowsOf(t *testing.T, e *testdb.Env, may map[string]bool) {
	rows, err := e.DB.Query(e.SQL(`SELECT key, token FROM {rowlock}`))
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var key, token sql.RawBytes
		if err := rows.Scan(&key, &token); err != nil {
			t.Fatal(err)
		}
		may[string(key)+" "+string(token)] = true
	}
}

var negative = regexp.MustCompile(`(up to|expired) -`)

// FuzzDoctor examines rows by hand: each check has a finding, and none counts backwards.
func FuzzDoctor(f *testing.F) {
	seed(f)
	e := loose(f)
	db := e.Pool(f)
	only := []string{"schema", "tables", "dead-rows", "orphans", "deadlocks"}
	f.Fuzz(func(t *testing.T, rows, meta []byte) {
		fresh(t, e, &draw{rows}, ofLocks)
		ctx, cancel := context.WithTimeout(t.Context(), bound)
		defer cancel()
		r, err := doctor.Examine(ctx, db, e.Dialect, &doctor.Options{Only: only, Retention: time.Second})
		if err != nil || len(r.Findings) != len(only) {
			t.Fatalf("%+v, %v", r, err)
		}
		for _, found := range r.Findings {
			text := found.Summary
			for _, ev := range found.Evidence {
				text += "; " + ev.Value
			}
			if found.Summary == "" || negative.MatchString(text) {
				t.Errorf("%s: %s", found.ID, text)
			}
		}
	})
}
