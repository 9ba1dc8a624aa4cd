package table_test

import (
	"testing"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// recalls are what a key is recalled to: the placement, and an epoch that begins with token 10.
// What becomes of it is its placement and token, or "same". A row that is there has another token.
var recalls = []struct {
	set       string // "": there is no row
	floor     lease.Token
	placement int
	want      string
}{
	{"", 0, 3, "3 10"},
	{"", 9, 3, "3 10"},
	{"", 10, 3, "same"},
	{"", 17, 3, "same"},
	{"", 9, 0, "0 10"},
	{"", 17, 0, "0 17"},
	{"note = 'n'", 0, 3, "3 10"},
	{"note = 'n'", 17, 3, "3 10"},
	{"note = 'n'", 17, 0, "0 10"},
	{moved, 17, 0, "0 10"},
	{"note = 'n', token = 10", 0, 3, "same"},
	{"note = 'n', token = 12", 0, 3, "same"},
	{"note = 'n', token = 12", 0, 0, "same"},
	{moved + ", token = 12", 0, 0, "same"},
}

// A key is recalled in a later epoch, and a row is made only above its floor, or for another
// placement exactly at its epoch.
func TestEachRecallDecidesForItself(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		on := sessionOf(t, e)
		for _, c := range recalls {
			(&grantState{set: c.set, floor: c.floor}).prepare(t, e)
			before := placementOf(t, e)
			_, err := on.Change(t.Context(), e.Dialect.Text("recall"), k, c.placement, 10, lease.Bucket("k"))
			want := before
			if c.want != "same" {
				want = c.want + " nobody"
			}
			if got := placementOf(t, e); err != nil || got != want {
				t.Errorf("%+v made %q, want %q; %v", c, got, want, err)
			}
		}
	})
}

// placementOf is the placement of k and its token, and all else if the row has an owner.
func placementOf(t *testing.T, e *testdb.Env) (placement string) {
	t.Helper()
	query := "SELECT placement, token, CASE WHEN owner IS NULL AND note = '' AND expires_at <= {now}" +
		" THEN 1 ELSE 0 END FROM {rowlock}"
	found, err := e.DB.QueryContext(t.Context(), e.SQL(query))
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	for found.Next() {
		var at, token, nobody string
		if err := found.Scan(&at, &token, &nobody); err != nil {
			t.Fatal(err)
		}
		if placement = at + " " + token + " nobody"; nobody == "0" {
			return rowOf(t, e)
		}
	}
	return placement
}

// whileTheFloorRises runs a section, where there is no row, while another transaction raises the
// floor to 20, and ends that when the section waits for it.
func whileTheFloorRises(t *testing.T, e *testdb.Env, section string, args ...any) error {
	t.Helper()
	(&grantState{floor: 7}).prepare(t, e)
	first, second := begun(t, e), begun(t, e)
	do(t, second, "ROLLBACK")
	do(t, first, e.SQL("UPDATE {rowlock_floor} SET floor = 20"))
	ended := make(chan error, 1)
	go func() {
		_, err := second.Change(t.Context(), e.Dialect.Text(section), args...)
		ended <- err
	}()
	untilOneWaits(t, e, func() bool { return len(ended) > 0 })
	do(t, first, "COMMIT")
	return <-ended
}

// A key whose floor is being raised is recalled above the floor that it gets.
func TestEachRecallWaitsForItsFloor(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		err := whileTheFloorRises(t, e, "recall", k, 0, 10, lease.Bucket("k"))
		if got := placementOf(t, e); err != nil || got != "0 20 nobody" {
			t.Errorf("it made %q; %v", got, err)
		}
	})
}

// A key that is away is fenced at its placement, within its epoch, by a token that is not below the
// highest that it was fenced with.
func TestEachFenceOfAKeyThatIsAwayDecidesForItself(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		on := sessionOf(t, e)
		for set, want := range map[string]int{
			"placement = 3, token = 10": 1, "placement = 3, token = 12": 1, "placement = 3, token = 9": 0, "placement = 3, token = 13": 0,
			"placement = 4, token = 12": 0, "placement = 0, token = 12": 0,
		} {
			ready(t, e, set)
			if n, err := rowsOf(t, on, e.Dialect.Text("fence-at"), []any{k, 3, 10, 12}); err != nil || n != want {
				t.Errorf("after %s: %d rows, want %d; %v", set, n, want, err)
			}
		}
	})
}

// fenced runs the fence, and returns how many rows it has found.
func fenced(t *testing.T, on *conn.Session, e *testdb.Env, args []any) (int, error) {
	t.Helper()
	if e.Driver == "mysql" {
		n, err := on.Change(t.Context(), e.Dialect.Text("fence"), args...)
		return int(n), err
	}
	return rowsOf(t, on, e.Dialect.Text("fence"), args)
}

// The triggers of protected tables see nothing else of a fence, and must see nothing of an older
// one.
func TestAFenceMarksTheRow(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		if e.Driver != "mysql" {
			t.Skip("its triggers see who has written the row")
		}
		on := begun(t, e)
		ready(t, e, "note = note")
		marked := func() (n int) {
			row := on.Conn().QueryRowContext(t.Context(), e.SQL("SELECT fenced_by = CONNECTION_ID() AND fenced_token = token FROM {rowlock}"))
			if err := row.Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		before := marked()
		for range 2 { // a driver may count what has changed alone
			if n, err := fenced(t, on, e, []any{k, holder[:], 5}); n != 1 || err != nil {
				t.Errorf("the fence found %d rows; %v", n, err)
			}
		}
		after := marked()
		do(t, on, e.Dialect.Text("fence-end"), k)
		if ended := marked(); before != 0 || after != 1 || ended != 0 {
			t.Errorf("marked %d before the fence, %d after it, %d after fence-end; want 0, 1, 0", before, after, ended)
		}
	})
}

// What a fence has found stays as it is until the fencing transaction ends.
func TestEachFenceLocksItsRow(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		on := sessionOf(t, e)
		fence := []any{k, holder[:], 5, 0}
		if e.Driver == "mysql" {
			fence = fence[:3]
		}
		for _, c := range []struct {
			section, set string
			args         []any
		}{
			{"fence-at", moved, []any{k, 3, 5, 5}},
			{"fence", "note = note", fence},
			{"force-lock", "note = note", []any{k}},
		} {
			ready(t, e, c.set)
			first := begun(t, e)
			n, err := 0, error(nil)
			if c.section == "fence" {
				n, err = fenced(t, first, e, c.args)
			} else {
				n, err = rowsOf(t, first, e.Dialect.Text(c.section), c.args)
			}
			others, failed := rowsOf(t, on, e.SQL("SELECT 1 FROM {rowlock} FOR UPDATE SKIP LOCKED"), nil)
			if err != nil || failed != nil || n != 1 || others != 0 {
				t.Errorf("%s found %d rows, and others may lock %d; %v, %v", c.section, n, others, err, failed)
			}
			do(t, first, "ROLLBACK")
		}
	})
}
