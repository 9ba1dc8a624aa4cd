package console

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/internal/shown"
	"github.com/rowlockdb/rowlock/lease"
)

// Limits of what a page shows.
const (
	mostEdges   = 2000
	mostWaiters = 500
	mostMembers = 200
	mostRecords = 50
	mostEvents  = 200
)

// heldPage is what the first page shows.
type heldPage struct {
	Rows []shown.Row
	Last *shown.Row // if there may be more
}

// processPage is what the page of a process shows.
type processPage struct {
	heldPage
	Waits []shown.Waited
	Told  bool // the store is a database
}

// keyPage is what the page of a key shows.
type keyPage struct {
	Key     string
	Record  lease.Record
	Members []shown.Member
	Waiters shown.Waiters
	// Expired says of a lease that has run out whether a transaction has its row locked.
	Expired string
	Forced  []lease.Forced
	// Unrecorded says that the database user may not read Forced.
	Unrecorded bool
	Write      bool
	// Timeline has events if Timed, and Cut if there may be more.
	Timeline   []Event
	Timed, Cut bool
	Untold     string // why there is no Timeline
}

// errCheck is of Options.Findings.
var errCheck = errors.New("rowlock: the check of the database failed")

// read reads what a view shows, and returns how many statements it took.
func (c *Console) read(ctx context.Context, v view) (*frame, int) {
	data, statements, err := c.data(ctx, v)
	f := &frame{at: time.Now(), err: err}
	if err != nil {
		return f, statements
	}
	f.data, f.asOf = data, f.at
	f.html, f.err = render(v.page, data, v)
	return f, statements
}

func (c *Console) data(ctx context.Context, v view) (data any, statements int, err error) {
	defer c.caught(ctx, "the reading", &err)
	switch v.page {
	case pageWaits:
		if c.tables == nil {
			return []shown.Waited(nil), 0, nil
		}
		data, err = c.tables.Waited(ctx, v.prefix, "", perPage)
		return data, 1, err
	case pageCycles:
		if c.tables == nil {
			return [][]shown.Edge(nil), 0, nil
		}
		edges, err := c.tables.Edges(ctx, "", mostEdges)
		return cycles(edges), 1, err
	case pageRecords:
		data, err = c.client.ForceReleases(ctx, lease.ForcedFilter{Prefix: v.prefix, Limit: mostRecords})
		if errors.Is(err, lease.ErrUnsupported) {
			err = nil // the store keeps no records
		}
		return data, 1, err
	case pageFindings:
		if data, err = c.findings(ctx); err != nil {
			err = fmt.Errorf("%w: %w", errCheck, err)
		}
		return data, 1, err
	case pageKey:
		return c.key(ctx, v.key)
	case pageProcess:
		return c.process(ctx, v.key)
	}
	data, err = c.held(ctx, v)
	return data, 1, err
}

func (c *Console) held(ctx context.Context, v view) (p heldPage, err error) {
	if c.tables != nil {
		p.Rows, p.Last, err = c.tables.Page(ctx, shown.Held{
			Prefix: v.prefix, Order: v.order, AfterKey: v.after, AfterTime: v.time, Limit: perPage,
		})
		return p, err
	}
	found, err := c.client.Inspect(ctx, lease.Filter{
		Prefix: v.prefix, After: v.after, Held: true, Limit: perPage + 1,
	})
	for _, r := range found[:min(len(found), perPage)] {
		if !strings.HasPrefix(r.Key, lease.Reserved) || strings.HasPrefix(v.prefix, lease.Reserved) {
			p.Rows = append(p.Rows, shown.Row{Record: r})
		}
	}
	if len(found) > perPage {
		p.Last = &shown.Row{Record: found[perPage-1]}
	}
	return p, err
}

// process reads what one identity holds and waits for.
func (c *Console) process(ctx context.Context, who string) (_ any, statements int, err error) {
	var p processPage
	if c.tables == nil {
		return p, 0, nil
	}
	p.Rows, p.Last, err = c.tables.Page(ctx, shown.Held{Holder: who, Order: shown.ByKey, Limit: perPage})
	if err != nil {
		return nil, 1, err
	}
	p.Told = true
	p.Waits, err = c.tables.Waited(ctx, "", who, perPage)
	return p, 2, err
}

func (c *Console) key(ctx context.Context, key string) (_ any, statements int, err error) {
	p := keyPage{Key: key, Write: c.o.Write}
	found, err := c.client.Inspect(ctx, lease.Filter{Keys: []string{key}, Limit: 1})
	if err != nil {
		return nil, 1, err
	}
	if len(found) > 0 {
		p.Record = found[0]
	}
	p.Forced, err = c.client.ForceReleases(ctx, lease.ForcedFilter{Key: key, Limit: mostRecords})
	// A user of locks needs no right to read the records.
	p.Unrecorded = errors.Is(err, lease.ErrPrivilege)
	if err != nil && !p.Unrecorded && !errors.Is(err, lease.ErrUnsupported) {
		return nil, 2, err
	}
	statements = 2
	if p.Timed = c.o.Timeline != nil; p.Timed {
		statements++
		if p.Timeline, err = c.timeline(ctx, key); err != nil {
			p.Untold = oneLine(err) // the rest of the page is worth having
		}
		p.Cut = len(p.Timeline) > mostEvents
		p.Timeline = p.Timeline[:min(len(p.Timeline), mostEvents)]
	}
	n, err := c.holders(ctx, &p)
	statements += n
	if err == nil && p.Record.Placement == 0 && !p.Record.Held && !p.Record.Owner.IsZero() {
		p.Expired, n = c.asker.ask(ctx, key)
		statements += n
	}
	return p, statements, err
}

// holders adds who has the key and who waits for it.
func (c *Console) holders(ctx context.Context, p *keyPage) (statements int, err error) {
	if c.tables == nil {
		return 0, nil
	}
	if p.Waiters, err = c.tables.Waiters(ctx, p.Key, mostWaiters); err != nil || !p.Record.Shared {
		return 1, err
	}
	p.Members, err = c.tables.Members(ctx, p.Key, mostMembers)
	return 2, err
}

// The methods below are for templates.

// MoreMembers reports whether there may be more holders than are shown.
func (p keyPage) MoreMembers() bool { return len(p.Members) == mostMembers }

// Exists reports whether the key has a row.
func (p keyPage) Exists() bool { return p.Record.Key != "" }

// Takes is the token of a lease that the viewer may take, or 0.
func (p keyPage) Takes() lease.Token {
	if p.Write && p.Record.Held {
		return p.Record.Token
	}
	return 0
}
