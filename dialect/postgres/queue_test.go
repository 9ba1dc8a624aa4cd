package postgres_test

import (
	"errors"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

func TestStatementsOfAClaim(t *testing.T) {
	granted := lease.Acquired{Granted: true, Token: 7}
	for name, c := range map[string]struct {
		any  *sqlmock.Rows // what claim-any answers; nil if it is not asked
		want lease.Acquired
		err  error
	}{
		"free, and nobody waits":      {nil, granted, nil},
		"absent or expired":           {answer(1, 7, "", 0), granted, nil},
		"out of turn":                 {answer(6, 6, "", 0), lease.Acquired{}, nil},
		"taken by another meanwhile":  {answer(2, 6, "", 0), lease.Acquired{}, sqlstore.ErrRowShape},
		"expired, and behind a fence": {answer(5, 6, "", 0), lease.Acquired{}, sqlstore.ErrRowLocked},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMocked(t)
			if c.any == nil {
				m.query("claim-update", token(7))
			} else {
				m.query("claim-update", none())
				m.query("claim-any", c.any)
			}
			got, err := m.d.Claim(t.Context(), m.Session, request)
			if got != c.want || !errors.Is(err, c.err) {
				t.Errorf("got %+v, %v; want %+v, %v", got, err, c.want, c.err)
			}
			m.done()
		})
	}
}

func TestAPassIsOneStatement(t *testing.T) {
	other := lease.Owner{2}
	row := func() *sqlmock.Rows { return sqlmock.NewRows([]string{"owner", "token"}) }
	for name, c := range map[string]struct {
		rows *sqlmock.Rows
		want lease.Passed
	}{
		"to the first":    {row().AddRow(other[:], 8), lease.Passed{To: other, Token: 8}},
		"to nobody":       {row().AddRow(nil, 7), lease.Passed{}},
		"of what is gone": {row(), lease.Passed{Gone: true}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMocked(t)
			m.query("pass", c.rows)
			got, err := m.d.Pass(t.Context(), m.Session, lease.Lease{Key: "key", Owner: request.Owner, Token: 7})
			if got != c.want || err != nil {
				t.Errorf("got %+v, %v; want %+v", got, err, c.want)
			}
			m.done()
		})
	}
}

// An answer that lacks rows, or has one too many, is no answer.
func TestPlacesWithTooFewAnswersAreNone(t *testing.T) {
	columns := []string{"n", "state", "waits", "token", "note", "remaining", "ahead"}
	for _, n := range []int{1, 3} {
		m := newMocked(t)
		m.query("places", sqlmock.NewRows(columns).AddRow(n, 0, true, 7, "other", 5, 0))
		if got, err := m.d.QueuePositions(t.Context(), m.Session, make([]lease.Lease, 2)); err == nil {
			t.Errorf("an answer for number %d of 2 is taken for %+v", n, got)
		}
		m.done()
	}
}
