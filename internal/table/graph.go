package table

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

var _ lease.Graph = (*Store)(nil)

// Record notes what chains hold and wait for, in one statement.
func (s *Store) Record(
	ctx context.Context, by lease.Party, chains []lease.Caller, life time.Duration,
) error {
	args := []any{flag(by.Process), s.d.AsStored(by.Identity), conn.Micros(life)}
	return s.write(ctx, "wait-note", args, chains)
}

// Erase removes their records in one statement.
func (s *Store) Erase(ctx context.Context, chains []lease.Caller) error {
	return s.write(ctx, "wait-erase", nil, chains)
}

func (s *Store) write(ctx context.Context, section string, args []any, chains []lease.Caller) error {
	rows := recorded(chains)
	if len(rows) == 0 {
		return nil
	}
	args = append(args, s.d.Rows(rows)...)
	return s.OnPinned(ctx, section, rows[0].Key,
		func(ctx context.Context, session *conn.Session) error {
			_, err := session.Exec(ctx, s.d.Text(section), args...)
			return err
		})
}

// shares is the token of a key that is to be shared.
const shares = -1

// recorded returns the rows of chains, each once and in the order of the primary key, in which all
// lock them: one for each lease, and one without a token for each key that is waited for.
func recorded(chains []lease.Caller) (rows []lease.RenewRequest) {
	for _, c := range chains {
		row := func(key string, token lease.Token) {
			l := lease.Lease{Key: key, Owner: c.ID, Token: token}
			rows = append(rows, lease.RenewRequest{Lease: l, TTL: cmp.Or(c.Each[key], c.Waited)})
		}
		for _, l := range c.Holds {
			row(l.Key, l.Token)
		}
		for _, key := range c.Wants {
			row(key, 0)
		}
		for _, key := range c.Shares {
			row(key, shares)
		}
	}
	slices.SortFunc(rows, func(a, b lease.RenewRequest) int {
		return cmp.Or(slices.Compare(a.Owner[:], b.Owner[:]), cmp.Compare(a.Key, b.Key),
			cmp.Compare(a.Token, b.Token))
	})
	return slices.CompactFunc(rows, func(a, b lease.RenewRequest) bool { return a.Lease == b.Lease })
}

// Edges follows the waits of these chains, in one statement that locks and writes nothing.
func (s *Store) Edges(
	ctx context.Context, by lease.Party, from []lease.Owner, limit int,
) ([]lease.Edge, error) {
	if len(from) == 0 {
		return nil, nil
	}
	chains := make([]string, len(from))
	for i := range from {
		chains[i] = string(from[i][:])
	}
	args := []any{s.d.List(chains), flag(by.Process), limit}
	return ask(ctx, s.engine, about{conn.Acquire, "edges", ""},
		func(ctx context.Context, session *conn.Session) (edges []lease.Edge, err error) {
			err = session.Query(ctx, s.d.Text("wait-edges"), args, func(row conn.Columns) error {
				e, err := scanEdge(row)
				if err == nil {
					edges = append(edges, e)
				}
				return conn.UnlessBad(err) // a wait that says nothing leads nowhere
			})
			return edges, err
		})
}

func scanEdge(row conn.Columns) (e lease.Edge, err error) {
	var from, to, key, note []byte
	var since, until, waited int64
	err = row.Scan(&from, &to, &key, &e.Token, &note, &since, &until, &waited)
	if err == nil && (len(from) != len(e.From) || len(to) != len(e.To)) {
		err = fmt.Errorf("%w: a chain that waits for %q is called %x", lease.ErrCorrupt, key, from)
	}
	if err != nil {
		return e, err
	}
	e.From, e.To, e.Key, e.Identity = lease.Owner(from), lease.Owner(to), string(key), string(note)
	e.Since, e.Until = conn.Duration(since), conn.Duration(until)
	e.Waited = conn.Duration(waited)
	return e, nil
}

// sweepWaits removes the records that processes left which have died. It reads first, because there
// are hardly ever any, and a write takes the lock of a SQLite file.
func (s *Store) sweepWaits(ctx context.Context, retention time.Duration) error {
	age := conn.Micros(retention)
	return s.OnPinned(ctx, "sweep", "",
		func(ctx context.Context, session *conn.Session) error {
			var dead bool
			err := session.QueryRow(ctx, s.d.Text("wait-dead"), []any{age}, &dead)
			if err == nil && dead {
				_, err = session.Exec(ctx, s.d.Text("wait-reap"), age)
			}
			return err
		})
}

// rehearseGraph records a chain that holds l and waits for its key, which is a cycle of one.
func (s *Store) rehearseGraph(ctx context.Context, l lease.Lease) error {
	c := lease.Caller{ID: lease.NewOwner(), Holds: []lease.Lease{l}, Wants: []string{l.Key}}
	for range 2 {
		err := s.Record(ctx, lease.Party{}, []lease.Caller{c}, rehearsalTTL)
		if err != nil {
			return err
		}
	}
	edges, err := s.Edges(ctx, lease.Party{}, []lease.Owner{c.ID}, 10)
	if err == nil && (len(edges) != 1 || edges[0].To != c.ID || edges[0].Token != l.Token) {
		err = vanished("a wait was not noted")
	}
	if err == nil {
		err = s.Erase(ctx, []lease.Caller{c})
	}
	return err
}
