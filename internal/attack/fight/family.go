//go:build linux

package fight

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/attack/history"
	"github.com/rowlockdb/rowlock/once"
	"github.com/rowlockdb/rowlock/semaphore"
)

// family is what a worker has beside its clients.
type family struct {
	once  *once.Once
	slots *semaphore.Semaphore
}

// Slots is the limit of the semaphore that all workers share, and slotsName its name.
const (
	Slots     = 3
	slotsName = "reports"
)

// SlotKeys are the keys of its slots.
func SlotKeys() (list []string) {
	for i := range Slots {
		list = append(list, fmt.Sprintf("semaphore/%s/%03d", slotsName, i))
	}
	return list
}

func (w *worker) openFamily(open *closers) (err error) {
	if !w.Plan.Rough {
		return nil
	}
	if w.family.once, err = once.New(w.db, w.Database.Dialect(), &once.Config{Wait: 2 * time.Second, Logger: slog.New(slog.DiscardHandler)}); err != nil {
		return err
	}
	open.later(w.family.once)
	if w.bridge != nil { // which counts no slots
		return nil
	}
	w.family.slots, err = semaphore.New(w.plain, slotsName, Slots)
	return err
}

func init() {
	// shared reads what only writers change: twice, in one fenced transaction.
	acts["shared"] = func(ctx context.Context, h *hand) { h.share(ctx, h.key()) }
	// slots takes some permits for a moment, and counts under the first.
	acts["slots"] = func(ctx context.Context, h *hand) { h.permits(ctx, 1+h.rng.IntN(2)) }
	// once asks for an effect that others ask for too.
	acts["once"] = func(ctx context.Context, h *hand) { h.effect(ctx, fmt.Sprintf("%s/%d", h.key(), h.rng.IntN(400))) }
	// keep holds a lock by its renewals, for some TTLs.
	acts["keep"] = func(ctx context.Context, h *hand) {
		got := h.lock(ctx, h.key(), patience)
		if got == nil {
			return
		}
		select {
		case <-got.locks[0].Context().Done():
		case <-time.After(h.upTo(3 * h.Plan.ttl())):
		case <-ctx.Done():
		}
		h.count(got, false)
		h.unlock(got)
	}
}

// share records a reader's grant as one, because readers of a key share their token.
func (h *hand) share(ctx context.Context, key string) { h.shareFor(ctx, key, patience) }

func (h *hand) shareFor(ctx context.Context, key string, most time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	got := &held{serial: h.serial.Add(1), ttl: h.Plan.ttl()}
	sent := Now()
	l, err := h.client.RLock(ctx, key)
	h.reads(l, got, key, sent, most, err)
}

// reads records a reader's call, and reads if it has the key.
func (h *hand) reads(
	l *rowlock.Lock, got *held, key string, sent int64, most time.Duration, err error,
) {
	e := h.event(history.Shared, got, sent, err)
	e.Key, e.Limit = key, most
	if err == nil {
		e.Token = l.Token()
	}
	h.record.Add(e)
	if err != nil {
		return
	}
	h.readTwice(l, got)
	_ = l.Unlock(context.Background())
}

func (h *hand) readTwice(l *rowlock.Lock, got *held) {
	ctx, cancel := context.WithTimeout(context.Background(), txFor)
	defer cancel()
	sent := Now()
	var first, second int64
	err := h.transact(ctx, func(tx *sql.Tx) error {
		if err := l.Fence(ctx, tx); err != nil {
			return err
		}
		read := func(n *int64) error {
			return tx.QueryRowContext(ctx, h.Database.SQL(`SELECT n FROM {}counter WHERE k = ?`), l.Key()).Scan(n)
		}
		if err := read(&first); err != nil {
			return err
		}
		Sleep(ctx, h.upTo(3*time.Millisecond))
		return read(&second)
	})
	e := h.event(history.Read, got, sent, err)
	e.Key, e.Token, e.Value = l.Key(), l.Token(), second-first
	h.record.Add(e)
}

func (h *hand) transact(ctx context.Context, f func(tx *sql.Tx) error) error {
	tx, err := h.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return errors.Join(err, rollback(tx))
	}
	return tx.Commit()
}

func (h *hand) permits(ctx context.Context, n int) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	got := &held{serial: h.serial.Add(1), ttl: h.Plan.ttl()}
	sent := Now()
	p, err := h.family.slots.Acquire(ctx, n)
	if err != nil {
		e := h.event(history.Grant, got, sent, err)
		e.Key, e.Limit = SlotKeys()[0], patience
		h.record.Add(e)
		return
	}
	for _, s := range p.Slots() {
		e := h.event(history.Grant, got, sent, nil)
		e.Key, e.Token, e.Limit = s.Lock.Key(), s.Token, patience
		h.record.Add(e)
		got.locks = append(got.locks, s.Lock)
	}
	h.watch(got)
	Sleep(ctx, h.upTo(3*time.Millisecond))
	h.count(got, false)
	h.unlock(got)
}

// effect writes a row that must be there once if a caller was told so, and at most once.
func (h *hand) effect(ctx context.Context, key string) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	got := &held{serial: h.serial.Add(1)}
	op := fmt.Sprintf("%s-%d", h.name, got.serial)
	sent := Now()
	res, err := h.family.once.Do(ctx, once.Request{Key: key}, func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
		_, err := tx.ExecContext(ctx, h.Database.SQL(`INSERT INTO {}effect (op, k) VALUES (?, ?)`), op, key)
		return []byte(op), err
	})
	e := h.event(history.Effect, got, sent, err)
	e.Key, e.Op, e.Limit = key, string(res.Value), patience
	h.record.Add(e)
}
