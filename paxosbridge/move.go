package paxosbridge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// MoveOut moves a key to the cluster, and returns when it can be locked there. Whoever holds it is waited for, at most MoveTimeout. An
// error says whether the key stayed; if not, whoever asks for it next finishes the move.
func (b *Bridge) MoveOut(ctx context.Context, key, why string) error {
	if err := lease.CheckKey(key); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, b.cfg.MoveTimeout)
	defer cancel()
	epoch, err := b.depart(ctx, key, why)
	if err != nil {
		return b.stayed(key, "the table", err)
	}
	ctx, cancel = b.beyond(ctx)
	defer cancel()
	if err := b.cluster.Open(ctx, key, epoch); err != nil {
		b.ears.tell(key) // whoever waits finishes it
		return fmt.Errorf("paxosbridge: %q has left the table and is not open in the cluster yet; whoever asks for it opens it: %w", key, err)
	}
	b.moved(ctx, key, b.cfg.Home, epoch, why)
	return nil
}

// depart gets the lock as everybody does, sees that the cluster answers, and gives the key away: the point of no return. A key
// given to a cluster that does not answer could be had by nobody. It looks before it gets the lock, too: a mover that waits for a
// cluster which is down, again and again, would keep a hot key from everybody else.
func (b *Bridge) depart(ctx context.Context, key, why string) (epoch int64, err error) {
	if b.routes.epoch(key) != 0 {
		return 0, fmt.Errorf("%w: it is in the cluster", lease.ErrMoved)
	}
	if err := b.answers(ctx); err != nil {
		return 0, err
	}
	l, err := b.take(ctx, b.table, key, 0)
	if errors.Is(err, lease.ErrMoved) { // another process was first
		_, failed := b.reroute(ctx, key)
		return 0, errors.Join(err, failed)
	}
	if err != nil {
		return 0, err
	}
	if err := b.answers(ctx); err != nil {
		b.giveBack(b.table, l)
		return 0, err
	}
	sent := time.Now()
	epoch, ok, err := b.table.Depart(ctx, l, b.cfg.Home)
	if err == nil && ok {
		b.routes.set(key, epoch, sent, why)
		return epoch, nil
	}
	b.giveBack(b.table, l) // harmless if it has departed: the row names nobody
	if err == nil {
		err = fmt.Errorf("%w: the mover's lease ran out", lease.ErrLost)
	}
	return 0, unlessMade(err)
}

func (b *Bridge) answers(ctx context.Context) error {
	if err := b.cluster.Probe(ctx); err != nil {
		return fmt.Errorf("the cluster does not answer: %w", err)
	}
	return nil
}

// MoveBack moves a key back to the table, and returns when it can be locked there. Whoever holds it is waited for, at most MoveTimeout.
func (b *Bridge) MoveBack(ctx context.Context, key, why string) error {
	ctx, cancel := context.WithTimeout(ctx, b.cfg.MoveTimeout)
	defer cancel()
	epoch := b.routes.epoch(key)
	if epoch == 0 {
		return fmt.Errorf("paxosbridge: %q is not in the cluster, as far as this process knows", key)
	}
	if err := b.seal(ctx, key, epoch); err != nil {
		return b.stayed(key, "the cluster", err)
	}
	ctx, cancel = b.beyond(ctx)
	defer cancel()
	return b.finishReturn(ctx, key, epoch, why)
}

// beyond is for what comes after the point of no return: until it is done nobody has the key, so that it is not given up with ctx.
func (b *Bridge) beyond(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), b.cfg.MoveTimeout)
}

// seal gets the lock as everybody does, and closes the epoch with it: the point of no return.
func (b *Bridge) seal(ctx context.Context, key string, epoch int64) error {
	l, err := b.take(ctx, b.cluster, key, epoch)
	var record *RecordError
	if errors.As(err, &record) && record.Epoch == epoch && record.Sealed {
		return nil // somebody was before us; the rest is still to be done
	}
	if err != nil {
		return err
	}
	ok, err := b.cluster.Seal(ctx, l)
	if err == nil && ok {
		return nil
	}
	b.giveBack(b.cluster, l)
	if err == nil {
		err = fmt.Errorf("%w: the mover's lease ran out", lease.ErrLost)
	}
	return unlessMade(err)
}

// finishReturn is for whoever has seen that the epoch is sealed.
func (b *Bridge) finishReturn(ctx context.Context, key string, epoch int64, why string) error {
	ok, err := b.table.Return(ctx, key, b.cfg.Home, epoch)
	if err != nil {
		b.ears.tell(key)
		return fmt.Errorf("paxosbridge: %q is sealed in the cluster and not back in the table yet; whoever asks for it brings it back: %w", key, err)
	}
	b.routes.drop(key, epoch, time.Now())
	if ok {
		b.moved(ctx, key, lease.HomeTable, epoch+1, why)
	}
	return nil
}

// settle finds out where a key is that was refused, and finishes a move that is half done.
func (b *Bridge) settle(ctx context.Context, key string, refused error) (lease.Record, error) {
	var record *RecordError
	switch {
	case !errors.As(refused, &record):
	case record.Epoch == record.Asked && record.Sealed:
		if err := b.finishReturn(ctx, key, record.Epoch, "found sealed"); err != nil {
			return lease.Record{}, err
		}
	case record.Epoch < record.Asked:
		opened, err := b.open(ctx, key, record.Asked)
		if err != nil {
			return lease.Record{}, err
		}
		if opened {
			b.moved(ctx, key, b.cfg.Home, record.Asked, "found half moved")
			return lease.Record{Home: b.cfg.Home}, nil
		}
	default:
		if err := b.reconcile(ctx, record.Record); err != nil {
			return lease.Record{}, err
		}
	}
	return b.reroute(ctx, key)
}

// open opens a key's record on the strength of a read: the row said that the key has left in this epoch. That commit may be on one
// server alone, and be forgotten by a failover. The table would then grant the key while the cluster does, so that the move is
// confirmed first. opened false says that the key is not away in this epoch.
func (b *Bridge) open(ctx context.Context, key string, epoch int64) (opened bool, err error) {
	ok, err := b.table.Confirm(ctx, key, b.cfg.Home, epoch)
	switch {
	case err != nil:
		return false, fmt.Errorf("paxosbridge: %q was read to have left the table, and that is not confirmed; its record stays closed: %w", key, err)
	case !ok:
		b.routes.drop(key, epoch, time.Now())
		return false, nil
	}
	return true, b.cluster.Open(ctx, key, epoch)
}

// moved tells whoever wants to know.
func (b *Bridge) moved(ctx context.Context, key string, home int, epoch int64, why string) {
	b.cfg.Logger.InfoContext(ctx, "paxosbridge: moved", "key", key, "home", home, "epoch", epoch, "why", why)
	if h := b.cfg.Hooks.Moved; h != nil {
		h(key, home, epoch, why)
	}
	b.ears.tell(key)
	for _, n := range []lease.Notifier{b.table, b.cluster} {
		_ = n.Announce(ctx, []string{key}) // a hint: who does not hear it polls
	}
}

// unsure is an error of the step that cannot be taken back: it may have been made.
type unsure struct{ error }

func (u unsure) Unwrap() error { return u.error }

// stayed says what is known of a key that was not seen to leave.
func (b *Bridge) stayed(key, where string, err error) error {
	if errors.As(err, new(unsure)) {
		b.ears.tell(key) // whoever waits finds out
		return fmt.Errorf("paxosbridge: it is not known whether %q has left %s; whoever asks for it finds out, and finishes the move: %w", key, where, err)
	}
	if h := b.cfg.Hooks.Stayed; h != nil {
		h(key, err)
	}
	if errors.Is(err, lease.ErrMoved) {
		return fmt.Errorf("paxosbridge: %q is not in %s: %w", key, where, err)
	}
	return fmt.Errorf("paxosbridge: %q stays in %s: %w", key, where, err)
}

// unlessMade is the error of a step that cannot be taken back.
func unlessMade(err error) error {
	if errors.Is(err, lease.ErrUnknown) {
		return unsure{err}
	}
	return err
}

// deciding moves keys by their heat, one after another, until the bridge is closed: what it has not begun then it leaves.
func (b *Bridge) deciding() {
	b.every(b.cfg.Every, func(ctx context.Context) {
		b.observe(ctx)
		now := time.Now()
		out, back := b.decider.decide(now, b.routes.sights(), b.routes.lastStays(now, b.cfg.MinStay))
		for _, key := range out {
			if ctx.Err() != nil {
				return
			}
			b.report(ctx, key, b.MoveOut(ctx, key, fmt.Sprintf("hot: %.0f a second", b.heat.rate(now, key))))
		}
		for _, key := range back {
			if ctx.Err() != nil {
				return
			}
			b.report(ctx, key, b.MoveBack(ctx, key, fmt.Sprintf("cool: %.0f a second", b.heat.rate(now, key))))
		}
	})
}

func (b *Bridge) report(ctx context.Context, key string, err error) {
	if err != nil && ctx.Err() == nil {
		b.cfg.Logger.WarnContext(ctx, "paxosbridge: a move was not finished", "key", key, "error", err)
	}
}
