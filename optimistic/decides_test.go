package optimistic_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// Each write asks for itself what the read before it has asked, because another client may come
// between the two. Here a write runs alone, on a row as the other client leaves it.

var (
	holder, taker = lease.Owner{1}, lease.Owner{2}
	// lastToken is set where no token is left.
	lastToken = fmt.Sprintf("token = %d", lease.MaxToken)
)

const (
	moved, raised       = "placement = 3", "token = token + 1"
	taken, live         = "owner = ?", "expires_at = LATER"
	hour          int64 = 3_600_000_000
)

// swapped is a write to the key "k" that is in order for a row of token 5, and the changes of the
// row after which it is not.
type swapped struct {
	section string
	row     string
	args    func(expires int64, d *sqlstore.Dialect) []any
	// token is what the row has then; -1: it is gone.
	token   lease.Token
	refuses []string
}

const eraStart = 1000

var swaps = []swapped{
	{"cas-take-free", "owner = NULL", func(int64, *sqlstore.Dialect) []any {
		return []any{taker[:], "n", hour, 6, []byte("k"), 5}
	}, eraStart + 1, []string{raised, moved, taken}},
	{"cas-take", "expires_at = {now} - {second}", func(at int64, _ *sqlstore.Dialect) []any {
		return []any{taker[:], "n", hour, 6, []byte("k"), 5, holder[:], at}
	}, eraStart + 1, []string{raised, moved, taken, live, "expires_at = {now} - {second} - {second}"}},
	{"cas-fence", "owner = owner", func(int64, *sqlstore.Dialect) []any {
		return []any{[]byte("k"), holder[:], 5}
	}, 5, []string{raised, moved, taken}},
	{"cas-reap", "expires_at = {now} - {second}", func(_ int64, d *sqlstore.Dialect) []any {
		return []any{d.List([]string{"k"}), 0, 5}
	}, -1, []string{raised, moved, live}},
}

// An expiry that was read as passed may lie ahead by the server's clock, if that was set back.
func TestALeaseThatRunsIsNotTakenWhateverWasRead(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		for _, w := range swaps {
			if w.section != "cas-take" {
				continue
			}
			ready(t, e, live)
			n, err := session(t, e).Change(t.Context(), e.Dialect.Text(w.section), w.args(expiry(t, e), e.Dialect)...)
			if err != nil || n != 0 {
				t.Errorf("%d rows, %v", n, err)
			}
		}
	})
}

func TestEachSwapDecidesForItself(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		on := session(t, e)
		for _, w := range swaps {
			ready(t, e, w.row)
			n, err := on.Change(t.Context(), e.Dialect.Text(w.section), w.args(expiry(t, e), e.Dialect)...)
			if token := token(t, e); err != nil || n != 1 || token != w.token {
				t.Errorf("%s in order: %d rows, %v, and the token is %d, want %d", w.section, n, err, token, w.token)
			}
			for _, set := range w.refuses {
				ready(t, e, w.row)
				args := w.args(expiry(t, e), e.Dialect)
				change(t, e, set)
				before := token(t, e)
				n, err := on.Change(t.Context(), e.Dialect.Text(w.section), args...)
				if token := token(t, e); err != nil || n != 0 || token != before {
					t.Errorf("%s after %s: %d rows, %v, and the token is %d, was %d", w.section, set, n, err, token, before)
				}
			}
		}
	})
}

func session(t *testing.T, e *testdb.Env) *conn.Session {
	t.Helper()
	s := e.Session(t)
	s.EraAt(eraStart)
	return s
}

// ready leaves the row of k with an owner and token 5.
func ready(t *testing.T, e *testdb.Env, set string) {
	t.Helper()
	e.OneRow(t, "k", holder, 5)
	change(t, e, set)
}

func change(t *testing.T, e *testdb.Env, set string) {
	t.Helper()
	var args []any
	if set == taken {
		third := lease.Owner{3}
		args = append(args, third[:])
	}
	e.Exec(t, "UPDATE {rowlock} SET "+strings.ReplaceAll(set, "LATER", testdb.Later), args...)
}

// expiry is what a read has returned.
func expiry(t *testing.T, e *testdb.Env) (at int64) {
	t.Helper()
	var state, token, remaining int64
	var note, owner []byte
	row := e.DB.QueryRowContext(t.Context(), e.Dialect.Text("cas-look"), taker[:], []byte("k"))
	ok(t, row.Scan(&state, &token, &note, &remaining, &owner, &at))
	return at
}

// token is that of k, or -1 if it has no row.
func token(t *testing.T, e *testdb.Env) lease.Token {
	t.Helper()
	var n int64
	ok(t, e.DB.QueryRowContext(context.Background(), e.SQL("SELECT COALESCE(MAX(token), -1) FROM {rowlock}")).Scan(&n))
	return lease.Token(n)
}

// A row that is made has a token above the floor of its bucket and above the era, and one that is
// raised afterwards too. There is none if the floor has no token left.
func TestARowIsMadeAboveItsFloorAndTheEra(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		for _, c := range []struct{ floor, era, want lease.Token }{
			{7, 3, 8}, {7, 100, 101}, {lease.MaxToken - 1, 0, -1}, {lease.MaxToken, 0, -1},
		} {
			on := session(t, e)
			on.EraAt(c.era)
			e.Exec(t, "DELETE FROM {rowlock}")
			e.Exec(t, "UPDATE {rowlock_floor} SET floor = ?", c.floor)
			_, err := on.Change(t.Context(), e.Dialect.Text("cas-insert"), []byte("k"), taker[:], "n", hour, lease.Bucket("k"))
			if got := token(t, e); err != nil || got != c.want {
				t.Errorf("floor %d, era %d: token %d, want %d; %v", c.floor, c.era, got, c.want, err)
			}
			if c.want < 0 {
				continue
			}
			e.Exec(t, "UPDATE {rowlock} SET token = 1")
			_, err = on.Change(t.Context(), e.Dialect.Text("cas-raise"), c.floor+1, []byte("k"))
			if got := token(t, e); err != nil || got != c.want {
				t.Errorf("floor %d, era %d: raised to token %d, want %d; %v", c.floor, c.era, got, c.want, err)
			}
		}
	})
}

// What a sweep would delete is dead, of this placement, and has a token that another grant can
// follow.
func TestASweepFindsOnlyWhatIsDead(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		on := session(t, e)
		for set, want := range map[string]lease.Token{"note = 'dead'": 5, moved: -1, lastToken: -1, live: -1} {
			ready(t, e, "expires_at = {now} - {second}")
			change(t, e, set)
			var highest lease.Token
			err := on.QueryRow(t.Context(), e.Dialect.Text("cas-dead"), []any{e.Dialect.List([]string{"k"}), 0}, &highest)
			if err != nil || highest != want {
				t.Errorf("%s: the highest token is %d, want %d; %v", set, highest, want, err)
			}
		}
	})
}

// A ticket that a sweep has read as dead may be alive by now, and there are others of the key.
func TestASweepDropsOnlyTheTicketThatIsStillDead(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		on := session(t, e)
		for _, c := range []struct {
			waiter lease.Owner
			until  string
		}{{holder, "{now} - {second}"}, {lease.Owner{3}, "{now} - {second}"}, {taker, testdb.Later}} {
			e.Exec(t, "INSERT INTO {rowlock_queue} ({key}, waiter, {rank}, alive_until) VALUES (?, ?, 1, "+c.until+")", []byte("k"), c.waiter[:])
		}
		for _, waiter := range []lease.Owner{holder, taker} {
			_, err := on.Change(t.Context(), e.Dialect.Text("cas-drop-dead"), []byte("k"), waiter[:], 0)
			ok(t, err)
		}
		var left int
		ok(t, e.DB.QueryRowContext(t.Context(), e.SQL("SELECT COUNT(*) FROM {rowlock_queue}")).Scan(&left))
		if left != 2 {
			t.Errorf("%d tickets are left, want the one that is alive and the one that was not asked for", left)
		}
	})
}
