package trace

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// about is an event about a lease of this client. note is as it is stored.
func about(kind lease.EventKind, l *lease.Lease, note string, at time.Time) lease.TraceEvent {
	e := lease.TraceEvent{Kind: kind, Key: l.Key, At: at, Token: l.Token, Owner: l.Owner}
	e.Identity, e.Note = lease.SplitNote(note)
	return e
}

// Granted records a grant at that moment, after a wait.
func (r *Recorder) Granted(
	l *lease.Lease, note string, handedOver bool, at time.Time, waited time.Duration,
) {
	kind := lease.EventGranted
	if handedOver {
		kind = lease.EventHandedOver
	}
	if r.Has(kind) {
		e := about(kind, l, note, at)
		e.Took = waited
		r.Add(e)
	}
}

// Released records an end that the holder wanted.
func (r *Recorder) Released(l *lease.Lease, note string, at time.Time, held time.Duration) {
	if r.Has(lease.EventReleased) {
		e := about(lease.EventReleased, l, note, at)
		e.Took = held
		r.Add(e)
	}
}

// Lost records an end that the holder did not want.
func (r *Recorder) Lost(l *lease.Lease, note string, held time.Duration, cause error) {
	e := about(lease.EventLost, l, note, time.Now())
	e.Took, e.Detail = held, cause.Error()
	r.Add(e)
}

// RenewedLate records a renewal that came so late.
func (r *Recorder) RenewedLate(l lease.Lease, by time.Duration) {
	if r.Has(lease.EventRenewedLate) {
		e := lease.TraceEvent{Kind: lease.EventRenewedLate, Key: l.Key, At: time.Now(), Token: l.Token}
		e.Owner, e.Identity, e.Took = l.Owner, r.cfg.Identity, by
		r.Add(e)
	}
}

// Expired records that another client's lease has run out, as a poll has found.
func (r *Recorder) Expired(key string, token lease.Token, holder *lease.HeldError) {
	e := lease.TraceEvent{Kind: lease.EventExpired, Key: key, At: time.Now(), Token: token}
	e.Identity, e.Note, e.Took = holder.Identity, holder.Note, -holder.Remaining
	r.Add(e)
}

// Waited records the end of a wait for keys, if it was long: by a grant, or by err.
func (r *Recorder) Waited(keys []string, note string, began time.Time, err error) {
	if !r.Has(lease.EventWaitedLong) {
		return
	}
	now := time.Now()
	took := now.Sub(began)
	if took < r.cfg.LongWait || len(keys) == 0 {
		return
	}
	e := lease.TraceEvent{Kind: lease.EventWaitedLong, Key: keys[0], At: now, Took: took}
	e.Identity, e.Note = lease.SplitNote(note)
	e.Detail = "until it was granted"
	if err != nil {
		e.Detail = "in vain: " + err.Error()
	}
	var held *lease.HeldError
	if errors.As(err, &held) {
		e.Key = cmp.Or(held.Key, e.Key)
	}
	if len(keys) > 1 {
		e.Detail = fmt.Sprintf("for %d keys, %s", len(keys), e.Detail)
	}
	r.Add(e)
}

// Moved records where a key is now.
func (r *Recorder) Moved(key string, placement int, why string) {
	if !r.Has(lease.EventMoved) {
		return
	}
	where := "back into the table: "
	if placement != lease.PlacementTable {
		where = fmt.Sprintf("to placement %d: ", placement)
	}
	r.Add(lease.TraceEvent{
		Kind: lease.EventMoved, Key: key, At: time.Now(), Identity: r.cfg.Identity, Detail: where + why,
	})
}
