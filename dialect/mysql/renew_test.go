package mysql_test

import (
	"io"
	"slices"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/rowlockdb/rowlock/lease"
)

const clock = 1_700_000_000_000_000

func renewal(keys ...string) []lease.RenewRequest {
	reqs := make([]lease.RenewRequest, len(keys))
	for i, k := range keys {
		reqs[i] = lease.RenewRequest{Lease: lease.Lease{Key: k, Owner: request.Owner, Token: 7}, TTL: time.Second}
	}
	return reqs
}

// renew expects the statement that extends, and has it extend so many rows.
func (m *mocked) renew(rows int64) {
	m.prepare("renew").ExpectExec().WillReturnResult(sqlmock.NewResult(clock, rows))
}

// lockable expects to be asked what can be locked: n, whether it was extended, what remains.
func (m *mocked) lockable(lines ...[3]int64) {
	rows := sqlmock.NewRows([]string{"n", "extended", "remaining", "clock"})
	for _, l := range lines {
		rows.AddRow(l[0], l[1], l[2], clock+1)
	}
	m.prepare("renew-lock").ExpectQuery().WillReturnRows(rows)
}

// mine expects to be asked what is still the holder's: n, whether it was extended.
func (m *mocked) mine(lines ...[2]int64) {
	rows := sqlmock.NewRows([]string{"n", "extended", "remaining"})
	for _, l := range lines {
		rows.AddRow(l[0], l[1], 7)
	}
	m.prepare("renew-look").ExpectQuery().WillReturnRows(rows)
}

func TestStatementsOfARenewal(t *testing.T) {
	const extended, busy, lost = lease.Extended, lease.Busy, lease.Lost
	for name, c := range map[string]struct {
		keys   []string
		expect func(m *mocked)
		want   []lease.RenewOutcome
	}{
		"one statement extends everything": {[]string{"a", "b"}, func(m *mocked) {
			m.renew(2)
		}, []lease.RenewOutcome{extended, extended}},
		"a row that is not counted because it had its expiry already": {[]string{"a"}, func(m *mocked) {
			m.renew(0)
			m.lockable([3]int64{1, 1, 1})
		}, []lease.RenewOutcome{extended}},
		"one is lost, one was locked for a moment": {[]string{"a", "b", "c"}, func(m *mocked) {
			m.renew(1)
			m.lockable([3]int64{1, 1, 1}, [3]int64{2, 0, 0}, [3]int64{3, 0, 1})
		}, []lease.RenewOutcome{extended, lost, busy}},
		"one is fenced, one was after its extension, one is another's": {[]string{"a", "b", "c"}, func(m *mocked) {
			m.renew(1)
			m.lockable()
			m.mine([2]int64{1, 0}, [2]int64{2, 1})
		}, []lease.RenewOutcome{busy, extended, lost}},
		"a lease that comes twice may be counted twice": {[]string{"a", "a"}, func(m *mocked) {
			m.renew(2)
			m.lockable([3]int64{1, 1, 1}, [3]int64{2, 0, 1})
		}, []lease.RenewOutcome{extended, busy}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMocked(t, "")
			c.expect(m)
			got, err := m.d.Renew(t.Context(), m.Session, renewal(c.keys...))
			if err != nil {
				t.Fatal(err)
			}
			var outcomes []lease.RenewOutcome
			for _, g := range got {
				outcomes = append(outcomes, g.Outcome)
				if g.Outcome == extended && g.Clock == 0 && name == "one statement extends everything" {
					t.Error("no clock")
				}
			}
			if !slices.Equal(outcomes, c.want) {
				t.Errorf("got %v, want %v", outcomes, c.want)
			}
			if err := m.ExpectationsWereMet(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestARenewalOfWhichNothingIsKnownExtendsNothing(t *testing.T) {
	m := newMocked(t, "")
	m.renew(1)
	m.prepare("renew-lock").ExpectQuery().WillReturnError(io.ErrUnexpectedEOF)
	got, err := m.d.Renew(t.Context(), m.Session, renewal("a", "b"))
	if err == nil || slices.ContainsFunc(got, func(r lease.Renewed) bool { return r.Outcome == lease.Extended }) {
		t.Errorf("got %+v, %v", got, err)
	}
}
