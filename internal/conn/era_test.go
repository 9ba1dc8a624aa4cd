package conn

import (
	"errors"
	"math"
	"testing"

	"github.com/rowlockdb/rowlock/lease"
)

// A statement that grants is not sent by a session that has learned no era.
func TestNothingIsGrantedWithoutAnEra(t *testing.T) {
	s := &Session{}
	if text, err := s.text("SELECT 1"); err != nil || text != "SELECT 1" {
		t.Errorf("%q, %v", text, err)
	}
	_, err := s.text("UPDATE t SET token = greatest(token, @era) + 1")
	if !errors.Is(err, lease.ErrConfig) || !errors.As(err, new(NotSent)) {
		t.Errorf("got %v", err)
	}
	s.EraAt(5)
	if text, err := s.text("SELECT @era"); err != nil || text != "SELECT 5" || s.Next(3) != 6 || s.Next(7) != 8 {
		t.Errorf("%q, %v", text, err)
	}
}

// Within the bounds no function is asked: outside of them it decides, also if they move later.
func TestASessionGrantsWithinItsBounds(t *testing.T) {
	refused := errors.New("refused")
	s := &Session{}
	s.Bounds = new(EraBounds)
	s.GrantIn(5, "5", func(lease.Token) error { return refused })
	for _, c := range []struct {
		first, last int64
		want        error
	}{{5, 5, nil}, {-1, math.MaxInt64, nil}, {6, math.MaxInt64, refused}, {-1, 4, refused}} {
		s.Bounds.First.Store(c.first)
		s.Bounds.Last.Store(c.last)
		if err := s.Refusal(); err != c.want {
			t.Errorf("an era that begins after 5, of those from %d to %d: %v", c.first, c.last, err)
		}
	}
}
