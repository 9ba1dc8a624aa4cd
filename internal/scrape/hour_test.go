package scrape

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/election"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/once"
	"github.com/rowlockdb/rowlock/once/oncehttp"
)

// office is three replicas that do what applications do with locks.
type office struct {
	*fault
	source   string
	replicas [3]*employee
	done     [6]atomic.Int64 // ticks, transfers, terms, forced releases, requests, restarts
}

// employee is one replica, from its start to its Close.
type employee struct {
	locks *rowlock.Client
	db    *sql.DB
	page  *target
	quit  context.CancelFunc
	work  sync.WaitGroup
}

// A normal hour, of elections, ticks of cron with MinHold, transfers with UnlockTx, a forced
// release, a rolling deploy and a restart of the database, pages no operator. An operator's own
// release is news.
//
// ROWLOCK_NORMAL_HOUR is for how long hours follow one another. Without it there is one with a
// third of the scrapes, which is longer than most rules look back.
func TestANormalHourFiresNoAlert(t *testing.T) {
	program(t, "promtool")
	lasts, err := time.ParseDuration(os.Getenv("ROWLOCK_NORMAL_HOUR"))
	calm := 15 * time.Minute
	if err != nil {
		calm = 5 * time.Minute
	}
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		gate, source := gated(s, s.Env)
		var recorded []*recording
		for until := time.Now().Add(lasts); len(recorded) == 0 || time.Now().Before(until); {
			r := newRecording(s, "hour "+servertest.Numbered(len(recorded)))
			recorded = append(recorded, r)
			(&office{fault: &fault{r, s}, source: source}).works(gate, calm)
		}
		judge(s.T, recorded)
	})
}

// works is an hour with so long a time in which nothing but work happens, four times.
func (o *office) works(gate *gate, calm time.Duration) {
	for i := range o.replicas {
		o.hire(i)
	}
	o.passes(calm)
	for i := range o.replicas {
		o.dismiss(i)
		o.hire(i)
		o.passes(every)
	}
	o.passes(calm)
	o.restart(gate)
	o.passes(calm)
	o.force()
	o.passes(calm)
	for i := range o.replicas {
		o.dismiss(i)
	}
	for i := range o.done {
		if o.done[i].Load() == 0 {
			o.Errorf("nothing was done of kind %d", i)
		}
	}
}

// passes scrapes for so long, as the rules see it.
func (o *office) passes(d time.Duration) {
	o.Helper()
	for range d / every {
		o.scrape()
		o.pages()
		o.tidied()
	}
}

// tidied is the time from one scrape to the next. What a client cleans up takes seconds, which no
// scrapes may stretch to minutes: the next one waits for it as long as one does in that hour.
func (o *office) tidied() {
	o.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	<-again.C
	for end := time.Now().Add(every); o.sum("rowlock_orphan_open") > 0 && time.Now().Before(end); {
		<-again.C
	}
}

// restart takes the database away for less than a second. An Unlock that meets it has no answer,
// and the client releases the row when the database is back.
func (o *office) restart(gate *gate) {
	o.Helper()
	l := o.s.Take(o.replicas[1].locks, "restart")
	gate.shut()
	o.s.WantErr(l.Unlock(o.s.Context()), rowlock.ErrUnknown)
	o.s.Elapse(500 * time.Millisecond)
	gate.open()
	if o.sum("rowlock_lock_unlock_failed_total") > 0 {
		o.done[5].Add(1)
	}
}

// pages wants that no operator was called at the last scrape.
func (o *office) pages() {
	o.checks = append(o.checks, check{
		Expr:     `group by (alertname) (ALERTS{alertstate="firing",severity!="info"})`,
		EvalTime: o.now(),
	})
}

func (o *office) hire(i int) {
	e := &employee{}
	through := *o.s.Env
	through.Source = o.source
	e.db = through.Pool(o.s)
	o.replicas[i] = e
	var ctx context.Context
	ctx, e.quit = context.WithCancel(context.Background())
	e.locks, e.page = o.opened(e.db, servertest.Numbered(o.scrapes)+servertest.Numbered(i))
	e.work.Go(func() {
		_ = election.Run(ctx, e.locks, "leader", func(ctx context.Context, _ *rowlock.Lock) error {
			o.done[2].Add(1)
			<-ctx.Done()
			return nil
		})
	})
	e.repeat(ctx, 50*time.Millisecond, func() {
		// An Unlock that meets the restart leaves the key to its TTL, and an hour is ten seconds here.
		l, err := e.locks.TryLock(ctx, "cron", rowlock.MinHold(100*time.Millisecond), rowlock.TTL(3*time.Second))
		if err == nil {
			o.done[0].Add(1)
			_ = l.Unlock(context.Background())
		}
	})
	orders := o.orders(e)
	e.repeat(ctx, 100*time.Millisecond, func() {
		if orders(fmt.Sprintf("%q", servertest.Numbered(int(o.done[4].Load())))) < 300 {
			o.done[4].Add(1)
		}
	})
	e.repeat(ctx, 30*time.Millisecond, func() {
		if e.transfer(ctx) == nil {
			o.done[1].Add(1)
		}
	})
}

func (o *office) opened(db *sql.DB, instance string) (*rowlock.Client, *target) {
	c, address, _ := watched(o, db, o.s.Env.Dialect, func(c *rowlock.Config) { c.RenewEvery = time.Second })
	return c, o.add(instance, address)
}

func (e *employee) repeat(ctx context.Context, pause time.Duration, f func()) {
	e.work.Go(func() {
		for ctx.Err() == nil {
			f()
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
		}
	})
}

// orders answers requests once for each Idempotency-Key, under a lock, and returns their status.
func (o *office) orders(e *employee) func(key string) (status int) {
	o.Helper()
	kept, err := once.New(e.db, o.s.Env.Dialect, &once.Config{Reap: -1})
	o.s.OK(err)
	o.Cleanup(func() { _ = kept.Close() })
	h, err := oncehttp.New(kept, &oncehttp.Config{
		Tenant: oncehttp.SharedKeys, Logger: slog.New(slog.DiscardHandler),
		Lock: func(ctx context.Context, _ *http.Request) (oncehttp.Lock, error) {
			return e.locks.Lock(ctx, "orders")
		},
	})
	o.s.OK(err)
	serves := h.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }))
	return func(key string) int {
		r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader("item=book"))
		r.Header.Set("Idempotency-Key", key)
		w := httptest.NewRecorder()
		serves.ServeHTTP(w, r)
		return w.Code
	}
}

// transfer is a section that ends with its transaction.
func (e *employee) transfer(ctx context.Context) error {
	l, err := e.locks.Lock(ctx, "account")
	if err != nil {
		return err
	}
	tx, err := e.db.BeginTx(context.Background(), nil)
	if err == nil {
		err = errors.Join(l.Fence(context.Background(), tx), l.UnlockTx(context.Background(), tx), tx.Commit())
	}
	return errors.Join(err, l.Unlock(context.Background()))
}

func (o *office) dismiss(i int) {
	e := o.replicas[i]
	e.quit()
	e.work.Wait()
	_ = e.locks.Close()
	e.page.gone = true
}

// force is an operator's release of what a replica holds.
func (o *office) force() {
	o.Helper()
	forced := o.sum("rowlock_lock_forced_total")
	l := o.s.Take(o.replicas[0].locks, "forced")
	_, err := o.s.Client().ForceRelease(o.s.Context(), "forced", rowlock.Force{Reason: "test"})
	o.s.OK(err)
	servertest.Await(o, time.Minute, l.Context().Done(), "the holder to be told")
	o.until("rowlock_lock_forced_total", forced+1)
	o.tidied()
	o.done[3].Add(1)
}
