package console_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/console"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/schema"
)

// A user without rights is told so, and the rights of an application are enough for every page.
func TestADatabaseUserWithoutRightsIsSaid(t *testing.T) {
	servers := slices.DeleteFunc(slices.Clone(testdb.Kinds), func(k testdb.Kind) bool { return k.Name == "sqlite" })
	for _, k := range servers {
		t.Run(k.Name, func(t *testing.T) {
			s := &servertest.Scene{T: t, Env: k.Open(t)}
			b := newBed(t, s.Env, nil)
			name, seen := s.User()
			db := seen.Env.Pool(t)
			b.serve(b.client, func(o *console.Options) { o.DB = db })
			for _, path := range []string{"", "?sort=age", "waits", "cycles", "key?k=k"} {
				code, page := b.get(path)
				if code != http.StatusServiceUnavailable ||
					!strings.Contains(page, "The database user may not read this") {
					t.Errorf("%q is answered with %d: %s", path, code, page)
				}
			}
			b.stream("page=held").until("trouble", "The database user may not read this")
			s.Grant(name)
			client, err := rowlock.Open(db, seen.Env.Dialect, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = client.Close() })
			b.client = client
			b.lock("k")
			b.serve(client, func(o *console.Options) { o.DB = db })
			for _, path := range []string{"", "?sort=age", "?sort=expiry", "waits", "cycles"} {
				b.wants(path)
			}
			b.wants("key?k=k", "held", "may not read the records of forced releases")
			code, page := b.get("records")
			if code != http.StatusServiceUnavailable ||
				!strings.Contains(page, "The database user may not read this") {
				t.Errorf("records are answered with %d: %s", code, page)
			}
		})
	}
}

func TestTablesOfAnotherVersionAreSaid(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t), nil)
	b.Exec(t, "ALTER TABLE {rowlock} RENAME COLUMN acquired_at TO since")
	code, page := b.get("")
	if code != http.StatusServiceUnavailable || !strings.Contains(page, "The tables are of another version") ||
		!strings.Contains(page, "acquired_at") {
		t.Errorf("the page is answered with %d: %s", code, page)
	}
	b.Exec(t, "ALTER TABLE {rowlock} RENAME COLUMN since TO acquired_at")
	b.wants("?" + url.Values{"sort": {"age"}}.Encode())
}

// Every page can be read where there are the tables of a lock and no others.
func TestTheTablesOfALockAreEnough(t *testing.T) {
	for _, k := range testdb.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			e := k.Open(t)
			err := schema.Uninstall(t.Context(), e.DB, e.Dialect)
			if err == nil {
				err = schema.Migrate(t.Context(), e.DB, e.Dialect, schema.Core)
			}
			if err != nil {
				t.Fatal(err)
			}
			b := newBed(t, e, nil)
			b.lock("k")
			for _, path := range []string{"", "?sort=age", "?sort=expiry", "waits", "cycles", "records", "process?k=x"} {
				b.wants(path)
			}
			b.wants("key?k=k", "held")
		})
	}
}
