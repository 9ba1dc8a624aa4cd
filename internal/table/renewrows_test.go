package table_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// What a renewal says of each lease: the row of "k" is holder's, with token 5.
func TestEachRenewalAnswersForItsLease(t *testing.T) {
	mine := lease.RenewRequest{Lease: lease.Lease{Key: "k", Owner: holder, Token: 5}, TTL: time.Hour}
	other, older := mine, mine
	other.Owner, other.TTL = stranger, time.Minute
	older.Token, older.TTL = 4, time.Minute
	words := map[lease.RenewOutcome]string{lease.Extended: "extended", lease.Busy: "busy", lease.Lost: "lost"}
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		on := readySession(t, e, 0)
		for _, c := range []struct{ set, locked, want string }{
			{"note = note", "", "extended lost lost"},
			{"note = note", "locked", "busy lost lost"},
			{expired, "", "lost lost lost"},
			{expired, "locked", "busy lost lost"},
			{moved, "", "lost lost lost"},
			{moved, "locked", "lost lost lost"},
			{freed, "", "lost lost lost"},
		} {
			if c.locked != "" && e.Name == "sqlite" {
				continue
			}
			for _, order := range [][]int{{0, 1, 2}, {1, 0, 2}, {2, 1, 0}} {
				ready(t, e, c.set)
				reqs, want := make([]lease.RenewRequest, 3), make([]string, 3)
				for i, at := range order {
					reqs[i], want[i] = []lease.RenewRequest{mine, other, older}[at], strings.Fields(c.want)[at]
				}
				unlock := func() {}
				if c.locked != "" {
					first := begun(t, e)
					do(t, first, e.SQL("UPDATE {rowlock} SET acquired_at = acquired_at + {second}"))
					unlock = func() { do(t, first, "ROLLBACK") }
				}
				renewed, err := e.Dialect.Renew(t.Context(), on, reqs)
				unlock()
				if err != nil {
					t.Errorf("%s %s: %v", c.set, c.locked, err)
					continue
				}
				var got []string
				for _, r := range renewed {
					got = append(got, words[r.Outcome])
				}
				if strings.Join(got, " ") != strings.Join(want, " ") {
					t.Errorf("%s %s, in order %v: %v, want %v", c.set, c.locked, order, got, want)
				}
				if long := lastsLong(t, e); long != (want[0] == "extended" || want[1] == "extended" || want[2] == "extended") {
					t.Errorf("%s %s, in order %v: it lasts long: %t", c.set, c.locked, order, long)
				}
			}
		}
	})
}

// lastsLong is whether the row has the hour that its holder asked for.
func lastsLong(t *testing.T, e *testdb.Env) (long bool) {
	t.Helper()
	query := e.SQL("SELECT COUNT(*) > 0 FROM {rowlock} WHERE expires_at > " + later + strings.Repeat(" + {second}", 100))
	if err := e.DB.QueryRowContext(t.Context(), query).Scan(&long); err != nil {
		t.Fatal(err)
	}
	return long
}
