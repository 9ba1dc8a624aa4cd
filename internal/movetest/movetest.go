// Package movetest moves keys between a real database and a real cluster under load, while a test
// breaks the cluster, and looks at what the keys guarded: nothing may be lost, and no token may go
// back.
package movetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

// Scene is what a test brings.
type Scene struct {
	// Cluster returns a client of the cluster, as each process has its own.
	Cluster func(tb testing.TB) paxosbridge.Cluster
	// Disturb breaks something and mends it again, and returns when it is mended. It says to note
	// what it does. It is called again and again. nil: nothing breaks.
	Disturb func(ctx context.Context, note func(string)) error
	// Moves is how many are to be made.
	Moves int
	// Gap is how long a key may be unavailable at most, and Whole the same while nothing is broken.
	// The test waits for as long before it breaks something again. 0: there is no bound.
	Gap, Whole time.Duration
}

const (
	keys    = 3
	workers = 6
	ttl     = 6 * time.Second
)

// play is the state of a run.
type play struct {
	testing.TB
	*testdb.Env
	Scene
	clients []*rowlock.Client
	bridges []*paxosbridge.Bridge

	moves  atomic.Int64
	done   [keys]atomic.Int64 // increments that were committed
	unsure [keys]atomic.Int64 // of which it is not known

	record *record
}

// Run moves keys until Scene.Moves have been made, or as many as ROWLOCK_SOAK_MOVES says. What they
// guard is a number in the database for each, which is read, and written back plus one, in a
// transaction that is fenced: two holders would lose one, and a holder of old would be refused.
func Run(t *testing.T, e *testdb.Env, s Scene) {
	limit := 3 * time.Minute
	if n, err := strconv.Atoi(os.Getenv("ROWLOCK_SOAK_MOVES")); err == nil {
		s.Moves, limit = n, 3*time.Hour
	}
	p := &play{TB: t, Env: e, Scene: s}
	p.Exec(t, p.sql(`CREATE TABLE {guarded} (id INTEGER PRIMARY KEY, n BIGINT NOT NULL, token BIGINT NOT NULL)`))
	t.Cleanup(func() { p.Exec(t, p.sql(`DROP TABLE {guarded}`)) })
	for i := range keys {
		p.Exec(t, p.sql(`INSERT INTO {guarded} (id, n, token) VALUES (?, 0, 0)`), i)
	}
	for range 2 {
		p.process()
	}
	p.record = newRecord()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var load, moving sync.WaitGroup
	loadCtx, stop := context.WithCancel(ctx)
	for w := range workers {
		load.Go(func() { p.work(loadCtx, w) })
	}
	for i := range p.bridges {
		moving.Go(func() { p.move(ctx, i) })
	}
	if s.Disturb != nil {
		moving.Go(func() { p.disturb(ctx) })
	}
	moving.Wait()
	stop()
	load.Wait()
	p.record.breaks() // the load has ended
	p.judge()
}

func (p *play) sql(query string) string {
	return strings.ReplaceAll(query, "{guarded}", p.Table("guarded"))
}

// process makes a bridge and a client, as one process has them.
func (p *play) process() {
	p.Helper()
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	cfg := &rowlock.Config{TTL: ttl, PollMin: 5 * time.Millisecond, PollMax: 100 * time.Millisecond, Logger: quiet, Reaper: rowlock.ReaperConfig{Off: true}}
	table, err := rowlock.OpenTable(p.DB, p.Dialect, cfg)
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = table.Close() })
	b, err := paxosbridge.New(p.Context(), table, p.Cluster(p.TB), &paxosbridge.Config{Every: -1, Refresh: time.Second, Logger: quiet})
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = b.Close() })
	c, err := rowlock.New(b, cfg)
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = c.Close() })
	p.bridges, p.clients = append(p.bridges, b), append(p.clients, c)
}

func name(key int) string { return fmt.Sprint("hot/", key) }

// work locks keys as long as it is let. Each key has a worker of its own, because the others may
// all wait for another key.
func (p *play) work(ctx context.Context, w int) {
	for ctx.Err() == nil {
		key := w
		if w >= keys {
			key = rand.N(keys)
		}
		began := time.Now()
		l, err := p.clients[w%len(p.clients)].Lock(ctx, name(key))
		if err != nil {
			p.record.note(key, began, "worker %d: lock: %v", w, err)
			time.Sleep(5 * time.Millisecond) // the cluster is being broken: no hammering
			continue
		}
		p.record.got(key)
		p.increment(l, key)
		began = time.Now()
		if err := l.Unlock(ctx); err != nil {
			p.record.note(key, began, "worker %d: unlock token %d: %v", w, l.Token(), err)
		}
	}
}

// increment is the business of a lock. The lock's context ends it when the lock does, but it is the
// fence that makes it safe.
func (p *play) increment(l *rowlock.Lock, key int) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	tx, err := p.DB.BeginTx(ctx, nil)
	if err != nil {
		return
	}
	defer tx.Rollback()
	if err := l.Fence(ctx, tx); err != nil {
		return
	}
	var n, token rowlock.Token
	if err := tx.QueryRowContext(ctx, p.SQL(p.sql(`SELECT n, token FROM {guarded} WHERE id = ?`)), key).Scan(&n, &token); err != nil {
		return
	}
	if token > l.Token() { //rowlockvet:ignore the fence before is what is tested
		p.Errorf("%s: token %d was fenced after %d", name(key), l.Token(), token)
	}
	if _, err := tx.ExecContext(ctx, p.SQL(p.sql(`UPDATE {guarded} SET n = ?, token = ? WHERE id = ?`)), n+1, l.Token(), key); err != nil {
		return
	}
	if err := tx.Commit(); err != nil {
		p.unsure[key].Add(1)
		return
	}
	p.done[key].Add(1)
}

func (p *play) move(ctx context.Context, i int) {
	for p.moves.Load() < int64(p.Moves) && ctx.Err() == nil {
		n := rand.N(keys)
		key, began := name(n), time.Now()
		out, back := p.bridges[i].MoveOut(ctx, key, "movetest"), error(nil)
		p.record.note(n, began, "mover %d: out: %v", i, out)
		if out != nil {
			began = time.Now()
			back = p.bridges[i].MoveBack(ctx, key, "movetest")
			p.record.note(n, began, "mover %d: back: %v", i, back)
		}
		if out == nil || back == nil {
			p.moves.Add(1)
		} else {
			time.Sleep(10 * time.Millisecond) // another process moves it, or none can now
		}
	}
}

func (p *play) disturb(ctx context.Context) {
	for n := 0; p.moves.Load() < int64(p.Moves) && ctx.Err() == nil; n++ {
		began := time.Now()
		p.record.breaks()
		err := p.Disturb(ctx, func(what string) { p.record.note(all, began, "%s", what) })
		p.record.mended()
		p.record.note(all, began, "disturbance %d is mended", n+1)
		if err != nil && !errors.Is(err, ctx.Err()) {
			p.Errorf("disturbance %d: %v", n+1, err)
			return
		}
		p.recover(ctx)
	}
}

// recover waits until each key is available, in half of the cases: in the others the next
// disturbance comes too soon for that.
func (p *play) recover(ctx context.Context) {
	if rand.N(2) == 0 {
		return
	}
	for began := time.Now(); !p.record.available() && time.Since(began) <= p.Whole && ctx.Err() == nil; {
		time.Sleep(5 * time.Millisecond)
	}
}

func (p *play) judge() {
	var total, unsure int64
	longest, idle := p.record.longest, p.record.idle
	for key := range keys {
		var n int64
		if err := p.DB.QueryRow(p.SQL(p.sql(`SELECT n FROM {guarded} WHERE id = ?`)), key).Scan(&n); err != nil {
			p.Fatal(err)
		}
		done, maybe := p.done[key].Load(), p.unsure[key].Load()
		if n < done || n > done+maybe {
			p.Errorf("%s: %d were counted, and %d to %d were committed", name(key), n, done, done+maybe)
		}
		total, unsure = total+done, unsure+maybe
	}
	p.Logf("%d moves, %d increments (%d unsure); a key was unavailable for %v at most, and for %v while nothing was broken",
		p.moves.Load(), total, unsure, longest.Round(time.Millisecond), idle.Round(time.Millisecond))
	if p.moves.Load() < int64(p.Moves) {
		p.Errorf("%d moves were made of %d", p.moves.Load(), p.Moves)
	}
	if total < int64(p.Moves) {
		p.Errorf("%d increments prove nothing", total)
	}
	if longest > told {
		p.Log(p.record.explain())
	}
	if p.Gap > 0 && longest > p.Gap {
		p.Errorf("a key was unavailable for %v, want at most %v", longest, p.Gap)
	}
	if p.Whole > 0 && idle > p.Whole {
		p.Errorf("a key was unavailable for %v while nothing was broken, want at most %v", idle, p.Whole)
	}
}
