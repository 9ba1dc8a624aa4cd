package clienttest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/memstore"
)

// process is one client of a schedule.
type process struct {
	*rowlock.Client
	way        *frail
	fair       bool
	standstill bool
	life       context.Context // ends when the process is killed
	kill       context.CancelFunc
}

// play is a random schedule: processes whose tasks lock one key after the other, or several
// together, give up after a while or not at all, and fail in between.
type play struct {
	*testing.T
	truth
	store  *memstore.Store
	keys   int
	broken int
	over   chan struct{}
}

// schedule runs tasks for two minutes of virtual time.
func schedule(t *testing.T, seed uint64, found *atomic.Int64) {
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(seed, 14))
		p := &play{T: t, store: memstore.New(), keys: 3 + rng.IntN(4), over: make(chan struct{})}
		var jobs, tasks sync.WaitGroup
		var processes []*process
		for range 2 + rng.IntN(3) {
			way := &frail{Store: p.store, rng: rand.New(rand.NewPCG(rng.Uint64(), 1)), job: &jobs}
			fair := rng.IntN(2) == 0
			c := Client(t, way, &rowlock.Config{
				Fair: fair, Reaper: rowlock.ReaperConfig{Off: true}, TTL: 10 * time.Second,
			})
			at := &process{Client: c, way: way, fair: fair}
			at.life, at.kill = context.WithCancel(t.Context())
			processes = append(processes, at)
		}
		for task := range 3 + rng.IntN(5) {
			mine := rand.New(rand.NewPCG(rng.Uint64(), 2))
			at := processes[mine.IntN(len(processes))]
			tasks.Go(func() { p.task(task, at, mine) })
		}
		jobs.Go(func() { p.watch(processes, rng) })
		time.Sleep(2 * time.Minute)
		close(p.over)
		tasks.Wait()
		jobs.Wait()
		found.Add(int64(p.broken))
	})
}

// watch looks for cycles that stay, and lets leases expire and processes be cut off.
func (p *play) watch(processes []*process, rng *rand.Rand) {
	for n := 0; ; n++ {
		select {
		case <-p.over:
			for _, at := range processes {
				at.kill()
				at.way.set(false)
			}
			return
		case <-time.After(100 * time.Millisecond):
		}
		if cycle := p.standing(4 * time.Second); cycle != nil {
			p.Errorf("tasks %v wait for each other, and no call is ended", cycle)
		}
		at := processes[rng.IntN(len(processes))]
		if rng.IntN(1000) == 0 {
			p.killed(at)
		}
		switch rng.IntN(100) {
		case 0:
			key := fmt.Sprintf("k%d", rng.IntN(p.keys))
			p.store.Expire(key)
			p.expire(key)
		case 1, 2:
			p.cut(at, time.Duration(rng.Int64N(int64(4*time.Second))))
		}
	}
}

// killed ends a process: it sends nothing more, and its leases expire.
func (p *play) killed(at *process) {
	p.mu.Lock()
	at.standstill = true
	p.mu.Unlock()
	at.way.set(true)
	at.kill()
}

// cut cuts a process off. Its cycles need not be found before it has been heard of for a while.
func (p *play) cut(at *process, d time.Duration) {
	p.mu.Lock()
	was := at.standstill
	at.standstill = true
	p.mu.Unlock()
	if was {
		return
	}
	at.way.set(true)
	at.way.job.Go(func() {
		time.Sleep(d)
		at.heard(p, true)
		time.Sleep(3 * time.Second)
		at.heard(p, false)
	})
}

// heard connects a process again, and later counts on it, unless it was killed meanwhile.
func (at *process) heard(p *play, still bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at.life.Err() == nil {
		at.way.set(false)
		at.standstill = still
	}
}

// task locks down a chain, again and again.
func (p *play) task(task int, at *process, rng *rand.Rand) {
	for {
		select {
		case <-p.over:
			return
		default:
		}
		if at.life.Err() != nil {
			return
		}
		p.descend(at.life, task, at, rng, 2+rng.IntN(3))
		time.Sleep(time.Duration(rng.Int64N(int64(500 * time.Millisecond))))
	}
}

// descend locks something, and more below it, and unlocks all.
func (p *play) descend(ctx context.Context, task int, at *process, rng *rand.Rand, depth int) {
	keys := []string{fmt.Sprintf("k%d", rng.IntN(p.keys))}
	if rng.IntN(4) == 0 && !at.fair { // a fair LockAll holds keys that only it knows of
		keys = append(keys, fmt.Sprintf("k%d", rng.IntN(p.keys)))
	}
	most := [...]time.Duration{3 * time.Second, 30 * time.Second, 60 * time.Second}[rng.IntN(3)]
	patience, cancel := context.WithTimeout(ctx, time.Duration(rng.Int64N(int64(most))))
	defer cancel()
	w := p.begin(&p.waits, &term{task: task, keys: keys, standstill: &at.standstill})
	ls, err := at.LockAll(patience, keys)
	p.judge(w, err)
	p.end(w)
	if err != nil { // it keeps what it holds for a while, and waits for nothing
		time.Sleep(time.Duration(rng.Int64N(int64(2 * time.Second))))
		if depth > 1 && ctx.Err() == nil {
			p.descend(ctx, task, at, rng, depth-1)
		}
		return
	}
	var holds []*term
	for _, key := range ls.Keys() {
		holds = append(holds, p.begin(&p.holds, &term{
			task: task, keys: []string{key}, token: ls.Lock(key).Token(), standstill: &at.standstill,
		}))
	}
	defer func() {
		if at.life.Err() != nil {
			return
		}
		for _, h := range holds {
			p.end(h)
		}
		_ = ls.Unlock(ctx)
	}()
	time.Sleep(time.Duration(rng.Int64N(int64(2 * time.Second))))
	if depth > 1 && ls.Context().Err() == nil {
		p.descend(ls.Context(), task, at, rng, depth-1)
	}
}

// judge wants a deadlock that is told to have been one.
func (p *play) judge(w *term, err error) {
	var d *rowlock.DeadlockError
	if !errors.As(err, &d) || len(d.Cycle) == 0 {
		return
	}
	p.mu.Lock()
	p.broken++
	while := 200 * time.Millisecond
	if *w.standstill { // the call could not erase its record, and returned when that had expired
		while = 2 * time.Second
	}
	p.mu.Unlock()
	if why := p.existed(w, d, while); why != "" {
		p.Errorf("%v: %s", d, why)
	}
}
