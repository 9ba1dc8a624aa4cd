package sqlstore

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/lease"
)

// Queue is what a database does for clients that wait in order. Wherever both are locked, rowlock's
// row is locked before the ticket's.
type Queue interface {
	// Join and Leave take keys in order.
	Join(ctx context.Context, s *conn.Session, tickets []lease.Ticket) error
	Leave(ctx context.Context, s *conn.Session, waiters []lease.Lease) error
	QueuePositions(ctx context.Context, s *conn.Session, waiters []lease.Lease) ([]lease.QueuePosition, error)
	Claim(ctx context.Context, s *conn.Session, req lease.AcquireRequest) (lease.Acquired, error)
	Pass(ctx context.Context, s *conn.Session, l lease.Lease) (lease.Passed, error)
	// DeadTickets lists the next tickets, in order of key and waiter, that have been dead for
	// the retention in µs. DropDead removes those of them that still are.
	DeadTickets(ctx context.Context, s *conn.Session, after lease.Lease, retention int64,
		limit int) ([]lease.Lease, error)
	DropDead(ctx context.Context, s *conn.Session, tickets []lease.Lease, retention int64) error
}

// TicketList encodes tickets as a JSON array for the queue sections: hexadecimal key, waiter and
// note, head start and ttl in µs.
func TicketList(tickets []lease.Ticket) string {
	b := startList(len(tickets), 200)
	for i := range tickets {
		t := &tickets[i]
		b = appendHex(append(b, `{"k":"`...), t.Key)
		b = hex.AppendEncode(append(b, `","o":"`...), t.Owner[:])
		b = strconv.AppendInt(append(b, `","h":`...), conn.Micros(t.HeadStart()), 10)
		b = appendHex(append(b, `,"c":"`...), t.Note)
		b = append(strconv.AppendInt(append(b, `","d":`...), conn.Micros(t.TTL), 10), `},`...)
	}
	return endList(b)
}

// WaiterList encodes keys and waiters as a JSON array of {k, o}, which is the one parameter.
func WaiterList(waiters []lease.Lease) []any {
	b := startList(len(waiters), 100)
	for i := range waiters {
		b = appendHex(append(b, `{"k":"`...), waiters[i].Key)
		b = hex.AppendEncode(append(b, `","o":"`...), waiters[i].Owner[:])
		b = append(b, `"},`...)
	}
	return []any{endList(b)}
}

// places runs the places section, which returns a row for each of n waiters: its number from 1 on,
// the state of the key as in an Answer, whether there is a live ticket, token, note, the µs
// remaining, and how many waiters are ahead.
func places(ctx context.Context, s *conn.Session, query string, n int, args []any) (
	[]lease.QueuePosition, error,
) {
	out, answered := make([]lease.QueuePosition, n), 0
	err := s.Query(ctx, query, args, func(row conn.Columns) error {
		var p place
		at, bad := p.scan(row)
		switch {
		case bad != nil && !conn.IsBad(bad):
			return bad
		case at < 1 || at > n:
			return oneline.Join(bad, fmt.Errorf("places: answer %d to %d requests", at, n))
		case bad != nil:
			out[at-1] = lease.QueuePosition{Err: bad}
		default:
			out[at-1] = p.place()
		}
		answered++
		return nil
	})
	if err == nil && answered != n {
		err = fmt.Errorf("places: %d answers to %d requests", answered, n)
	}
	return out, err
}

// place is one row of the places section.
type place struct {
	Answer
	waits bool
	ahead int
}

func (p *place) scan(row conn.Columns) (at int, err error) {
	err = row.Scan(&at, &p.State, &p.waits, &p.Token, &p.Note, &p.Remaining, &p.ahead)
	return at, err
}

func (p *place) place() lease.QueuePosition {
	out := lease.QueuePosition{
		Token: p.Token, Remaining: conn.Duration(p.Remaining), Ahead: p.ahead, Note: string(p.Note),
	}
	switch p.State {
	case StateMine:
		if err := conn.CheckToken(true, p.Token); err != nil {
			return lease.QueuePosition{Err: err}
		}
		out.Granted = true
	case StateHeld:
	case StateFree:
		out.Remaining = min(0, out.Remaining)
	default:
		_, err := p.Acquired(nil)
		return lease.QueuePosition{Err: err}
	}
	out.Missing = !out.Granted && !p.waits
	return out
}

// PassedTo returns the answer of a pass after which owner has the row: a waiter, or none.
func PassedTo(owner []byte, token lease.Token) (lease.Passed, error) {
	switch len(owner) {
	case 0:
		return lease.Passed{}, nil
	case len(lease.Owner{}):
		if err := conn.CheckToken(true, token); err != nil {
			return lease.Passed{}, err
		}
		return lease.Passed{To: lease.Owner(owner), Token: token}, nil
	}
	return lease.Passed{}, fmt.Errorf("%w: a waiter is called %x", lease.ErrCorrupt, owner)
}

// DeadTickets runs the queue-dead section, which leaves out what is no ticket's name.
func DeadTickets(ctx context.Context, s *conn.Session, d Texts, args ...any) (
	dead []lease.Lease, err error,
) {
	err = s.Query(ctx, d.Text("queue-dead"), args, func(row conn.Columns) error {
		var key, waiter []byte
		err := row.Scan(&key, &waiter)
		if err == nil && len(waiter) == len(lease.Owner{}) {
			dead = append(dead, lease.Lease{Key: string(key), Owner: lease.Owner(waiter)})
		}
		return conn.UnlessBad(err)
	})
	return dead, err
}
