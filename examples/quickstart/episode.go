package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock"
)

// episode is one run of A, which is stopped, and B, which comes in between.
type episode struct {
	place  *place
	line   *timeline
	a, b   *process
	fenced bool

	began   time.Time
	tokens  []rowlock.Token // in the order they were granted
	passed  time.Duration   // from before A got the lock until B had it
	refused bool            // A's late write was
	told    string          // what A's Unlock said if it was not
	balance int64           // in the end
}

func (p *place) episode(ctx context.Context, s *story, fenced bool) (e *episode, err error) {
	if err := p.write(ctx, "balance", opening); err != nil {
		return nil, err
	}
	a := job{Source: p.Source, Prefix: p.prefix, Deposit: small, Fenced: fenced, TTL: ttl}
	b := job{Source: p.Source, Prefix: p.prefix, Deposit: large, Fenced: fenced, TTL: patient}
	both, err := startReady(ctx, a, b)
	defer func() { err = endAll(both, err) }()
	if err != nil {
		return nil, err
	}
	e = &episode{place: p, line: s.timeline("A", "B"), a: both[0], b: both[1], fenced: fenced, began: time.Now()}
	for _, step := range []func(context.Context) error{e.stopA, e.letBWrite, e.wakeA} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return e, nil
}

const processA, processB = 0, 1

func (e *episode) stopA(ctx context.Context) error {
	err := e.a.tell("begin")
	if err == nil {
		_, err = e.a.expect(ctx, "locks")
	}
	if err != nil {
		return err
	}
	m, err := e.gotLock(ctx, processA)
	if err == nil && !m.Held {
		err = errors.New("this machine is too slow just now: A's lease ran out before A could be stopped")
	}
	if err == nil {
		err = e.a.stop()
	}
	e.line.add(processA, red, "■", "┊", "is stopped here (SIGSTOP)")
	return err
}

// letBWrite waits for nothing but B: it has asked for the lock and gets it when A's lease has run
// out.
func (e *episode) letBWrite(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patient, errors.New("promise broken: a dead holder's lock is free when its lease has expired: B still waits"))
	defer cancel()
	err := e.b.tell("begin")
	if err == nil {
		_, err = e.b.expect(ctx, "locks")
	}
	if err != nil {
		return err
	}
	e.line.add(processB, faint, "…", "…", "asks for the lock, waits")
	if _, err := e.gotLock(ctx, processB); err != nil {
		return err
	}
	e.passed = time.Since(e.began)
	return e.finish(ctx, processB)
}

// wakeA gives A the word to write before it wakes: A finds it there, as if it had never been away.
func (e *episode) wakeA(ctx context.Context) error {
	if err := errors.Join(e.a.tell("write"), e.a.wake()); err != nil {
		return err
	}
	e.line.add(processA, red, "▶", "┃", "wakes (SIGCONT)")
	m, err := e.a.expect(ctx, "wrote", "refused")
	if err != nil {
		return err
	}
	e.refused = m.Event == "refused"
	if !e.refused {
		return e.wroteLate(ctx, m)
	}
	e.line.add(processA, red, "✗", " ", fmt.Sprintf("writes %d: refused", m.Value))
	e.line.quote(m.Error)
	return e.again(ctx)
}

func (e *episode) wroteLate(ctx context.Context, m message) error {
	if err := e.look(ctx); err != nil {
		return err
	}
	e.told = m.Error
	e.line.add(processA, red, "┗", " ", fmt.Sprintf("writes %d, unlocks:", m.Value), e.balance)
	e.line.quote(e.told)
	return nil
}

// again is A's second try, from the beginning.
func (e *episode) again(ctx context.Context) error {
	if _, err := e.a.expect(ctx, "locks"); err != nil {
		return err
	}
	if _, err := e.gotLock(ctx, processA); err != nil {
		return err
	}
	return e.finish(ctx, processA)
}

func (e *episode) gotLock(ctx context.Context, who int) (message, error) {
	m, err := e.process(who).expect(ctx, "read")
	if err == nil {
		e.tokens = append(e.tokens, m.Token)
		e.line.add(who, green, "┏", "┃", fmt.Sprintf("gets the lock, token %d", m.Token))
		e.line.add(who, green, "┃", "┃", fmt.Sprintf("reads %d; lock still held", m.Value))
	}
	return m, err
}

// finish lets a process write that has not been stopped since its read.
func (e *episode) finish(ctx context.Context, who int) error {
	if err := e.process(who).tell("write"); err != nil {
		return err
	}
	m, err := e.process(who).expect(ctx, "wrote")
	if err != nil {
		return err
	}
	if err := e.look(ctx); err != nil {
		return err
	}
	e.line.add(who, green, "┗", " ", fmt.Sprintf("writes %d, unlocks", m.Value), e.balance)
	return nil
}

func (e *episode) process(who int) *process { return [...]*process{e.a, e.b}[who] }

func (e *episode) look(ctx context.Context) (err error) {
	e.balance, err = e.place.read(ctx, "balance")
	return err
}
