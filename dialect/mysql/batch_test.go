package mysql_test

import (
	"database/sql"
	"database/sql/driver"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	driving "github.com/go-sql-driver/mysql"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// seen is a row as a read finds it.
type seen struct {
	n     int
	owner lease.Owner
	token lease.Token
}

var rowColumns = []string{"n", "placement", "owner", "token", "note", "remaining"}

func (l seen) addTo(rows *sqlmock.Rows) {
	var owner []byte
	if !l.owner.IsZero() {
		owner = l.owner[:]
	}
	rows.AddRow(l.n, 1, owner, l.token, []byte("other"), 5_000_000)
}

func (m *mocked) rows(lines ...seen) {
	rows := sqlmock.NewRows(rowColumns)
	for _, l := range lines {
		l.addTo(rows)
	}
	m.prepare("rows").ExpectQuery().WillReturnRows(rows)
}

// note is what the session has noted: the name of a batch, which apply brings along, and numbers.
type note []byte

// Match keeps the batch's name.
func (n note) Match(v driver.Value) bool {
	name, ok := v.([]byte)
	return ok && copy(n, name) == 16
}

// apply expects the statement, which changes so many rows, and then to be asked what it has noted,
// and for the rows.
func (m *mocked) apply(count int64, noted string, after []seen) {
	n := append(make(note, 16), noted...)
	m.prepare("apply").ExpectExec().WithArgs(n, sqlmock.AnyArg()).WillReturnResult(sqlmock.NewResult(0, count))
	if after == nil {
		return
	}
	rows := sqlmock.NewRows(rowColumns)
	rows.AddRow(0, 0, nil, 0, []byte(n), 0)
	for _, l := range after {
		l.addTo(rows)
	}
	m.prepare("applied").ExpectQuery().WillReturnRows(rows)
}

func change(key string, from, to lease.Owner) sqlstore.Change {
	return sqlstore.Change{From: lease.Lease{Key: key, Owner: from}, To: to, TTL: time.Minute}
}

// What the statement has noted says which changes it made. The rows, which may have changed again,
// say what to tell the others.
func TestWhatBecameOfABatch(t *testing.T) {
	us, them, nobody := lease.Owner{1}, lease.Owner{2}, lease.Owner{}
	const held, gone, alone, made = sqlstore.Held, sqlstore.Gone, sqlstore.Alone, sqlstore.Done
	ours := []seen{{1, us, 7}, {2, us, 7}}
	releases := []sqlstore.Change{change("a", us, nobody), change("b", us, nobody)}
	acquires := []sqlstore.Change{change("a", nobody, us), change("b", nobody, us)}
	free := []seen{{1, nobody, 7}, {2, nobody, 7}}
	for name, c := range map[string]struct {
		changes []sqlstore.Change
		before  []seen
		count   int64
		noted   string
		after   []seen // nil: nothing is asked
		want    []sqlstore.Outcome
	}{
		"all of it":      {releases, ours, 2, "", nil, []sqlstore.Outcome{made, made}},
		"one was locked": {releases, ours, 1, " 1", []seen{{1, nobody, 7}, {2, us, 7}}, []sqlstore.Outcome{made, alone}},
		"one was locked, the other is taken since": {
			releases, ours, 1, " 1",
			[]seen{{1, them, 8}, {2, us, 7}},
			[]sqlstore.Outcome{made, alone},
		},
		"one was lost, the other is taken since": {
			releases, ours, 1, " 2",
			[]seen{{1, them, 8}, {2, them, 8}},
			[]sqlstore.Outcome{gone, made},
		},
		"both were lost": {releases, ours, 0, "", []seen{{1, them, 8}, {2, them, 9}}, []sqlstore.Outcome{gone, gone}},
		"one was released by an earlier try": {
			releases, ours, 1, " 1",
			[]seen{{1, nobody, 7}, {2, nobody, 7}},
			[]sqlstore.Outcome{made, gone},
		},
		"another was quicker": {acquires, free, 1, " 1", []seen{{1, us, 8}, {2, them, 8}}, []sqlstore.Outcome{made, held}},
		"another was quicker, and has released it": {
			acquires, free, 1, " 1",
			[]seen{{1, us, 8}, {2, nobody, 8}},
			[]sqlstore.Outcome{made, alone},
		},
		"granted, and expired before the rows are read": {
			acquires, free, 1, " 1",
			[]seen{{1, them, 9}, {2, them, 8}},
			[]sqlstore.Outcome{made, held},
		},
		"the row names the owner, and the batch has not granted it": {
			acquires, free, 1, " 2",
			[]seen{{1, us, 8}, {2, us, 8}},
			[]sqlstore.Outcome{sqlstore.Found, made},
		},
		"a hand-over that was locked": {
			[]sqlstore.Change{change("a", us, them)},
			[]seen{{1, us, 7}},
			0, "",
			[]seen{{1, us, 7}},
			[]sqlstore.Outcome{alone},
		},
		"losers do not write": {
			[]sqlstore.Change{change("a", nobody, us), change("b", us, nobody)},
			[]seen{{1, them, 7}},
			-1, "", nil,
			[]sqlstore.Outcome{held, gone},
		},
		"more is noted than was changed":   {releases, ours, 1, " 1 2", ours, nil},
		"less is noted than was changed":   {releases, ours, 1, "", ours, nil},
		"one is noted twice":               {append(releases, change("c", us, nobody)), append(ours, seen{3, us, 7}), 2, " 1 1", ours, nil},
		"a change that is none is noted":   {releases, ours, 1, " 3", ours, nil},
		"what is noted is of another form": {releases, ours, 1, "1", ours, nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMocked(t, "")
			m.rows(c.before...)
			if c.count >= 0 {
				m.apply(c.count, c.noted, c.after)
			}
			got, err := m.d.Apply(t.Context(), m.Session, c.changes, false)
			if (err != nil) != (c.want == nil) || err != nil && sqlstore.Judge(m.d, err).Class != sqlstore.Unknown {
				t.Fatalf("%+v, %v", got, err)
			}
			for i, want := range c.want {
				if got[i].Outcome != want {
					t.Errorf("%d: %+v, want outcome %d", i, got[i], want)
				}
			}
			if err := m.ExpectationsWereMet(); err != nil {
				t.Error(err)
			}
		})
	}
}

// The count of apply-all is of all rows or of none. What it is not to be is not made anything of.
func TestAPartOfAllIsUnknown(t *testing.T) {
	m := newMocked(t, "")
	m.rows(seen{1, lease.Owner{}, 7}, seen{2, lease.Owner{}, 7})
	m.prepare("apply-all").ExpectExec().WillReturnResult(sqlmock.NewResult(0, 1))
	changes := []sqlstore.Change{change("a", lease.Owner{}, lease.Owner{1}), change("b", lease.Owner{}, lease.Owner{1})}
	got, err := m.d.Apply(t.Context(), m.Session, changes, true)
	if err == nil || sqlstore.Judge(m.d, err).Class != sqlstore.Unknown {
		t.Errorf("%+v, %v", got, err)
	}
}

// What a batch says must not hang on whether the driver counts the rows that match or those that
// change.
func TestABatchCountsTheSameWithClientFoundRows(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		for _, found := range []bool{false, true} {
			cfg, err := driving.ParseDSN(s.Source)
			if err != nil {
				t.Fatal(err)
			}
			cfg.ClientFoundRows = found
			pool, err := sql.Open("mysql", cfg.FormatDSN())
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			s.Exec(t, `DELETE FROM {rowlock}`)
			session := conn.NewSession(s.conn(pool))
			session.EraAt(0)
			s.takeAndRelease(t, session)
		}
	})
}

// takeAndRelease makes two rows, releases one of them twice, and the other in the same batch: with
// the very values that the row had, as it has if all comes within a microsecond.
func (s *server) takeAndRelease(t *testing.T, session *conn.Session) {
	ctx, us := t.Context(), lease.NewOwner()
	if err := s.Dialect.Setup(ctx, session); err != nil {
		t.Fatal(err)
	}
	step := func(f func() ([]sqlstore.Applied, error), want ...sqlstore.Outcome) {
		t.Helper()
		got, err := f()
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if got[i].Outcome != want[i] {
				t.Errorf("%d: %+v, want outcome %d", i, got[i], want[i])
			}
		}
	}
	apply := func(changes ...sqlstore.Change) func() ([]sqlstore.Applied, error) {
		return func() ([]sqlstore.Applied, error) { return s.Dialect.Apply(ctx, session, changes, false) }
	}
	a, b := change("a", lease.Owner{}, us), change("b", lease.Owner{}, us)
	back := func(key string) sqlstore.Change { return change(key, us, lease.Owner{}) }
	step(func() ([]sqlstore.Applied, error) { return s.Dialect.Create(ctx, session, []sqlstore.Change{a, b}) }, sqlstore.Done, sqlstore.Done)
	step(apply(back("a")), sqlstore.Done)
	step(apply(back("a"), back("b")), sqlstore.Gone, sqlstore.Done)
	step(apply(a, b), sqlstore.Done, sqlstore.Done)
	named := func(key string, token lease.Token) sqlstore.Change {
		c := back(key)
		c.From.Token = token // so that it is tried without a read
		return c
	}
	step(apply(named("a", 1), named("b", 2)), sqlstore.Gone, sqlstore.Done)
	step(apply(named("a", 2), named("b", 2)), sqlstore.Done, sqlstore.Gone)
	step(apply(a, b), sqlstore.Done, sqlstore.Done)
	step(apply(a, b), sqlstore.Found, sqlstore.Found)
}

// A row that names its requester was made by this statement or by an earlier try, whose commit was
// not acknowledged. Where the count does not say, one commit that comes after the read covers all;
// where all were made, nothing is asked.
func TestRowsThatMayBeOfAnEarlierTryAreConfirmed(t *testing.T) {
	us := lease.Owner{1}
	a, b := change("a", lease.Owner{}, us), change("b", lease.Owner{}, us)
	create := func(made, confirmed int64) ([]sqlstore.Applied, error, error) {
		m := newMocked(t, "")
		m.prepare("create").ExpectExec().WillReturnResult(sqlmock.NewResult(0, made))
		m.rows(seen{1, us, 8}, seen{2, us, 8})
		if made < 2 {
			m.prepare("confirm").ExpectExec().WillReturnResult(sqlmock.NewResult(0, confirmed))
		}
		got, err := m.d.Create(t.Context(), m.Session, []sqlstore.Change{a, b})
		return got, err, m.ExpectationsWereMet()
	}
	for _, made := range []int64{1, 2} {
		got, err, unmet := create(made, 1)
		if err != nil || unmet != nil || got[0].Outcome != sqlstore.Done || got[1].Outcome != sqlstore.Done {
			t.Errorf("%d made: %+v, %v, %v", made, got, err, unmet)
		}
	}
	if got, err, _ := create(1, 0); err == nil {
		t.Errorf("not confirmed, and told %+v", got)
	}
}

// A batch fails as a whole if one of its rows was made by another client at that moment; none of
// the others was then made.
func TestADuplicateRefusesTheWholeBatch(t *testing.T) {
	m := newMocked(t, "")
	m.prepare("create").ExpectExec().WillReturnError(&driving.MySQLError{Number: 1062})
	_, err := m.d.Create(t.Context(), m.Session, []sqlstore.Change{change("a", lease.Owner{}, lease.Owner{1})})
	if v := sqlstore.Judge(m.d, err); v.Class != sqlstore.Conflict {
		t.Errorf("%v is %s", err, v.Class)
	}
}
