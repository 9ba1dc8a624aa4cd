//go:build linux

package fight

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/attack/history"
)

var errUndone = errors.New("the section is to be rolled back")

// section counts in a DoTx. Its grant is told when its function begins to run, and its Unlock with
// its commit; the function may run several times, of which the last may be committed.
func (h *hand) section(ctx context.Context, key string) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	got := &held{serial: h.serial.Add(1), ttl: h.Plan.ttl(), left: true}
	sent, undo := Now(), h.rng.IntN(4) == 0
	var began []int64 // when the function did
	var token rowlock.Token
	var w writing
	err := h.client.DoTx(ctx, key, func(ctx context.Context, tx *sql.Tx) error {
		if len(began) > 0 {
			h.wrote(&w, key, token, began, history.Refused, nil)
		}
		began = append(began, Now())
		l, err := h.client.TryLock(ctx, key, rowlock.Reentrant()) // another handle, for its token
		if err != nil {
			return err
		}
		token = l.Token()
		if err := l.Unlock(ctx); err != nil {
			return err
		}
		w = writing{hand: h, got: got, op: fmt.Sprintf("%s-%d", h.name, h.serial.Add(1))}
		if err := w.write(ctx, tx, key, token); err != nil || !undo {
			return err
		}
		return errUndone
	}, rowlock.TTL(got.ttl))
	grant := h.event(history.Grant, got, sent, err)
	grant.Key, grant.Limit = key, patience
	if len(began) == 0 || token == 0 {
		h.record.Add(grant)
		return
	}
	grant.Result, grant.Err, grant.Token, grant.Told = history.OK, "", token, began[0]
	h.record.Add(grant)
	is := result(err)
	if is != history.OK && is != history.Unknown && is != history.Lost {
		is = refusal(err)
	}
	h.wrote(&w, key, token, began, is, err)
	if is == history.OK || is == history.Unknown {
		end := h.event(history.Unlock, got, began[len(began)-1], err)
		end.Key, end.Token, end.Left = key, token, true
		h.record.Add(end)
	}
}

// wrote records the write of the last run of a section's function.
func (h *hand) wrote(w *writing, key string, token rowlock.Token, began []int64, is history.Result, err error) {
	if w.got == nil {
		return // the function has not come to its write
	}
	e := h.event(history.Write, w.got, began[len(began)-1], err)
	e.Key, e.Token, e.Op, e.Value, e.Result = key, token, w.op, w.value, is
	h.record.Add(e)
}
