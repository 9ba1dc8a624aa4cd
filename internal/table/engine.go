package table

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/era"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// engine runs operations on pinned connections until their outcome is known, or cannot be known.
type engine struct {
	d           *sqlstore.Dialect
	strategy    adapter.Strategy
	connections *conn.Set[call]
	limit       time.Duration // of a call that has no other
	eras        *era.Eras
	process     processes
	channel     string // what the processes of these tables listen on
	unpiped     atomic.Int32
	expected    expected
}

// explain turns a database's error into one of ours, with the verb and the key.
func (e *engine) explain(verb, key string, err error) error {
	what := sqlstore.What(verb, key)
	switch {
	case errors.Is(err, conn.ErrClosed), errors.Is(err, lease.ErrClosed):
		return fmt.Errorf("%w: %s", lease.ErrClosed, what)
	case errors.Is(err, conn.ErrWithdrawn):
		return fmt.Errorf("rowlock: %s: %w", what, err)
	case errors.Is(err, conn.ErrOrphaned):
		return fmt.Errorf("%w: %s: %w", lease.ErrUnknown, what, err)
	}
	if errors.Is(err, lease.ErrNotSynchronous) { // a sentence of ours, with its cure
		return adapter.Outage(fmt.Errorf("%w: %s", err, what))
	}
	v := sqlstore.Judge(e.d, err)
	switch {
	case errors.Is(v.As, lease.ErrPrivilege):
		return fmt.Errorf("%w: %s: %w%s", v.As, what, err, e.grants(err))
	case errors.Is(v.As, lease.ErrReadOnly) && v.Class == sqlstore.Unfit:
		return adapter.Outage(fmt.Errorf("%w: %s: %w", v.As, what, err))
	case v.As == nil && v.Class == sqlstore.Unfit:
		return adapter.Outage(v.Explain(what, err))
	case v.As == nil && v.Class == sqlstore.Unknown:
		return fmt.Errorf("%w: %s: %w", lease.ErrUnknown, what, err)
	}
	return v.Explain(what, err)
}

// grants is what an administrator must run for a call that was refused: Open asks for no right on
// these tables, because exclusive locks need none.
func (e *engine) grants(err error) (text string) {
	for _, table := range [...]string{
		"rowlock_member", "rowlock_limit", "rowlock_forced", "rowlock_trace",
	} {
		if strings.Contains(err.Error(), e.d.Names().Prefix+table) {
			text += "; " + e.d.Grant(table)
		}
	}
	return text
}

// processes remembers for which process the store works, so that a release does not report that
// process's own waiters. A store that serves several processes cannot tell which one releases, and
// leaves out none.
type processes struct {
	seen atomic.Pointer[lease.Owner]
	told atomic.Bool // by Meet
}

func (p *processes) meet(process lease.Owner) {
	if p.seen.Load() == nil && p.seen.CompareAndSwap(nil, &process) {
		return
	}
	if *p.seen.Load() != process {
		p.seen.Store(&lease.Owner{})
	}
}

// alone returns the only process that was met, or the zero owner.
func (p *processes) alone() lease.Owner {
	if seen := p.seen.Load(); seen != nil {
		return *seen
	}
	return lease.Owner{}
}
