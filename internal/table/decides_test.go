package table_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// A call of several statements has compared the row before it writes, and has often locked it.
// Each write compares the row again, so that no call depends on the order of its statements. Here a
// write runs alone.

const (
	moved, raised          = "placement = 3", "token = token + 1"
	taken, freed           = "owner = X", "owner = NULL"
	expired, lowered       = "expires_at = {now} - {second}", "token = token - 1"
	hour             int64 = 3_600_000_000

	takenExpired = expired + ", " + taken
)

// alone is a write to the key "k", whose row has an owner and token 5, in another state after row.
type alone struct {
	section string
	row     string
	args    []any
	// refuses are changes of the row after which it does nothing.
	refuses []string
}

var (
	holder, next = lease.Owner{1}, lease.Owner{2}
	spent        = fmt.Sprintf("token = %d", lease.MaxToken)
	k            = []byte("k")
)

var alones = []alone{
	{"confirm", "note = note", []any{hour, k, holder[:], 5}, []string{moved, taken, freed, raised, expired}},
	{"raise", "note = note", []any{9, k, holder[:], 5, 9}, []string{moved, taken, freed, raised, expired}},
	{"hand-over", "note = note", []any{next[:], "n", hour, k, holder[:], 5}, []string{moved, taken, freed, raised}},
	{"release-tx", "note = note", []any{k, holder[:], 5}, []string{moved, taken, freed, raised}},
	{"depart", "note = note", []any{3, 6, k, holder[:], 5}, []string{moved, taken, freed, raised}},
	{"return", moved, []any{9, k, 3, 5, 6}, []string{"placement = 0", lowered, raised}},
	{"confirm-placement", moved, []any{k, 3, 5, 6}, []string{"placement = 0", lowered, raised}},
	{"force-end", "note = note", []any{6, k, holder[:], 5}, []string{moved, taken, freed, raised}},
	{"readers-make", "note = note", []any{next[:], k, holder[:], 5}, []string{moved, taken, freed, raised, expired}},
	{"readers-end", "note = note", []any{k, holder[:]}, []string{moved, taken, freed}},
}

func TestEachWriteDecidesForItself(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		on := sessionOf(t, e)
		for _, w := range alones {
			ready(t, e, w.row)
			if n, err := on.Change(t.Context(), e.Dialect.Text(w.section), w.args...); err != nil || n != 1 {
				t.Errorf("%s in order: %d rows, %v", w.section, n, err)
			}
			for _, set := range w.refuses {
				ready(t, e, w.row)
				change(t, e, set)
				before := rowOf(t, e)
				n, err := on.Change(t.Context(), e.Dialect.Text(w.section), w.args...)
				if now := rowOf(t, e); err != nil || n != 0 || now != before {
					t.Errorf("%s after %s: %d rows, %v; it made of\n%s\n%s", w.section, set, n, err, before, now)
				}
			}
		}
	})
}

// The last token is the holder's, and there is none for the next.
func TestNoLeaseIsHandedOverWithoutAToken(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		ready(t, e, spent)
		n, err := sessionOf(t, e).Change(t.Context(), e.Dialect.Text("hand-over"),
			next[:], "n", hour, k, holder[:], int64(lease.MaxToken))
		if err != nil || n != 0 {
			t.Errorf("%d rows, %v", n, err)
		}
	})
}

// A new owner's token is above that of the row and of the era.
func TestALeaseIsHandedOverAboveItsTokenAndTheEra(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		for era, want := range map[lease.Token]lease.Token{0: 6, 100: 101} {
			ready(t, e, "note = note")
			n, err := readySession(t, e, era).Change(t.Context(), e.Dialect.Text("hand-over"),
				next[:], "n", hour, k, holder[:], 5)
			if owner, token := owned(t, e); err != nil || n != 1 || owner != string(next[:]) || token != want {
				t.Errorf("era %d: %d rows, %v; the row has owner %x and token %d, want %d", era, n, err, owner, token, want)
			}
		}
	})
}

// What only confirms a lease extends it, by the least there is if no time is asked for.
func TestALeaseThatIsConfirmedIsNeverShorter(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		for ttl, state := range map[int64]string{0: "more", 1: "more", hour: "an hour"} {
			ready(t, e, "acquired_at = expires_at")
			n, err := sessionOf(t, e).Change(t.Context(), e.Dialect.Text("confirm"), ttl, k, holder[:], 5)
			var got string
			far := "acquired_at" + strings.Repeat(" + {second}", 100)
			found := e.DB.QueryRowContext(t.Context(), e.SQL("SELECT CASE WHEN expires_at > "+far+
				" THEN 'an hour' WHEN expires_at > acquired_at THEN 'more' ELSE 'not more' END FROM {rowlock}")).Scan(&got)
			if err != nil || found != nil || n != 1 || got != state {
				t.Errorf("%d µs: %d rows, %v, %v; it has %s, want %s", ttl, n, err, found, got, state)
			}
		}
	})
}

func sessionOf(t *testing.T, e *testdb.Env) *conn.Session {
	t.Helper()
	s := e.Session(t)
	s.EraAt(0)
	return s
}

func ready(t *testing.T, e *testdb.Env, set string) {
	t.Helper()
	e.OneRow(t, "k", holder, 5)
	change(t, e, set)
}

func change(t *testing.T, e *testdb.Env, set string) {
	t.Helper()
	var args []any
	if strings.HasSuffix(set, taken) {
		set, args = strings.TrimSuffix(set, taken)+"owner = ?", []any{stranger[:]}
	}
	e.Exec(t, "UPDATE {rowlock} SET "+set, args...)
}

// rowOf is the row as text.
func rowOf(t *testing.T, e *testdb.Env) string {
	t.Helper()
	columns := make([]any, 6)
	dest := make([]any, len(columns))
	for i := range columns {
		dest[i] = &columns[i]
	}
	row := e.DB.QueryRowContext(context.Background(), e.SQL("SELECT owner, note, token, acquired_at, expires_at, placement FROM {rowlock}"))
	if err := row.Scan(dest...); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(fmt.Sprintln(columns...))
}
