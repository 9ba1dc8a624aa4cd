package mysql_test

import (
	"errors"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

var other = lease.Owner{2}

// head expects a read of the head of the queue; with the zero owner the queue is empty.
func (m *mocked) head(first lease.Owner) {
	rows := sqlmock.NewRows([]string{"waiter"})
	if !first.IsZero() {
		rows.AddRow(first[:])
	}
	m.prepare("queue-head").ExpectQuery().WillReturnRows(rows)
}

func TestStatementsOfAClaim(t *testing.T) {
	granted := lease.Acquired{Granted: true, Token: 7}
	for name, c := range map[string]struct {
		expect func(m *mocked)
		want   lease.Acquired
		err    error
	}{
		"a free row for which nobody waits takes one": {func(m *mocked) {
			m.exec("claim-update", grants)
		}, granted, nil},
		"of a held row the queue is not asked for": {func(m *mocked) {
			m.exec("claim-update", nothing)
			m.look(sqlstore.StateMine)
		}, lease.Acquired{Granted: true, Token: 6}, nil},
		"out of turn nothing is written": {func(m *mocked) {
			m.exec("claim-update", nothing)
			m.look(sqlstore.StateFree)
			m.head(other)
		}, lease.Acquired{}, nil},
		"in turn the ticket goes in the same statement": {func(m *mocked) {
			m.exec("claim-update", nothing)
			m.look(sqlstore.StateLocked)
			m.head(request.Owner)
			m.exec("claim-ticket", grants)
			m.exec("queue-reap", grants)
		}, granted, nil},
		"in turn, and behind a fence": {func(m *mocked) {
			m.exec("claim-update", nothing)
			m.look(sqlstore.StateLocked)
			m.head(request.Owner)
			m.exec("claim-ticket", nothing)
			m.look(sqlstore.StateLocked)
		}, lease.Acquired{}, sqlstore.ErrRowLocked},
		"an absent row is made": {func(m *mocked) {
			m.exec("claim-update", nothing)
			m.look(-1)
			m.head(lease.Owner{})
			m.exec("acquire-insert", grants)
		}, granted, nil},
		"a race for an absent row is lost": {func(m *mocked) {
			m.exec("claim-update", nothing)
			m.look(-1)
			m.head(lease.Owner{})
			m.exec("acquire-insert", 1062)
		}, lease.Acquired{}, sqlstore.ErrRowShape},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMocked(t, "")
			c.expect(m)
			got, err := m.d.Claim(t.Context(), m.Session, request)
			if got != c.want || !errors.Is(err, c.err) {
				t.Errorf("got %+v, %v; want %+v, %v", got, err, c.want, c.err)
			}
			if err := m.ExpectationsWereMet(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestStatementsOfAPass(t *testing.T) {
	for name, c := range map[string]struct {
		expect func(m *mocked)
		want   lease.Passed
	}{
		"to the first, whose ticket is then deleted": {func(m *mocked) {
			m.head(other)
			m.exec("pass", grants)
			m.exec("queue-reap", grants)
		}, lease.Passed{To: other, Token: 7}},
		"to the first, whatever becomes of the ticket that was used": {func(m *mocked) {
			m.head(other)
			m.exec("pass", grants)
			m.exec("queue-reap", 1205)
		}, lease.Passed{To: other, Token: 7}},
		"to nobody": {func(m *mocked) {
			m.head(lease.Owner{})
			m.exec("release", grants)
		}, lease.Passed{}},
		"to one who leaves": {func(m *mocked) {
			m.head(other)
			m.exec("pass", nothing)
			m.exec("release", grants)
		}, lease.Passed{}},
		"of what is gone": {func(m *mocked) {
			m.head(other)
			m.exec("pass", nothing)
			m.exec("release", nothing)
		}, lease.Passed{Gone: true}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMocked(t, "")
			c.expect(m)
			got, err := m.d.Pass(t.Context(), m.Session, lease.Lease{Key: "key", Owner: request.Owner, Token: 6})
			if got != c.want || err != nil {
				t.Errorf("got %+v, %v; want %+v", got, err, c.want)
			}
			if err := m.ExpectationsWereMet(); err != nil {
				t.Error(err)
			}
		})
	}
}
