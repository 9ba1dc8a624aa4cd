package election

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
)

// Term is a leadership as others see it. The zero Term says that no candidate leads.
type Term struct {
	// Number is the term: the fencing token of the leader's lock. Later terms have larger numbers.
	Number lease.Token
	// Identity is that of the leader's client, and Note the one given with [With]. Both are as they
	// were found: quote them in a log, as lease.Describe does.
	Identity, Note string
	// Age is how long the leader has led, and Remaining when its lease runs out unless renewed,
	// both by the database's clock when it was read.
	Age, Remaining time.Duration
}

// IsVacant reports whether no candidate leads.
func (t Term) IsVacant() bool { return t.Number == 0 }

// Leader reads who leads the election of that name, in one statement that locks nothing. The answer
// may be over when it arrives: it is for operators and for routing requests, and protects nothing.
// A leader that drains still leads. A candidate that was granted the leadership and has not begun,
// leads already.
func Leader(ctx context.Context, locks *rowlock.Client, name string) (Term, error) {
	if err := check("Leader", ctx, locks, name); err != nil {
		return Term{}, err
	}
	return look(ctx, locks, Key(name))
}

// Observe returns an iterator over who leads the election of that name: the present state first,
// and then each that differs from the one before, in the order in which they were. It is
// level-triggered: states that came and went between two reads, or while the loop's body ran, are
// skipped. It ends with ctx.
//
// The state is read four times a second, in one statement for all that the process observes through
// locks. An error says that the database could not be read, once until it can be read again; the
// last term may be over. The loop may go on: the next pair is the state that is read then, even if
// it is the same as before. After ErrConfig and ErrClosed the iterator ends.
func Observe(ctx context.Context, locks *rowlock.Client, name string) iter.Seq2[Term, error] {
	return func(yield func(Term, error) bool) {
		if err := check("Observe", ctx, locks, name); err != nil {
			yield(Term{}, err)
			return
		}
		follow(ctx, locks, Key(name))(yield)
	}
}

// look reads who holds a key.
func look(ctx context.Context, locks *rowlock.Client, key string) (Term, error) {
	records, err := locks.Inspect(ctx, lease.Filter{Keys: []string{key}, Limit: 1})
	if err != nil || len(records) == 0 {
		return Term{}, err
	}
	s := stateOf(records[0])
	return s.Term, s.err
}

func stateOf(r lease.Record) *state {
	if !r.Held || r.Err != nil {
		return &state{err: r.Err}
	}
	if r.Token == 0 {
		return &state{err: fmt.Errorf("%w: %q: the store's rows have no token, by which a term is known: keep "+
			"elections in rowlock's own tables", lease.ErrUnsupported, r.Key)}
	}
	t := Term{Number: r.Token, Age: r.Age, Remaining: r.Remaining}
	t.Identity, t.Note = lease.SplitNote(r.Note)
	return &state{Term: t}
}

// follow is Observe of a key.
func follow(ctx context.Context, locks *rowlock.Client, key string) iter.Seq2[Term, error] {
	return func(yield func(Term, error) bool) {
		w := observe(locks, key)
		defer w.leave()
		var last *state
		for {
			select {
			case <-w.news:
			case <-ctx.Done():
			}
			if ctx.Err() != nil {
				return
			}
			now := w.last.Load()
			if last != nil && now.is(last) {
				continue
			}
			last = now
			if !yield(now.Term, now.err) || errors.Is(now.err, lease.ErrClosed) {
				return
			}
		}
	}
}

// state is what a read has found.
type state struct {
	Term
	err error
}

// is reports whether an observer need not be told of the difference.
func (s *state) is(other *state) bool {
	return s.Number == other.Number && (s.err == nil) == (other.err == nil)
}
