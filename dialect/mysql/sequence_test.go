package mysql_test

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	driving "github.com/go-sql-driver/mysql"

	"github.com/rowlockdb/rowlock/dialect/mysql"
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
	d        *sqlstore.Dialect
	prepared map[string]*sqlmock.ExpectedPrepare
}

func newMocked(t testing.TB, flavor string) *mocked {
	db, mock, err := sqlmock.New(sqlmock.QueryMatcherOption(sqlmock.QueryMatcherEqual))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	pinned, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pinned.Close() })
	m := &mocked{t, mock, conn.NewSession(pinned), sqlstore.Of(mysql.New()), make(map[string]*sqlmock.ExpectedPrepare)}
	m.Flavor = flavor
	m.EraAt(0)
	return m
}

// prepare expects a section to be prepared, unless it was.
func (m *mocked) prepare(section string) *sqlmock.ExpectedPrepare {
	if m.prepared[section] == nil {
		m.prepared[section] = m.ExpectPrepare(conn.FillEra(m.d.Text(section), "0"))
	}
	return m.prepared[section]
}

// look expects the look, and has it find a row in a state; -1 means none.
func (m *mocked) look(state int64) {
	rows := sqlmock.NewRows([]string{"state", "token", "note", "remaining"})
	if state >= 0 {
		rows.AddRow(state, 6, []byte("other"), 5_000_000)
	}
	m.prepare("look").ExpectQuery().WithArgs(request.Owner[:], []byte("key")).WillReturnRows(rows)
}

// exec expects a section to be executed, which grants token 7 or changes nothing, or fails with a
// number.
func (m *mocked) exec(section string, number uint16) {
	e := m.prepare(section).ExpectExec()
	switch number {
	case grants:
		e.WillReturnResult(sqlmock.NewResult(7, 1))
	case nothing:
		e.WillReturnResult(sqlmock.NewResult(0, 0))
	default:
		e.WillReturnError(&driving.MySQLError{Number: number})
	}
}

const grants, nothing = 1, 2

var request = lease.AcquireRequest{Key: "key", Owner: lease.Owner{1}, TTL: time.Minute, Note: "me"}

func TestStatementsOfAnAcquire(t *testing.T) {
	const my, maria = "", "MariaDB"
	granted := lease.Acquired{Granted: true, Token: 7}
	held := lease.Acquired{Holder: lease.Holder{Note: "other", Remaining: 5 * time.Second}}
	for name, c := range map[string]struct {
		flavor   string
		strategy adapter.Strategy
		expect   func(m *mocked)
		want     lease.Acquired
		err      error
	}{
		"a free row takes one": {my, adapter.Update, func(m *mocked) {
			m.exec("acquire-update", grants)
		}, granted, nil},
		"a held one is looked at": {my, adapter.Update, func(m *mocked) {
			m.exec("acquire-update", nothing)
			m.look(sqlstore.StateHeld)
		}, held, nil},
		"an absent one is made": {my, adapter.Update, func(m *mocked) {
			m.exec("acquire-update", nothing)
			m.look(-1)
			m.exec("acquire-insert", grants)
		}, granted, nil},
		"MariaDB meets a locked row": {maria, adapter.Update, func(m *mocked) {
			m.exec("acquire-update", 1205)
			m.look(sqlstore.StateHeld)
		}, held, nil},
		"an expired one is taken without waiting": {my, adapter.Update, func(m *mocked) {
			m.exec("acquire-update", nothing)
			m.look(sqlstore.StateLocked)
			m.exec("acquire-expired", grants)
		}, granted, nil},
		"one that is released between is taken": {my, adapter.Update, func(m *mocked) {
			m.exec("acquire-update", nothing)
			m.look(sqlstore.StateFree)
			m.exec("acquire-update", grants)
		}, granted, nil},
		"a race for a free row is lost": {my, adapter.Update, func(m *mocked) {
			m.exec("acquire-update", nothing)
			m.look(sqlstore.StateFree)
			m.exec("acquire-update", nothing)
			m.look(sqlstore.StateHeld)
		}, held, nil},
		"a race for an absent one is lost": {my, adapter.Update, func(m *mocked) {
			m.exec("acquire-update", nothing)
			m.look(-1)
			m.exec("acquire-insert", 1062)
		}, lease.Acquired{}, sqlstore.ErrRowShape},
		"the row is the owner's own": {my, adapter.Update, func(m *mocked) {
			m.exec("acquire-update", nothing)
			m.look(sqlstore.StateMine)
		}, lease.Acquired{Granted: true, Token: 6}, nil},
		"Insert makes an absent row in one": {my, adapter.Insert, func(m *mocked) {
			m.exec("acquire-insert", grants)
		}, granted, nil},
		"Insert meets a held row": {my, adapter.Insert, func(m *mocked) {
			m.exec("acquire-insert", 1062)
			m.exec("acquire-update", nothing)
			m.look(sqlstore.StateHeld)
		}, held, nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMocked(t, c.flavor)
			c.expect(m)
			got, err := m.d.Acquire(t.Context(), m.Session, c.strategy, request)
			if got != c.want || !errors.Is(err, c.err) {
				t.Errorf("got %+v, %v; want %+v, %v", got, err, c.want, c.err)
			}
			if err := m.ExpectationsWereMet(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Its MinHold has left the row with an owner, as a rule.
func TestALeaseThatIsLeftToRunOutIsTakenInOneStatement(t *testing.T) {
	r := request
	r.Note = lease.LapsingNote("me", "")
	for _, strategy := range []adapter.Strategy{adapter.Update, adapter.Insert} {
		m := newMocked(t, "")
		m.exec("acquire-expired", grants)
		if got, err := m.d.Acquire(t.Context(), m.Session, strategy, r); !got.Granted || err != nil {
			t.Errorf("got %+v, %v", got, err)
		}
		m.exec("acquire-expired", nothing)
		m.look(-1)
		m.exec("acquire-insert", grants)
		if got, err := m.d.Acquire(t.Context(), m.Session, strategy, r); !got.Granted || err != nil {
			t.Errorf("absent: got %+v, %v", got, err)
		}
		if err := m.ExpectationsWereMet(); err != nil {
			t.Error(err)
		}
	}
}

func TestReleaseIsOneStatement(t *testing.T) {
	for _, c := range []struct {
		changed, waits int64
		want           lease.Released
	}{
		{1, 0, lease.Released{Looked: true}},
		{1, 1, lease.Released{Looked: true}}, // a process listens
		{1, 3, lease.Released{Awaited: true, Looked: true}},
		{0, 1, lease.Released{Gone: true}}, // of the session's statement before
	} {
		m := newMocked(t, "")
		m.Heard = true
		m.prepare("release-awaited").ExpectExec().
			WithArgs("_door", []byte("key"), m.Process[:], []byte("key"), request.Owner[:], int64(7)).
			WillReturnResult(sqlmock.NewResult(c.waits, c.changed))
		got, err := m.d.Release(t.Context(), m.Session, lease.Lease{Key: "key", Owner: request.Owner, Token: 7})
		if err != nil || got != c.want {
			t.Errorf("%d rows changed: got %+v, %v, want %+v", c.changed, got, err, c.want)
		}
		if err := m.ExpectationsWereMet(); err != nil {
			t.Error(err)
		}
	}
}

// An error in the middle of a sequence ends it: nothing is sent on a connection in an unknown
// state.
func TestAnErrorEndsTheSequence(t *testing.T) {
	m := newMocked(t, "")
	m.prepare("acquire-update").ExpectExec().WillReturnError(io.ErrUnexpectedEOF)
	_, err := m.d.Acquire(t.Context(), m.Session, adapter.Update, request)
	if v := sqlstore.Judge(m.d, err); !errors.Is(err, io.ErrUnexpectedEOF) || v.Class != sqlstore.Unknown {
		t.Errorf("%v is %s", err, v.Class)
	}
	if err := m.ExpectationsWereMet(); err != nil {
		t.Error(err)
	}
}
