package latch

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/rowlockdb/rowlock/latch/internal/rows"
	"github.com/rowlockdb/rowlock/lease"
)

// looks bounds how often Open looks at a row that keeps changing.
const looks = 8

// Open returns the latch of that name in its present generation, and creates it if there is none.
// name has 1 to 255 bytes, compared exactly, and parties is 1 to [MaxParties]. If the latch has
// another number of parties, Open returns a [*PartiesError].
func (s *Latches) Open(ctx context.Context, name string, parties int) (*Latch, error) {
	v, err := s.openRow(ctx, rows.Latches, name, parties)
	if err != nil {
		return nil, err
	}
	return s.latch(name, v), nil
}

// Find is Open for a latch that exists. If there is none, the error wraps ErrNotFound.
func (s *Latches) Find(ctx context.Context, name string) (*Latch, error) {
	if err := s.check(ctx, name); err != nil {
		return nil, err
	}
	v, err := s.look(ctx, rows.Row{Kind: rows.Latches, Name: []byte(name)})
	switch {
	case err != nil:
		return nil, err
	case !v.Live:
		return nil, notFound(name)
	}
	return s.latch(name, v), nil
}

// Barrier returns the barrier of that name, and creates it if there is none. Barriers and latches
// of one name are different things. The limits and errors are those of Open.
func (s *Latches) Barrier(ctx context.Context, name string, parties int) (*Barrier, error) {
	if _, err := s.openRow(ctx, rows.Barriers, name, parties); err != nil {
		return nil, err
	}
	return &Barrier{s: s, name: name, parties: parties, inside: make(map[string]*stay)}, nil
}

func (s *Latches) openRow(ctx context.Context, kind int, name string, parties int) (
	v rows.View, err error,
) {
	if err := s.check(ctx, name); err != nil {
		return v, err
	}
	if err := checkParties(name, parties); err != nil {
		return v, err
	}
	row := rows.Row{Kind: kind, Name: []byte(name), ID: lease.NewOwner()}
	for range looks {
		if v, err = s.look(ctx, row); err != nil {
			return v, err
		}
		if v.Live && v.Parties != parties {
			return v, &PartiesError{Name: name, Parties: parties, Found: v.Parties}
		}
		if !v.Live {
			err = s.create(ctx, row, parties, v.Parties > 0)
		} else if kept, failed := s.keep(ctx, at(row, v)); kept {
			return v, nil
		} else {
			err = failed
		}
		if err != nil {
			return v, err
		}
	}
	return v, fmt.Errorf("%w: latch %q changes all the time: is it reset in a loop?", lease.ErrBusy, name)
}

// next is the id of the generation after id. Because it is no random number, a repeated reset finds
// what it did the first time.
func next(id lease.Owner) (n lease.Owner) {
	sum := sha256.Sum256(append([]byte("rowlock latch, next: "), id[:]...))
	copy(n[:], sum[:])
	return n
}

// at is row in the generation that was read.
func at(row rows.Row, v rows.View) rows.Row {
	row.ID = v.ID
	return row
}
