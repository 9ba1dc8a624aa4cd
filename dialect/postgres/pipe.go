package postgres

import (
	"context"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Pipe sends the plain statements of a few changes together. The server runs what comes before one
// Sync as one transaction, with one commit.
func (d *database) Pipe(
	ctx context.Context, s *conn.Session, strategy adapter.Strategy, changes []sqlstore.Change,
) ([]sqlstore.Applied, error) {
	out := make([]sqlstore.Applied, len(changes))
	plain := make([]int, 0, len(changes)) // the changes that have a plain statement
	for i := range changes {
		if changes[i].Acquires() || changes[i].Releases() {
			plain = append(plain, i)
		}
	}
	if len(plain) == 0 {
		return out, nil
	}
	p := piped{
		d: d, process: s.Process, insert: strategy == adapter.Insert,
		relaxed: s.Relaxed && sqlstore.OnlyReleases(changes),
	}
	err := s.Pipe(ctx, len(plain),
		func(i int) (string, []conn.Arg) { return p.statement(&changes[plain[i]]) },
		func(i int, row conn.Columns) error {
			c, a := &changes[plain[i]], &out[plain[i]]
			a.Outcome = sqlstore.Done
			if c.Releases() {
				a.Token, a.Looked = c.From.Token, true
				return row.Scan(&a.Awaited)
			}
			return row.Scan(&a.Token)
		})
	if err != nil {
		return make([]sqlstore.Applied, len(changes)), err
	}
	return out, nil
}

// piped makes the statements.
type piped struct {
	d       *database
	process lease.Owner
	insert  bool
	relaxed bool // every change that is sent is a release, whose commit need not be durable
	args    [5]conn.Arg
}

func (p *piped) statement(c *sqlstore.Change) (string, []conn.Arg) {
	if c.Releases() {
		args := releaseArgs(&c.From, p.process)
		n := copy(p.args[:], args[:])
		if p.relaxed {
			return p.d.Text("release-piped-relaxed"), p.args[:n]
		}
		return p.d.Text("release-piped"), p.args[:n]
	}
	p.args = acquireArgs(c.From.Key, c.To, c.Note, c.TTL)
	if p.insert {
		return p.d.Text("acquire-insert"), p.args[:]
	}
	return p.d.Text("acquire-piped"), p.args[:4]
}
