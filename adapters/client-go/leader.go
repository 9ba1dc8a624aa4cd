package leaderrowlock

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
)

// Lock is a resourcelock.Interface. The record is made of the key's row: its holder is the lock's
// note, and its number of transitions is the token.
type Lock struct {
	locks   *rowlock.Client
	key, id string

	mu   sync.Mutex
	held *rowlock.Lock
	half time.Duration // of what the grant gave: a healthy lock has more left
	lost error         // of the term that the elector has not ended yet
	over bool          // it has ended that term, and may have released nothing
}

var resource = schema.GroupResource{Group: "rowlock", Resource: "locks"}

// New returns a Lock on a key for a candidate whose identity no other candidate has.
func New(locks *rowlock.Client, key, identity string) (*Lock, error) {
	if locks == nil || identity == "" || len(identity) > lease.MaxNote {
		return nil, fmt.Errorf("%w: client-go: %q needs a client, and an identity of 1 to %d bytes",
			rowlock.ErrConfig, key, lease.MaxNote)
	}
	if err := lease.CheckKey(key); err != nil {
		return nil, err
	}
	return &Lock{locks: locks, key: key, id: identity}, nil
}

// Get reads who leads. A key that is free is no record: the error is NotFound.
func (l *Lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	rows, err := l.locks.Inspect(ctx, lease.Filter{Keys: []string{l.key}, Held: true})
	if err != nil || len(rows) == 0 {
		return nil, nil, cmp.Or[error](err, apierrors.NewNotFound(resource, l.key))
	}
	_, holder := lease.SplitNote(rows[0].Note)
	now := metav1.Now()
	record := resourcelock.LeaderElectionRecord{
		HolderIdentity: holder, LeaderTransitions: int(rows[0].Token),
		LeaseDurationSeconds: int((rows[0].Remaining + time.Second - 1) / time.Second),
		AcquireTime:          metav1.NewTime(now.Add(-rows[0].Age)), RenewTime: now,
	}
	raw, err := json.Marshal(record)
	return &record, raw, err
}

// Create takes the lock, if it is free.
func (l *Lock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, r)
}

// Update says that the elector lives. It takes the lock if this candidate does not hold it, and
// releases it for a record without a holder. It is refused while a renewal is late, so that the
// elector stops sooner, and after a loss, until it has stopped: the old term must end first.
func (l *Lock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	lasts := time.Duration(r.LeaseDurationSeconds) * time.Second
	switch {
	case r.HolderIdentity == "":
		return l.release(ctx)
	case r.HolderIdentity != l.id:
		return fmt.Errorf("%w: client-go: the record of %q names %q, and not %q", rowlock.ErrConfig, l.key, r.HolderIdentity, l.id)
	case lasts < time.Second:
		return fmt.Errorf("%w: client-go: LeaseDuration of %q must be 1 s at least", rowlock.ErrConfig, l.key)
	case l.over:
		_ = l.release(ctx) // of a term that may be lost by now: this is a new one
	}
	if l.held == nil {
		return l.take(ctx, lasts)
	}
	if l.lost = cmp.Or(l.lost, l.held.Progress()); l.lost == nil && time.Until(l.held.Deadline()) < l.half {
		return fmt.Errorf("rowlock: client-go: the renewal of %q is late", l.key)
	}
	return l.conflict(l.lost)
}

func (l *Lock) take(ctx context.Context, d time.Duration) (err error) {
	l.held, err = l.locks.TryLock(ctx, l.key, rowlock.Note(l.id), rowlock.TTL(d), rowlock.MaxIdle(d))
	switch {
	case err == nil:
		l.half = time.Until(l.held.Deadline()) / 2
	case errors.Is(err, rowlock.ErrHeld):
		err = l.conflict(err)
	}
	return err
}

func (l *Lock) conflict(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", apierrors.NewConflict(resource, l.key, errors.New("not held")), err)
}

func (l *Lock) release(ctx context.Context) error {
	held := l.held
	l.held, l.lost, l.over = nil, nil, false
	if held == nil {
		return nil
	}
	return held.Unlock(ctx)
}

// RecordEvent is called by the elector, at the end of a term too. Without ReleaseOnCancel the key
// is then free within twice LeaseDuration: MaxIdle, and the last lease that was renewed within it.
func (l *Lock) RecordEvent(event string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = event == "stopped leading"
}

// Identity is this candidate's.
func (l *Lock) Identity() string { return l.id }

// Describe is the key.
func (l *Lock) Describe() string { return "rowlock/" + l.key }

// Leading returns what to give to OnStartedLeading: f gets a ctx that ends with the lock, or with
// the term, whichever comes first, and that carries the lock.
func (l *Lock) Leading(f func(ctx context.Context)) func(ctx context.Context) {
	return func(ctx context.Context) {
		l.mu.Lock()
		held := l.held
		l.mu.Unlock()
		if held != nil { // nil: the term is over
			ctx, cancel := held.Within(ctx)
			defer cancel()
			f(ctx)
		}
	}
}
