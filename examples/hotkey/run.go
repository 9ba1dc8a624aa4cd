package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/examples/internal/command"
	"github.com/rowlockdb/rowlock/examples/internal/source"
	"github.com/rowlockdb/rowlock/schema"
)

// patience bounds what the show waits for. What takes longer has not worked.
const patience = time.Minute

// stage is everything that the show needs.
type stage struct {
	settings
	pace    pace
	db      *source.DB
	members *members
	sides   []*side
	load    *load
	sent    atomic.Int64 // statements, by both sides
	show    *show
	made    closers
}

// run is the show, from an empty stage to an empty stage.
func run(ctx context.Context, cfg settings, out io.Writer) (err error) {
	s := &stage{settings: cfg, pace: cfg.pace(), load: newLoad(cfg.cold)}
	s.show = newShow(out, s.load, &s.sent)
	defer func() {
		if left := s.made.close(); left != nil {
			err = errors.Join(err, fmt.Errorf("%w: %w", command.ErrLeft, left))
		}
	}()
	if err := s.build(ctx); err != nil {
		return err
	}
	return s.play(ctx)
}

func (s *stage) build(ctx context.Context) (err error) {
	names := dialect.Prefix("hotkey_" + strings.ToLower(rand.Text()[:6]) + "_")
	if s.db, err = source.Open(ctx, s.settings.db, names); err != nil {
		return err
	}
	s.made.add(s.db.Close)
	if s.members, err = startMembers(ctx); err != nil {
		return err
	}
	s.made.add(s.members.close)
	s.show.line("rowlock hot keys on %s, and etcd in processes %s", s.db.Product(ctx), s.members.pids())
	s.made.add(func() error { // also when ctx has ended
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
		defer cancel()
		return schema.Uninstall(ctx, s.db.DB.DB, s.db.Dialect)
	})
	if err := schema.Migrate(ctx, s.db.DB.DB, s.db.Dialect); err != nil {
		return err
	}
	for range 2 {
		side, err := open(ctx, s.db.Source, names, s.members, &s.sent, s.pace.bridge(s.show))
		if err != nil {
			return err
		}
		s.made.add(side.close)
		s.sides = append(s.sides, side)
	}
	return nil
}

// play is the show itself, act by act.
func (s *stage) play(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	for _, side := range s.sides {
		s.load.start(ctx, side)
	}
	drawn := s.show.start(ctx)
	defer func() { // before anything is closed
		cancel()
		<-drawn
		s.load.all.Wait()
	}()
	s.show.event("two clients lock %d keys all the time, and %d others now and then", len(hotKeys), s.cold)
	before := s.mark()
	if err := s.until(ctx, "a hot key to leave the database", func() bool { return s.show.awayCount() > 0 }); err != nil {
		return err
	}
	table := s.mark().since(before)
	if err := s.until(ctx, "the hot keys to leave the database", func() bool { return s.show.awayCount() == len(hotKeys) }); err != nil {
		return err
	}
	before = s.mark()
	s.pass(ctx, s.pace.between)
	cluster := s.mark().since(before)
	killed, err := s.killOne(ctx)
	if err != nil {
		return err
	}
	s.show.event("the load ends")
	s.load.end()
	if err := s.until(ctx, "the hot keys to come home", func() bool { return s.show.awayCount() == 0 }); err != nil {
		return err
	}
	if err := s.areHome(ctx); err != nil {
		return err
	}
	cancel()
	<-drawn
	s.tell(table, cluster, killed)
	return s.balance()
}

// killOne kills the member that leads, so that the others must elect another, and lets the load go
// on without it.
func (s *stage) killOne(ctx context.Context) (after rates, err error) {
	r, err := s.members.leader(ctx, s.sides[0].etcd)
	if err != nil {
		return after, err
	}
	s.load.forget()
	before := s.mark()
	s.show.event("%s, which leads, is killed with -9 (process %d)", r.name, r.cmd.Process.Pid)
	r.kill()
	for _, key := range hotKeys {
		a := &s.load.accounts[key].value
		had := a.Load()
		if err := s.until(ctx, key+" to go on with two members", func() bool { return a.Load() > had+10 }); err != nil {
			return after, err
		}
	}
	s.pass(ctx, s.pace.between)
	return s.mark().since(before), ctx.Err()
}

// until waits for something that the bridges do by themselves.
func (s *stage) until(ctx context.Context, what string, done func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("waited %s for %s", patience, what))
	defer cancel()
	for !done() {
		s.pass(ctx, 20*time.Millisecond)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

func (s *stage) pass(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// areHome locks every hot key by the table alone, without a bridge: it would refuse a key that is
// elsewhere.
func (s *stage) areHome(ctx context.Context) (err error) {
	alone, err := rowlock.Open(s.db, s.db.Dialect, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, alone.Close()) }()
	for _, key := range hotKeys {
		lock, err := alone.Lock(ctx, key)
		if err != nil {
			return fmt.Errorf("%s is not home: %w", key, err)
		}
		//rowlockvet:ignore it looks for a broken promise, and protects nothing
		if last := s.load.accounts[key].token.Load(); int64(lock.Token()) <= last {
			return fmt.Errorf("PROMISE BROKEN: tokens did not grow: %s: %d at home after %d", key, lock.Token(), last)
		}
		if err := lock.Unlock(ctx); err != nil {
			return err
		}
	}
	return nil
}

// balance is the end: what the counters have must be what was counted.
func (s *stage) balance() error {
	t, err := s.load.check()
	if err != nil {
		return err
	}
	s.show.line("\n✓ nothing was lost: the counters add up to %d, and the workers have counted %d; every token was higher than the last",
		t.counters, t.counted)
	return nil
}
