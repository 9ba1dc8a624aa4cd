package lease

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// MaxSlots is the largest number of slots of a [Limit]: as many keys as one statement grants.
const MaxSlots = 512

// Limit is a number of slots under a name, all processes' together. Slot i of the limit is the key
// that Slot returns, so that a slot is renewed, fenced and released as any other key.
type Limit struct {
	// Name has 1 byte to 4 bytes less than [MaxKey].
	Name string
	// Slots is 1 to [MaxSlots].
	Slots int
}

// Slot is the key of slot i, from 0 on: the name, "/" and three digits.
func (l Limit) Slot(i int) string { return fmt.Sprintf("%s/%03d", l.Name, i) }

// Index is the number of the slot with that key. ok is false for a key that is no slot's of this
// name. The slot may be at or above Slots.
func (l Limit) Index(key string) (i int, ok bool) {
	digits, ours := strings.CutPrefix(key, l.Name+"/")
	i, err := strconv.Atoi(digits)
	if !ours || err != nil || i < 0 || i >= MaxSlots || l.Slot(i) != key {
		return 0, false
	}
	return i, true
}

// Check returns an error that wraps [ErrConfig] or [ErrInvalidKey] for a limit that every store
// refuses.
func (l Limit) Check() error {
	switch {
	case l.Slots < 1 || l.Slots > MaxSlots:
		return fmt.Errorf("%w: limit %.40q: %d slots; 1 to %d are allowed", ErrConfig, l.Name, l.Slots,
			MaxSlots)
	case l.Name == "":
		return fmt.Errorf("%w: the name of a limit is empty", ErrInvalidKey)
	}
	if err := CheckKey(l.Slot(0)); err != nil {
		return fmt.Errorf("limit %.40q, whose keys have %d bytes: %w", l.Name, len(l.Slot(0)), err)
	}
	return nil
}

// CheckSlots returns an error that wraps [ErrConfig] for a request for n of these slots that every
// store refuses.
func (l Limit) CheckSlots(reqs []AcquireRequest, n int) error {
	if err := l.Check(); err != nil {
		return err
	}
	for i := range reqs {
		if _, ours := l.Index(reqs[i].Key); !ours {
			return fmt.Errorf("%w: limit %q has no slot %q", ErrConfig, l.Name, reqs[i].Key)
		}
	}
	if n > l.Slots {
		return fmt.Errorf("%w: %d slots of limit %q, which has %d; ask for at most as many", ErrConfig, n,
			l.Name, l.Slots)
	}
	return nil
}

// ErrLimit is what a [*LimitError] is: a process uses another limit than is in force.
var ErrLimit = errors.New("rowlock: another limit is in force")

// LimitError names both numbers. Nothing was granted.
type LimitError struct {
	Name string
	// Slots is the number that the caller named, and Found the one in force; 0: there is no limit of
	// this name.
	Slots, Found int
}

func (e *LimitError) Error() string {
	if e.Found == 0 {
		return fmt.Sprintf("rowlock: limit %q was never made: make it with %d slots first", e.Name, e.Slots)
	}
	return fmt.Sprintf("rowlock: limit %q is %d, and this process uses %d: use one number in all processes, "+
		"or Resize", e.Name, e.Found, e.Slots)
}

// Unwrap returns ErrLimit.
func (e *LimitError) Unwrap() error { return ErrLimit }

// Limiter is a Store that grants slots within limits.
type Limiter interface {
	AnyAcquirer
	// MakeLimit makes a limit unless there is one of that name, and returns the one in force.
	MakeLimit(ctx context.Context, l Limit) (Limit, error)
	// Resize changes the number of slots. It takes no slot away: while more are held than there are,
	// none is granted. The error is a [*LimitError] if there is no limit of that name.
	Resize(ctx context.Context, l Limit) error
	// AcquireWithin is AcquireAny of slots, and grants n only if, with all that are held then, there
	// are at most as many as the limit in force allows. Held is a slot of any number whose lease has
	// not expired, and one whose holder's transaction fences it.
	//
	// A slot that is free and not granted because of the limit is answered as one that is held, with
	// an empty Holder. The error is a [*LimitError] if another number of slots is in force; then
	// nothing was granted.
	AcquireWithin(ctx context.Context, l Limit, reqs []AcquireRequest, n int) ([]Acquired, error)
}

// SlotPasser is a Limiter that can hand a slot over, instead of a release and an acquire.
type SlotPasser interface {
	Limiter
	// PassSlots is [Passer]'s HandOver of slots of the limit of that name. It grants a To only if the
	// limit is also still in the generation in which From was granted. Each Resize begins another one.
	// Then as many slots are held as before, and no more than the limit. To has the same generation.
	PassSlots(ctx context.Context, name string, items []SlotHandOver) ([]Acquired, error)
}

// SlotHandOver passes a slot to its next owner.
type SlotHandOver struct {
	HandOver
	// Generation is the limit's when From was granted; see [Acquired].
	Generation int64
}

// Check returns an error that wraps [ErrConfig], or that of HandOver, for what every store refuses.
func (h SlotHandOver) Check() error {
	if h.Generation < 1 {
		return fmt.Errorf("%w: hand over slot %q: generation %d; name that of its grant", ErrConfig,
			h.From.Key, h.Generation)
	}
	return h.HandOver.Check()
}

// Bound returns how many slots, from slot 0 on, may be granted within a limit, if held says which
// slots from 0 on are held. It is the largest t for which t slots and the held ones from t on are
// together at most the limit.
//
// A held slot below the bound is no reason against another one below it. So a count that is old is
// safe: slots from the bound on are granted only under a larger bound, which counted those above
// it. Within one limit at most as many as it allows are held then, in whatever order the grants
// come.
func (l Limit) Bound(held []bool) int {
	above := 0 // held slots from t on
	for _, h := range held {
		if h {
			above++
		}
	}
	t := 0
	for t < l.Slots {
		if t < len(held) && held[t] {
			above--
		}
		if t+1+above > l.Slots {
			break
		}
		t++
	}
	return t
}

// ErrQuota is what a [*QuotaError] is: a namespace is at its limit.
var ErrQuota = errors.New("rowlock: quota")

// QuotaError says which limit of a namespace a call would have exceeded. Nothing was sent.
type QuotaError struct {
	Namespace string
	// What is limited: "held", the locks that are held or being taken, or "waiting", the calls of
	// Lock that have not returned.
	What  string
	Limit int
	// Asked is for how many more the call has asked.
	Asked int
}

func (e *QuotaError) Error() string {
	more := "another"
	if e.Asked > 1 {
		more = fmt.Sprintf("%d more", e.Asked)
	}
	if e.What == "waiting" {
		return fmt.Sprintf("%v: namespace %q has %d calls waiting for locks, and may not have %s: try "+
			"again later, or raise Quota.Waiting", ErrQuota, e.Namespace, e.Limit, more)
	}
	return fmt.Sprintf("%v: namespace %q may hold %d locks, and has no room for %s: unlock some, or "+
		"raise Quota.Held", ErrQuota, e.Namespace, e.Limit, more)
}

// Unwrap returns ErrQuota.
func (e *QuotaError) Unwrap() error { return ErrQuota }
