package mysql_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	driving "github.com/go-sql-driver/mysql"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/lease"
)

// seen is a row as a look finds it.
type seen struct {
	n       int
	owner   lease.Owner
	token   int64
	changed int64
}

func (m *mocked) rows(lines ...seen) {
	rows := sqlmock.NewRows([]string{"n", "home", "owner", "token", "note", "remaining", "changed"})
	for _, l := range lines {
		var owner []byte
		if !l.owner.IsZero() {
			owner = l.owner[:]
		}
		rows.AddRow(l.n, 1, owner, l.token, []byte("other"), 5_000_000, l.changed)
	}
	m.prepare("rows").ExpectQuery().WillReturnRows(rows)
}

func change(key string, from, to lease.Owner) dialect.Change {
	return dialect.Change{From: lease.Lease{Key: key, Owner: from}, To: to, TTL: time.Minute}
}

// The count of rows says which of those were made that somebody else has been granted since.
func TestWhatBecameOfABatch(t *testing.T) {
	us, them, nobody := lease.Owner{1}, lease.Owner{2}, lease.Owner{}
	const before = clock - 1
	ours := []seen{{1, us, 7, before}, {2, us, 7, before}}
	releases := []dialect.Change{change("a", us, nobody), change("b", us, nobody)}
	for name, c := range map[string]struct {
		changes []dialect.Change
		before  []seen
		count   int64
		after   []seen // nil: nobody looks
		want    []dialect.Outcome
	}{
		"all of it": {releases, ours, 2, nil, []dialect.Outcome{dialect.Done, dialect.Done}},
		"one was locked": {
			releases, ours, 1,
			[]seen{{1, nobody, 7, clock}, {2, us, 7, before}},
			[]dialect.Outcome{dialect.Done, dialect.Alone},
		},
		"one was locked, the other is taken since": {
			releases, ours, 1,
			[]seen{{1, them, 8, clock + 1}, {2, us, 7, before}},
			[]dialect.Outcome{dialect.Done, dialect.Alone},
		},
		"one was lost between the look and the statement": {
			releases, ours, 1,
			[]seen{{1, nobody, 7, clock}, {2, them, 8, clock - 1}},
			[]dialect.Outcome{dialect.Done, dialect.Gone},
		},
		"one was given up by an earlier try": {
			releases, ours, 1,
			[]seen{{1, nobody, 7, clock}, {2, nobody, 7, clock - 1}},
			[]dialect.Outcome{dialect.Done, dialect.Gone},
		},
		"both were lost": {
			releases, ours, 0,
			[]seen{{1, them, 8, clock - 1}, {2, them, 9, clock - 1}},
			[]dialect.Outcome{dialect.Gone, dialect.Gone},
		},
		"one of two was lost, and nothing says which": {
			releases, ours, 1,
			[]seen{{1, them, 8, clock + 1}, {2, them, 8, clock + 1}},
			nil,
		},
		"one was lost long ago, and the other's key taken at once": {
			releases, ours, 1,
			[]seen{{1, them, 8, clock + 1}, {2, them, 8, clock - 1}},
			[]dialect.Outcome{dialect.Done, dialect.Gone},
		},
		"another was quicker": {
			[]dialect.Change{change("a", nobody, us), change("b", nobody, us)},
			[]seen{{1, nobody, 7, before}, {2, nobody, 7, before}},
			1,
			[]seen{{1, us, 8, clock}, {2, them, 8, clock + 1}},
			[]dialect.Outcome{dialect.Done, dialect.Held},
		},
		"another was quicker, and has given it up": {
			[]dialect.Change{change("a", nobody, us)},
			[]seen{{1, nobody, 7, before}},
			0,
			[]seen{{1, nobody, 8, clock + 1}},
			[]dialect.Outcome{dialect.Alone},
		},
		"granted, and expired before anybody looked": {
			[]dialect.Change{change("a", nobody, us), change("b", us, nobody)},
			[]seen{{1, nobody, 7, before}, {2, us, 7, before}},
			1,
			[]seen{{1, them, 9, clock + 1}, {2, us, 7, before}},
			[]dialect.Outcome{dialect.Done, dialect.Alone},
		},
		"granted by an earlier try": {
			[]dialect.Change{change("a", nobody, us), change("b", us, nobody)},
			[]seen{{1, nobody, 7, before}, {2, us, 7, before}},
			1,
			[]seen{{1, us, 8, clock - 1}, {2, them, 8, clock + 1}},
			[]dialect.Outcome{dialect.Found, dialect.Done},
		},
		"a hand-over that was locked": {
			[]dialect.Change{change("a", us, them)},
			[]seen{{1, us, 7, before}},
			0,
			[]seen{{1, us, 7, before}},
			[]dialect.Outcome{dialect.Alone},
		},
		"losers do not write": {
			[]dialect.Change{change("a", nobody, us), change("b", us, nobody)},
			[]seen{{1, them, 7, before}},
			-1,
			nil,
			[]dialect.Outcome{dialect.Held, dialect.Gone},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMocked(t, "")
			m.rows(c.before...)
			if c.count >= 0 {
				m.prepare("apply").ExpectExec().WillReturnResult(sqlmock.NewResult(clock, c.count))
			}
			if c.after != nil {
				m.rows(c.after...)
			}
			got, err := m.d.Apply(t.Context(), m.Session, c.changes, false)
			if (err != nil) != (c.want == nil) || err != nil && dialect.Judge(m.d, err).Class != dialect.Unknown {
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

// What a batch says must not hang on whether the driver counts the rows that match or those that change.
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
			s.takeAndRelease(t, dialect.NewSession(s.conn(pool)))
		}
	})
}

// takeAndRelease makes two rows, releases one of them twice, and the other in the same batch: with the very values that the row had,
// as it has if all comes within a microsecond.
func (s *server) takeAndRelease(t *testing.T, session *dialect.Session) {
	ctx, us := t.Context(), lease.NewOwner()
	if err := s.Dialect.Setup(ctx, session); err != nil {
		t.Fatal(err)
	}
	step := func(f func() ([]dialect.Applied, error), want ...dialect.Outcome) {
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
	apply := func(changes ...dialect.Change) func() ([]dialect.Applied, error) {
		return func() ([]dialect.Applied, error) { return s.Dialect.Apply(ctx, session, changes, false) }
	}
	a, b := change("a", lease.Owner{}, us), change("b", lease.Owner{}, us)
	back := func(key string) dialect.Change { return change(key, us, lease.Owner{}) }
	step(func() ([]dialect.Applied, error) { return s.Dialect.Create(ctx, session, []dialect.Change{a, b}) }, dialect.Done, dialect.Done)
	step(apply(back("a")), dialect.Done)
	step(apply(back("a"), back("b")), dialect.Gone, dialect.Done)
	step(apply(a, b), dialect.Done, dialect.Done)
	step(apply(a, b), dialect.Found, dialect.Found)
}

// A row that names its requester was made by this statement or by an earlier try, whose commit nobody has acknowledged. Where the count
// does not say, one commit that comes after the read covers all; where all were made, nothing is asked.
func TestRowsThatMayBeOfAnEarlierTryAreConfirmed(t *testing.T) {
	us := lease.Owner{1}
	a, b := change("a", lease.Owner{}, us), change("b", lease.Owner{}, us)
	create := func(made, confirmed int64) ([]dialect.Applied, error, error) {
		m := newMocked(t, "")
		m.prepare("create").ExpectExec().WillReturnResult(sqlmock.NewResult(0, made))
		m.rows(seen{1, us, 8, clock}, seen{2, us, 8, clock})
		if made < 2 {
			m.prepare("confirm").ExpectExec().WillReturnResult(sqlmock.NewResult(0, confirmed))
		}
		got, err := m.d.Create(t.Context(), m.Session, []dialect.Change{a, b})
		return got, err, m.ExpectationsWereMet()
	}
	for _, made := range []int64{1, 2} {
		got, err, unmet := create(made, 1)
		if err != nil || unmet != nil || got[0].Outcome != dialect.Done || got[1].Outcome != dialect.Done {
			t.Errorf("%d made: %+v, %v, %v", made, got, err, unmet)
		}
	}
	if got, err, _ := create(1, 0); err == nil {
		t.Errorf("not confirmed, and told %+v", got)
	}
}

// A batch fails as a whole if one of its rows was made by somebody else in that moment; none of the others was then made.
func TestADuplicateRefusesTheWholeBatch(t *testing.T) {
	m := newMocked(t, "")
	m.prepare("create").ExpectExec().WillReturnError(&driving.MySQLError{Number: 1062})
	_, err := m.d.Create(t.Context(), m.Session, []dialect.Change{change("a", lease.Owner{}, lease.Owner{1})})
	if v := dialect.Judge(m.d, err); v.Class != dialect.Conflict {
		t.Errorf("%v is %s", err, v.Class)
	}
}
