package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock"
)

const (
	ttl     = 1500 * time.Millisecond // short, so that you need not wait
	patient = 30 * time.Second        // for a lock that must not be lost, however slow this machine is

	opening, small, large = 100, 10, 50
)

// stopAndWake is the second chapter: a holder that is stopped between its read and its write, and
// wakes too late.
func stopAndWake(ctx context.Context, p *place, s *story) error {
	s.title("2. A process is stopped while it holds the lock, and wakes too late")
	if !canStop {
		s.line("   left out: this system cannot stop a process as SIGSTOP does")
		return nil
	}
	s.line("   A adds %d to a balance of %d, B adds %d. A is stopped between its read and its", small, opening, large)
	s.line("   write, for longer than its lease of %s: the lock then goes to B.", ttl)

	if err := p.withoutFence(ctx, s); err != nil {
		return err
	}
	return p.withFence(ctx, s)
}

func (p *place) withoutFence(ctx context.Context, s *story) error {
	s.line("\n   %s, A writes what it had worked out", s.paint(bold, "without Fence"))
	e, err := p.episode(ctx, s, false)
	if err != nil {
		return err
	}
	if e.balance != opening+small {
		return fmt.Errorf("without Fence the balance was to end at %d, to show the loss, but is %d", opening+small, e.balance)
	}
	s.loss(fmt.Sprintf("expected %d, got %d: B's %d are gone", opening+small+large, e.balance, large))
	s.check(e.told != "", "a loss is never silent", "Unlock told A, but only afterwards")
	return nil
}

func (p *place) withFence(ctx context.Context, s *story) error {
	s.line("\n   %s, the same: l.Fence(ctx, tx) comes first in the transaction", s.paint(bold, "with Fence"))
	e, err := p.episode(ctx, s, true)
	if err != nil {
		return err
	}
	s.check(e.refused, "an older token may not write", fmt.Sprintf("A's was %d, and %d had been granted", e.tokens[0], e.tokens[1]))
	s.check(growing(e.tokens), "tokens only grow", strings.Trim(fmt.Sprint(e.tokens), "[]"))
	s.check(e.passed >= ttl, "no lease is given away early", fmt.Sprintf("A's was %s, B got the lock %.2f s after A", ttl, e.passed.Seconds()))
	s.check(e.balance == opening+small+large, "no update is lost", fmt.Sprintf("expected %d, got %d", opening+small+large, e.balance))
	return nil
}

func growing(tokens []rowlock.Token) bool {
	for i := range tokens[1:] {
		if tokens[i] >= tokens[i+1] {
			return false
		}
	}
	return true
}
