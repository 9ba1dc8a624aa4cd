package groupreplication

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge/internal/request"
)

// Acquire grants free and expired keys. A request that names an epoch never makes a row, and is
// granted only in that epoch: the statement that grants checks it. Otherwise its error is a
// [*paxosbridge.RecordError].
func (c *Cluster) Acquire(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	out := make([]lease.Acquired, len(reqs))
	if len(reqs) == 1 {
		out[0] = c.acquire(ctx, reqs[0])
		return request.Acquired(out)
	}
	var wg sync.WaitGroup
	for i := range reqs {
		wg.Go(func() { out[i] = c.acquire(ctx, reqs[i]) })
	}
	wg.Wait()
	return out, nil
}

func (c *Cluster) acquire(ctx context.Context, r lease.AcquireRequest) lease.Acquired {
	if err := request.Check(r, lastEpoch); err != nil {
		return lease.Acquired{Err: err}
	}
	var a lease.Acquired
	uncertain, err := c.write(
		ctx, "acquire", r.Key,
		func(ctx context.Context, s *conn.Session, _ bool) (err error) {
			a, err = c.take(ctx, s, r)
			return err
		},
	)
	if err != nil {
		return lease.Acquired{Err: err} // a may still be written to
	}
	a.Unknown = uncertain
	return a
}

// write runs a sequence that changes a record, after a look at the group. It repeats the sequence
// until the outcome is known. uncertain says that an earlier try had an unknown outcome.
func (c *Cluster) write(
	ctx context.Context, verb, key string,
	do func(ctx context.Context, s *conn.Session, uncertain bool) error,
) (uncertain bool, err error) {
	var unknown bool
	err = c.store.OnPinned(ctx, verb, key, func(ctx context.Context, s *conn.Session) error {
		err := c.watch(ctx, s)
		if err == nil {
			err = do(ctx, s, unknown)
		}
		unknown = unknown || err != nil && sqlstore.Judge(c.group, err).Class == sqlstore.Unknown
		return err
	})
	if err != nil {
		return false, err // the sequence may still run
	}
	return unknown, nil
}

// watchEvery is how old what is known of the group may be. Members may leave while a session stays,
// and the last one left would acknowledge writes alone.
const watchEvery = time.Second

// isFresh reports whether a check is not too old. One of the future is: the clock was set back.
func isFresh(checked, now int64) bool { return checked <= now && now-checked < int64(watchEvery) }

// watch checks the group if that is due, and otherwise costs nothing.
func (c *Cluster) watch(ctx context.Context, s *conn.Session) error {
	now, last := time.Now().UnixNano(), c.watched.Load()
	if isFresh(last, now) || !c.watched.CompareAndSwap(last, now) {
		return nil
	}
	v, err := c.members.view(ctx, s.Conn())
	if err == nil {
		err = v.leads(atLeast)
	}
	if err != nil {
		c.watched.Store(0) // the next call checks again
		err = conn.NotSent{Err: err}
	}
	return err
}

// watchNow is watch without a session.
func (c *Cluster) watchNow(ctx context.Context, key string) error {
	if isFresh(c.watched.Load(), time.Now().UnixNano()) {
		return nil
	}
	return c.store.OnPinned(ctx, "check the group for", key, c.watch)
}

// take runs the sequence once: the write that grants, and if it did not, a read that says why.
func (c *Cluster) take(
	ctx context.Context, s *conn.Session, r lease.AcquireRequest,
) (lease.Acquired, error) {
	low, high := lease.Token(0), lease.MaxToken
	if r.Epoch != 0 {
		low, high = lease.EpochStart(r.Epoch), lease.EpochStart(r.Epoch+1)
	}
	key := []byte(r.Key)
	out, err := granted(s.Exec(ctx, c.group.Text("group-take"),
		conn.Bytes(r.Owner), []byte(r.Note), conn.Micros(r.TTL), key, key, low, high))
	if err != nil || out.Granted {
		return out, err
	}
	return c.explain(ctx, s, r)
}

// granted is not Granted if the statement changed no row.
func granted(res sql.Result, err error) (out lease.Acquired, _ error) {
	if err != nil {
		return out, err
	}
	n, err := res.RowsAffected()
	if err != nil || n == 0 {
		return out, err
	}
	token, err := res.LastInsertId()
	if out.Token = lease.Token(token); err == nil {
		err = conn.CheckToken(true, out.Token)
	}
	out.Granted = err == nil
	return out, err
}

// row is what explain reads.
type row struct {
	placement  int
	token      lease.Token
	mine, held bool
	note       []byte
	remaining  int64
}

func (c *Cluster) explain(
	ctx context.Context, s *conn.Session, r lease.AcquireRequest,
) (out lease.Acquired, err error) {
	var w row
	err = s.QueryRow(ctx, c.group.Text("group-look"), []any{conn.Bytes(r.Owner), []byte(r.Key)},
		&w.placement, &w.token, &w.mine, &w.held, &w.note, &w.remaining)
	switch {
	case errors.Is(err, sql.ErrNoRows) && r.Epoch == 0:
		return c.create(ctx, s, r)
	case errors.Is(err, sql.ErrNoRows):
		return lease.Acquired{Err: other(r, 0, 0)}, nil
	case err != nil:
		return out, err
	}
	return c.answer(ctx, s, r, w)
}

func (c *Cluster) answer(
	ctx context.Context, s *conn.Session, r lease.AcquireRequest, w row,
) (out lease.Acquired, err error) {
	if err := checkRecord(r.Key, w.token); err != nil {
		return out, err
	}
	switch {
	case w.placement != lease.PlacementTable || r.Epoch != 0 && lease.Epoch(w.token) != r.Epoch:
		out.Err = other(r, w.placement, w.token)
	case w.mine:
		return c.confirm(ctx, s, r, w.token)
	case w.held:
		out.Holder = lease.Holder{
			Note: string(w.note), Remaining: max(0, conn.Duration(w.remaining)),
		}
	case spent(w.token):
		out.Err = fmt.Errorf(
			"%w: acquire %q: it stands at %d", lease.ErrTokenExhausted, r.Key, w.token,
		)
	default: // free now, but not when the statement ran
		err = sqlstore.ErrRowShape
	}
	return out, err
}

// confirm grants the owner's lease again, by a write: see group-confirm.
func (c *Cluster) confirm(
	ctx context.Context, s *conn.Session, r lease.AcquireRequest, token lease.Token,
) (lease.Acquired, error) {
	res, err := s.Exec(
		ctx, c.group.Text("group-confirm"), []byte(r.Key), conn.Bytes(r.Owner), token,
	)
	if err != nil {
		return lease.Acquired{}, err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return lease.Acquired{}, oneline.Join(sqlstore.ErrRowShape, err)
	}
	if err := conn.CheckToken(true, token); err != nil {
		return lease.Acquired{}, err
	}
	return lease.Acquired{Granted: true, Token: token}, nil
}

// create inserts the row of a key without a record, for a request that names no epoch.
func (c *Cluster) create(
	ctx context.Context, s *conn.Session, r lease.AcquireRequest,
) (lease.Acquired, error) {
	key := []byte(r.Key)
	out, err := granted(s.Exec(
		ctx, c.group.Text("acquire-insert"), key, conn.Bytes(r.Owner), []byte(r.Note),
		conn.Micros(r.TTL), lease.Bucket(r.Key), key,
	))
	if err == nil && !out.Granted {
		err = sqlstore.ErrRowShape
	}
	return out, err
}

// HandOver grants leases to their next owners, in the epoch of the lease.
func (c *Cluster) HandOver(ctx context.Context, items []lease.HandOver) ([]lease.Acquired, error) {
	out := make([]lease.Acquired, len(items))
	var run []lease.HandOver
	var at []int
	for i, h := range items {
		switch {
		case h.To.Epoch != 0 && h.To.Epoch != lease.Epoch(h.From.Token):
			out[i].Err = other(h.To, lease.PlacementTable, h.From.Token)
		case !spent(h.From.Token): // else not granted: the holder releases it
			run, at = append(run, h), append(at, i)
		}
	}
	if len(run) > 0 {
		if err := c.watchNow(ctx, run[0].From.Key); err != nil {
			return nil, err
		}
		got, err := c.store.HandOver(ctx, run)
		if got == nil {
			return nil, err
		}
		for n, i := range at {
			out[i] = got[n]
		}
	}
	return request.Acquired(out)
}
