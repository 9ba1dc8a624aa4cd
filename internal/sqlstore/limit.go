package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

// Within names the generation of a limit in which slots were counted.
type Within struct {
	Name       string
	Generation int64
}

// Limit is a semaphore's limit as it was read.
type Limit struct {
	// Exists says that there is one; otherwise nothing else is set.
	Exists bool
	// Slots is how many there are, and Peak the largest number that there ever was.
	Slots, Peak int
	Generation  int64
}

// LookAtLimit reads a limit.
func LookAtLimit(ctx context.Context, s *conn.Session, d Texts, name string) (Limit, error) {
	l := Limit{Exists: true}
	err := s.QueryRow(ctx, d.Text("limit-look"), []any{[]byte(name)}, &l.Slots, &l.Peak, &l.Generation)
	if errors.Is(err, sql.ErrNoRows) {
		return Limit{}, nil
	}
	if err == nil {
		err = l.check(name)
	}
	return l, err
}

// check refuses numbers that no limit has. Callers read as many slots as the peak says.
func (l Limit) check(name string) error {
	if l.Slots < 1 || l.Slots > l.Peak || l.Peak > lease.MaxSlots {
		return fmt.Errorf("%w: the limit %q has %d slots and a peak of %d: 1 to %d slots are allowed, "+
			"and the peak is at least as many", lease.ErrCorrupt, name, l.Slots, l.Peak, lease.MaxSlots)
	}
	return nil
}

// MakeLimit creates a limit unless there is one.
func MakeLimit(ctx context.Context, s *conn.Session, d Texts, name string, l Limit) error {
	_, err := s.Change(ctx, d.Text("limit-make"), []byte(name), l.Slots, l.Peak)
	return err
}

// ResizeLimit begins a generation with that number of slots. It is false if there is no limit.
func ResizeLimit(ctx context.Context, s *conn.Session, d Texts, name string, slots int) (bool, error) {
	n, err := s.Change(ctx, d.Text("limit-resize"), slots, slots, []byte(name))
	return n > 0, err
}
