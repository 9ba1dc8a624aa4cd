package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

// Base is what most databases do alike. A room embeds it and does the rest in its own way.
type Base struct {
	Sections
	// Note and TTL encode a lease's note and duration as parameters.
	Note func(string) any
	TTL  func(time.Duration) int64
	// Waiters encodes keys and owners as the parameters of a queue section.
	Waiters func([]lease.Lease) []any
}

// AsText sends a note as it is.
func AsText(note string) any { return note }

// AsBytes sends a note as bytes.
func AsBytes(note string) any { return []byte(note) }

// HandOver changes the owner of one row. The section need return no token: if it changed the row,
// that had From's.
func (b *Base) HandOver(ctx context.Context, s *conn.Session, h lease.HandOver) (lease.Acquired, error) {
	n, err := s.Change(ctx, b.Text("hand-over"), conn.Bytes(h.To.Owner), b.Note(h.To.Note),
		b.TTL(h.To.TTL),
		[]byte(h.From.Key), conn.Bytes(h.From.Owner), h.From.Token)
	if err != nil || n == 0 {
		return lease.Acquired{}, err
	}
	return lease.Acquired{Granted: true, Token: s.Next(h.From.Token)}, nil
}

// Release clears the owner of one row. The section changes the owner of every row it matches, so
// that a driver which counts changed rows and one which counts matched rows agree.
func (b *Base) Release(ctx context.Context, s *conn.Session, l lease.Lease) (lease.Released, error) {
	n, err := s.Change(ctx, b.Text("release"), []byte(l.Key), conn.Bytes(l.Owner), int64(l.Token))
	return lease.Released{Gone: err == nil && n == 0}, err
}

// Leave removes tickets.
func (b *Base) Leave(ctx context.Context, s *conn.Session, waiters []lease.Lease) error {
	_, err := s.Exec(ctx, b.Text("queue-leave"), b.Waiters(waiters)...)
	return err
}

// QueuePositions returns where tickets stand.
func (b *Base) QueuePositions(ctx context.Context, s *conn.Session, waiters []lease.Lease) (
	[]lease.QueuePosition, error,
) {
	return places(ctx, s, b.Text("places"), len(waiters), b.Waiters(waiters))
}

// Pass runs the pass section, which returns the new owner, or no row if the row was not the
// lease's.
func (b *Base) Pass(ctx context.Context, s *conn.Session, l lease.Lease) (lease.Passed, error) {
	var owner []byte
	var token lease.Token
	args := []any{[]byte(l.Key), conn.Bytes(l.Owner), l.Token}
	err := s.QueryRow(ctx, b.Text("pass"), args, &owner, &token)
	if errors.Is(err, sql.ErrNoRows) {
		return lease.Passed{Gone: true}, nil
	}
	if err != nil {
		return lease.Passed{}, err
	}
	return PassedTo(owner, token)
}

// DropDead removes dead tickets.
func (b *Base) DropDead(
	ctx context.Context, s *conn.Session, tickets []lease.Lease, retention int64,
) error {
	_, err := s.Exec(ctx, b.Text("queue-reap"), append(b.Waiters(tickets), retention)...)
	return err
}
