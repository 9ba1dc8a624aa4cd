//go:build linux

package fight

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/attack/history"
)

// defaultTTL is that of rowlock.Config.
const defaultTTL = 30 * time.Second

// held is what a call has granted.
type held struct {
	serial int64
	locks  []*rowlock.Lock
	all    *rowlock.Locks
	ttl    time.Duration
	dwell  time.Duration // how long a transaction stays open
	left   bool          // UnlockTx was called
}

func (h *hand) try(key string) *held {
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	return h.one(key, longest, h.Plan.ttl(), func() (*rowlock.Lock, error) { return h.client.TryLock(ctx, key) })
}

// lock waits for so long. The phase may end meanwhile: then the call is canceled, as a user's would
// be.
func (h *hand) lock(ctx context.Context, key string, most time.Duration) *held {
	return h.lockFor(ctx, key, most, h.Plan.ttl())
}

// lockFor is lock with another TTL than the client's.
func (h *hand) lockFor(ctx context.Context, key string, most, ttl time.Duration, opts ...rowlock.Option) *held {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	opts = append(opts, rowlock.TTL(ttl))
	return h.one(key, most, ttl, func() (*rowlock.Lock, error) { return h.client.Lock(ctx, key, opts...) })
}

func (h *hand) one(key string, limit, ttl time.Duration, call func() (*rowlock.Lock, error)) *held {
	got := &held{serial: h.serial.Add(1), ttl: ttl}
	sent := Now()
	l, err := call()
	e := h.event(history.Grant, got, sent, err)
	e.Key, e.Limit = key, limit
	if err == nil {
		e.Token = l.Token()
		got.locks = []*rowlock.Lock{l}
	}
	h.record.Add(e)
	h.watch(got)
	if err != nil {
		return nil
	}
	return got
}

// lockAll takes some of the hand's keys.
func (h *hand) lockAll(ctx context.Context, wait bool) *held {
	order := h.rng.Perm(len(h.keys))
	var keys []string
	for _, i := range order[:min(2+h.rng.IntN(3), len(order))] {
		keys = append(keys, h.keys[i])
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	call := h.client.TryLockAll
	if wait {
		call = h.client.LockAll
	}
	got := &held{serial: h.serial.Add(1), ttl: h.Plan.ttl()}
	sent := Now()
	all, err := call(ctx, keys)
	if err != nil {
		e := h.event(history.Grant, got, sent, err)
		e.Key, e.Limit = keys[0], patience
		h.record.Add(e)
		return nil
	}
	base := h.event(history.Grant, got, sent, nil)
	var events []history.Event
	for _, key := range all.Keys() {
		l := all.Lock(key)
		got.locks = append(got.locks, l)
		e := base
		e.Key, e.Token, e.Limit = key, l.Token(), patience
		events = append(events, e)
	}
	got.all = all
	h.record.Add(events...)
	h.watch(got)
	return got
}

// unlockFor is what Unlock promises to take at most, without the slack that the checker allows.
const unlockFor = 2 * time.Second

// unlock releases all that was granted: each key by itself, or all at once.
func (h *hand) unlock(got *held) {
	if got == nil {
		return
	}
	if got.all != nil && h.rng.IntN(2) == 0 {
		sent := Now()
		err := got.all.Unlock(context.Background())
		for _, l := range got.locks {
			h.unlocked(got, sent, partOf(err, l.Key()), l)
		}
		return
	}
	for _, l := range got.locks {
		sent := Now()
		h.unlocked(got, sent, l.Unlock(context.Background()), l)
	}
}

// partOf is what the error of Locks.Unlock, which joins those of the keys, says of one key.
func partOf(err error, key string) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if err == nil || !ok {
		return err
	}
	for _, part := range joined.Unwrap() {
		if strings.Contains(part.Error(), strconv.Quote(key)) {
			return part
		}
	}
	return nil
}

// watch records when a lock's holder is told that it is lost, beside the time until which it could
// have been trusted.
func (h *hand) watch(got *held) {
	if !h.Plan.Rough {
		return
	}
	for _, l := range got.locks {
		context.AfterFunc(l.Context(), func() {
			told := Now()
			if !errors.Is(context.Cause(l.Context()), rowlock.ErrLost) {
				return
			}
			e := h.event(history.Loss, got, told+int64(time.Until(l.Deadline())), nil)
			e.Key, e.Token, e.Told = l.Key(), l.Token(), told
			h.record.Add(e)
		})
	}
}

func (h *hand) unlocked(got *held, sent int64, err error, l *rowlock.Lock) {
	e := h.event(history.Unlock, got, sent, err)
	e.Key, e.Token, e.Left, e.Limit = l.Key(), l.Token(), got.left, unlockFor
	h.record.Add(e)
}

func (h *hand) event(k history.Kind, got *held, sent int64, err error) history.Event {
	return history.Event{
		Kind: k, Process: h.name, Lock: got.serial, Act: h.act, Phase: h.phase, Sent: sent, Told: Now(),
		Result: result(err), Err: text(err), TTL: got.ttl,
	}
}

// result tells answers apart. Lost comes before Refused: a fence joins both.
func result(err error) history.Result {
	for _, r := range []struct {
		err error
		is  history.Result
	}{
		{nil, history.OK},
		{rowlock.ErrUnknown, history.Unknown},
		{rowlock.ErrLost, history.Lost},
		{rowlock.ErrHeld, history.Held},
		{rowlock.ErrBusy, history.Held},
		{context.DeadlineExceeded, history.Ended},
		{context.Canceled, history.Ended},
	} {
		if r.err == nil && err == nil || r.err != nil && errors.Is(err, r.err) {
			return r.is
		}
	}
	return history.Other
}

// text is an error's, short and printable: some databases quote keys as they are. Held is the usual
// answer, and needs none.
func text(err error) string {
	if err == nil || errors.Is(err, rowlock.ErrHeld) {
		return ""
	}
	s := strings.Map(func(r rune) rune {
		if r == '\n' {
			return ';'
		}
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, err.Error())
	return s[:min(len(s), 300)]
}
