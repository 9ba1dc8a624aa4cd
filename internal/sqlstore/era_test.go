package sqlstore

import (
	"errors"
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
