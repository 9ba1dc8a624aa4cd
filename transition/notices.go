package transition

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/notice"
	"github.com/rowlockdb/rowlock/lease"
)

// notices are what is recorded of a transition.
type notices struct {
	store lease.Store
	name  string
}

// Report is what the database knows of a transition.
type Report struct {
	// SinceBoth is how long ago the first process began with Both: 0 if none has.
	SinceBoth time.Duration
	// Seen says that a process was seen to hold the old lock alone, and SinceSeen how long ago.
	Seen      bool
	SinceSeen time.Duration
	// SinceNew is how long ago the first process began with New: 0 if none has.
	SinceNew time.Duration
}

// Remaining returns what the database knows of a transition: "" is the Name by default.
func Remaining(ctx context.Context, store lease.Store, name string) (Report, error) {
	return notices{store, cmp.Or(name, "locks")}.read(ctx)
}

// Forget removes the record of a transition that is over.
func Forget(ctx context.Context, store lease.Store, name string) error {
	list, err := notices{store, cmp.Or(name, "locks")}.list(ctx, notice.Both, notice.Seen, notice.New)
	for _, r := range list {
		err = cmp.Or(err, adapter.Of(store).Release(ctx, []lease.Lease{r.Lease})[0].Err)
	}
	return err
}

// String says whether an old process is left, as far as can be told.
func (r Report) String() string {
	switch {
	case r.SinceBoth == 0:
		return "no process has begun with Both: old ones are left, if any"
	case r.Seen:
		return fmt.Sprintf("an old process was last seen %s ago, and Both has been there for %s",
			r.SinceSeen.Round(time.Second), r.SinceBoth.Round(time.Second))
	}
	return fmt.Sprintf("no old process was seen since Both has been there, for %s", r.SinceBoth.Round(time.Second))
}

// refusesNew says why New must not begin yet, or "".
func (r Report) refusesNew(quiet time.Duration) string {
	switch {
	case r.SinceBoth == 0, r.Seen && r.SinceSeen < quiet:
		return r.String()
	case r.SinceBoth < quiet:
		return fmt.Sprintf("Both has been there for %s, and Config.Quiet is %s", r.SinceBoth.Round(time.Second), quiet)
	}
	return ""
}

func (n notices) list(ctx context.Context, what ...string) ([]lease.Record, error) {
	switch {
	case ctx == nil:
		return nil, isnil.Context("transition", ctx)
	case isnil.Value(n.store):
		return nil, fmt.Errorf("%w: transition: the store is nil; give it one of rowlock.OpenTable", lease.ErrConfig)
	}
	for i := range what {
		what[i] = notice.Key(n.name, what[i])
	}
	return n.store.Inspect(ctx, lease.Filter{Keys: what, Held: true})
}

func (n notices) read(ctx context.Context) (r Report, err error) {
	list, err := n.list(ctx, notice.Both, notice.Seen, notice.New)
	for _, rec := range list {
		age := notice.Age(rec.Remaining)
		switch _, what := notice.Parse(rec.Key); what {
		case notice.Both:
			r.SinceBoth = age
		case notice.Seen:
			r.Seen, r.SinceSeen = true, age
		case notice.New:
			r.SinceNew = age
		}
	}
	return r, err
}

// record makes a notice. That of seen is renewed; another stays as it was first made.
func (n notices) record(ctx context.Context, what string) error {
	list, err := n.list(ctx, what)
	if err != nil || len(list) == 1 && what != notice.Seen {
		return err
	}
	store := adapter.Of(n.store)
	if len(list) == 1 {
		return store.Renew(ctx, []lease.RenewRequest{{Lease: list[0].Lease, TTL: notice.TTL}})[0].Err
	}
	return store.Acquire(ctx, []lease.AcquireRequest{{ // if another was first, its notice is there
		Key: notice.Key(n.name, what), Owner: lease.NewOwner(), TTL: notice.TTL, Note: lease.StoredNote("", "a transition's notice"),
	}})[0].Err
}
