package postgres_test

import (
	"database/sql"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// mocked is a session on a server that answers what a test says, and knows which statements came,
// in which order.
type mocked struct {
	testing.TB
	sqlmock.Sqlmock
	*conn.Session
	d *sqlstore.Dialect
}

func newMocked(t testing.TB) *mocked {
	exact := sqlmock.QueryMatcherOption(sqlmock.QueryMatcherEqual)
	db, mock, err := sqlmock.New(exact)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	pinned, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pinned.Close() })
	m := &mocked{t, mock, conn.NewSession(pinned), sqlstore.Of(postgres.New())}
	m.EraAt(0)
	return m
}

// query expects a section to be prepared and executed, and returns the rows.
func (m *mocked) query(section string, rows *sqlmock.Rows) {
	m.ExpectPrepare(conn.FillEra(m.d.Text(section), "0")).ExpectQuery().WillReturnRows(rows)
}

func (m *mocked) done() {
	m.Helper()
	if err := m.ExpectationsWereMet(); err != nil {
		m.Error(err)
	}
}

func answer(state, token lease.Token, note string, remaining int64) *sqlmock.Rows {
	return none().AddRow(state, token, []byte(note), remaining)
}

func token(n int64) *sqlmock.Rows { return sqlmock.NewRows([]string{"token"}).AddRow(n) }

func none() *sqlmock.Rows { return sqlmock.NewRows([]string{"state", "token", "note", "remaining"}) }

var request = lease.AcquireRequest{Key: "key", Owner: lease.Owner{1}, TTL: time.Minute, Note: "me"}

func TestStatementsOfAnAcquire(t *testing.T) {
	held := lease.Acquired{Holder: lease.Holder{Note: "other", Remaining: 5 * time.Second}}
	granted := lease.Acquired{Granted: true, Token: 7}
	for name, c := range map[string]struct {
		strategy adapter.Strategy
		expect   func(m *mocked)
		want     lease.Acquired
		err      error
	}{
		"free": {adapter.Update, func(m *mocked) { m.query("acquire-update", token(7)) }, granted, nil},
		"held": {adapter.Update, func(m *mocked) {
			m.query("acquire-update", none())
			m.query("acquire-any", answer(0, 6, "other", 5_000_000))
		}, held, nil},
		"absent or expired": {adapter.Update, func(m *mocked) {
			m.query("acquire-update", none())
			m.query("acquire-any", answer(1, 7, "", 0))
		}, granted, nil},
		"taken by another meanwhile": {adapter.Update, func(m *mocked) {
			m.query("acquire-update", none())
			m.query("acquire-any", answer(2, 6, "", 0))
		}, lease.Acquired{}, sqlstore.ErrRowShape},
		"gone meanwhile": {adapter.Update, func(m *mocked) {
			m.query("acquire-update", none())
			m.query("acquire-any", none())
		}, lease.Acquired{}, sqlstore.ErrRowShape},
		"expired, and behind a fence": {adapter.Update, func(m *mocked) {
			m.query("acquire-update", none())
			m.query("acquire-any", answer(5, 6, "", 0))
		}, lease.Acquired{}, sqlstore.ErrRowLocked},
		"inserted": {adapter.Insert, func(m *mocked) { m.query("acquire-insert", token(7)) }, granted, nil},
		"not inserted: the row is there": {adapter.Insert, func(m *mocked) {
			m.query("acquire-insert", none())
			m.query("acquire-any", answer(0, 6, "other", 5_000_000))
		}, held, nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMocked(t)
			c.expect(m)
			got, err := m.d.Acquire(t.Context(), m.Session, c.strategy, request)
			if got != c.want || !errors.Is(err, c.err) {
				t.Errorf("got %+v, %v; want %+v, %v", got, err, c.want, c.err)
			}
			m.done()
		})
	}
}

// Its MinHold has left the row with an owner, as a rule, which no plain statement takes.
func TestALeaseThatIsLeftToRunOutIsTakenInOneStatement(t *testing.T) {
	r := request
	r.Note = lease.LapsingNote("me", "")
	for _, strategy := range []adapter.Strategy{adapter.Update, adapter.Insert} {
		m := newMocked(t)
		m.query("acquire-any", answer(1, 7, "", 0))
		if got, err := m.d.Acquire(t.Context(), m.Session, strategy, r); !got.Granted || err != nil {
			t.Errorf("got %+v, %v", got, err)
		}
		m.done()
	}
}

func TestAStatementIsPreparedOnce(t *testing.T) {
	m := newMocked(t)
	prepared := m.ExpectPrepare(conn.FillEra(m.d.Text("acquire-update"), "0"))
	for range 3 {
		prepared.ExpectQuery().WillReturnRows(token(7))
		if _, err := m.d.Acquire(t.Context(), m.Session, adapter.Update, request); err != nil {
			t.Fatal(err)
		}
	}
	m.done()
}

func TestABatchIsRenewedInOneStatement(t *testing.T) {
	m := newMocked(t)
	m.query("renew", sqlmock.NewRows([]string{"outcome", "clock", "remaining"}).AddRow(1, 5, 0).AddRow(0, 5, 0).AddRow(2, 5, 7))
	got, err := m.d.Renew(t.Context(), m.Session, make([]lease.RenewRequest, 3))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []lease.RenewOutcome{lease.Extended, lease.Lost, lease.Busy} {
		if got[i].Outcome != want || got[i].Clock != 5*time.Microsecond {
			t.Errorf("renewal %d: got %+v, want %s", i, got[i], want)
		}
	}
	m.done()
}

// An answer that lacks rows is no answer: no holder is told that its lease is lost.
func TestARenewalWithTooFewAnswersIsUnknown(t *testing.T) {
	m := newMocked(t)
	m.query("renew", sqlmock.NewRows([]string{"outcome", "clock", "remaining"}).AddRow(1, 5, 0))
	_, err := m.d.Renew(t.Context(), m.Session, make([]lease.RenewRequest, 2))
	if v := sqlstore.Judge(m.d, err); err == nil || v.Class != sqlstore.Unknown {
		t.Errorf("got %v, which is %s", err, v.Class)
	}
}

func TestReleaseIsOneStatement(t *testing.T) {
	awaited := func() *sqlmock.Rows { return sqlmock.NewRows([]string{"exists"}) }
	for _, c := range []struct {
		rows *sqlmock.Rows
		want lease.Released
	}{
		{awaited().AddRow(false), lease.Released{Looked: true}},
		{awaited().AddRow(true), lease.Released{Awaited: true, Looked: true}},
		{awaited(), lease.Released{Gone: true}},
	} {
		m := newMocked(t)
		m.Process = lease.Owner{2}
		m.ExpectPrepare(conn.FillEra(m.d.Text("release"), "0")).ExpectQuery().WithArgs([]byte("key"), request.Owner[:], int64(7), m.Process[:]).WillReturnRows(c.rows)
		got, err := m.d.Release(t.Context(), m.Session, lease.Lease{Key: "key", Owner: request.Owner, Token: 7})
		if err != nil || got != c.want {
			t.Errorf("got %+v, %v; want %+v", got, err, c.want)
		}
		m.done()
	}
}

// What fails before the statement is sent has not been applied; what fails after may have been.
func TestOnlyThePreparationIsKnownNotToHaveBeenSent(t *testing.T) {
	for _, broken := range []error{io.ErrUnexpectedEOF, sql.ErrConnDone, errors.New("anything")} {
		m := newMocked(t)
		m.ExpectPrepare(conn.FillEra(m.d.Text("acquire-update"), "0")).WillReturnError(broken)
		_, err := m.d.Acquire(t.Context(), m.Session, adapter.Update, request)
		if v := sqlstore.Judge(m.d, err); !errors.Is(err, broken) || v.Class != sqlstore.Unfit {
			t.Errorf("preparing: %v is %s", err, v.Class)
		}
		m.ExpectPrepare(conn.FillEra(m.d.Text("acquire-update"), "0")).ExpectQuery().WillReturnError(broken)
		_, err = m.d.Acquire(t.Context(), m.Session, adapter.Update, request)
		if v := sqlstore.Judge(m.d, err); !errors.Is(err, broken) || v.Class != sqlstore.Unknown {
			t.Errorf("executing: %v is %s", err, v.Class)
		}
		m.done()
	}
}

// A grant whose reply ends with an error is none: the commit comes after the row.
func TestAGrantCountsWhenItsReplyIsComplete(t *testing.T) {
	m := newMocked(t)
	m.query("acquire-update", token(7).CloseError(state("40001")))
	got, err := m.d.Acquire(t.Context(), m.Session, adapter.Update, request)
	if v := sqlstore.Judge(m.d, err); got.Granted || err == nil || v.Class != sqlstore.Conflict {
		t.Errorf("got %+v, %v", got, err)
	}
}
