package sqlstore_test

import (
	"context"
	"database/sql/driver"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// A schedule is the order in which the statements of several sessions run. Each session stops
// before each of its statements, and one at a time is let go, so that a schedule is a list of
// sessions. Between a statement and the next of its session there is nothing that another session
// could notice: a stop after each statement would be the same stop.

// patience bounds the wait for one statement. None waits for another session: what is locked is
// locked within a statement.
const patience = 30 * time.Second

// player is a session that runs its statements one by one, when it is told to.
type player struct {
	session *conn.Session
	switch_ *faultdb.Switch
	real    driver.ExecerContext
	frozen  bool // its session's clock stands: see delay
	wrote   bool // its statement was no query, and may have locked something

	arrived chan struct{} // before a statement
	proceed chan struct{}
	ended   chan struct{} // it has no more statements
}

func newPlayer(b bench) *player {
	p := &player{switch_: &faultdb.Switch{}, arrived: make(chan struct{}), proceed: make(chan struct{})}
	db, err := faultdb.Open(b.Driver, b.Source, p.switch_)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	pinned, err := db.Conn(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	p.session = conn.NewSession(pinned)
	p.session.EraAt(0)
	b.Cleanup(p.session.Discard)
	if err := b.Dialect.Setup(b.Context(), p.session); err != nil {
		b.Fatal(err)
	}
	err = pinned.Raw(func(c any) error {
		p.real, _ = faultdb.Real(c).(driver.ExecerContext)
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	if b.Kind.Name == "sqlite" {
		p.set(b, `PRAGMA busy_timeout = 0`) // the other session has stopped within its transaction
	}
	return p
}

func (p *player) set(b bench, setting string) {
	if _, err := p.real.ExecContext(b.Context(), setting, nil); err != nil {
		b.Errorf("%s: %v", setting, err)
	}
}

// play runs f, which stops before each of its statements.
func (p *player) play(b bench, f func(ctx context.Context, s *conn.Session)) {
	if p.frozen {
		p.set(b, `SET timestamp = DEFAULT`)
		p.frozen = false
	}
	p.ended = make(chan struct{})
	within := false // a transaction
	p.switch_.Set(faultdb.OnFunc(faultdb.Op.Executes, faultdb.Func(func(op faultdb.Op) faultdb.Fault {
		// Of the statements within SQLite's transactions the first write takes the one lock
		// of the file, and nothing is seen before COMMIT: to stop between them is to stop
		// before COMMIT.
		if ends := op.Query == "COMMIT" || op.Query == "ROLLBACK"; !within || ends {
			p.arrived <- struct{}{}
			<-p.proceed
			p.wrote = op.Kind == faultdb.Exec
			within = op.Query == "BEGIN"
		}
		return faultdb.None
	})))
	go func() {
		defer close(p.ended)
		defer p.switch_.Set(nil)
		f(b.Context(), p.session)
	}()
}

// delay has the statement that the player has stopped before, and all that follow, begin now,
// whenever they run: MySQL and MariaDB go by the time at which a statement began, and the processor
// may be given to its thread much later.
func (p *player) delay(b bench) {
	var seconds string
	if err := b.DB.QueryRowContext(b.Context(), `SELECT UNIX_TIMESTAMP(NOW(6))`).Scan(&seconds); err != nil {
		b.Error(err)
	}
	p.set(b, `SET timestamp = `+seconds)
	p.frozen = true
}

// next waits until the player has stopped before a statement; false if it has ended.
func (p *player) next(b bench) bool {
	select {
	case <-p.arrived:
		return true
	case <-p.ended:
		return false
	case <-time.After(patience):
		panic("a statement waits for another session's")
	}
}

// step lets the player's statement run.
func (p *player) step(b bench) (more bool) {
	p.proceed <- struct{}{}
	return p.next(b)
}

// course is what became of a schedule: which players could run at each step, which did, and whether
// that changed anything. On SQLite a step that has changed nothing yet may have locked the file,
// which counts as a change.
type course struct {
	could   [][]int
	did     []int
	changed []bool
}

// follow runs players by a schedule, and beyond its end the first that can run. watch is called
// before each step, and what it returns after it, to say whether anything has changed.
func follow(b bench, players []*player, early []bool, schedule []int, watch func(player int) (seen func() bool)) (c course) {
	running := make([]bool, len(players))
	for i, p := range players {
		if running[i] = p.next(b); early[i] {
			p.delay(b)
		}
	}
	for {
		var able []int
		for i := range players {
			if running[i] {
				able = append(able, i)
			}
		}
		if len(able) == 0 {
			return c
		}
		who := able[0]
		if n := len(c.did); n < len(schedule) {
			who = schedule[n]
		}
		seen := watch(who)
		running[who] = players[who].step(b)
		changed := seen() || b.Kind.Name == "sqlite" && players[who].wrote
		c.could, c.did, c.changed = append(c.could, able), append(c.did, who), append(c.changed, changed)
	}
}

// untried are schedules that differ from one that was tried, from its nth step on, in which player
// runs next. Where two steps that changed nothing come one after the other, only one of their
// orders is gone on from: nothing tells them apart.
func (c *course) untried(n int) (more [][]int) {
	for i := n; i < len(c.did); i++ {
		for _, who := range c.could[i] {
			if who != c.did[i] {
				more = append(more, append(append([]int{}, c.did[:i]...), who))
			}
		}
		if i > 0 && c.did[i-1] > c.did[i] && !c.changed[i-1] && !c.changed[i] {
			break
		}
	}
	return more
}

// explore tries every schedule, as many at a time as there are workers. It returns how many there
// were.
func explore(workers []*worker, try func(w *worker, schedule []int) course) (tried int) {
	var mu sync.Mutex
	wake := sync.NewCond(&mu)
	todo, busy := [][]int{nil}, 0
	var wg sync.WaitGroup
	for _, w := range workers {
		wg.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			for {
				for len(todo) == 0 && busy > 0 && !w.Failed() {
					wake.Wait()
				}
				if len(todo) == 0 || w.Failed() {
					wake.Broadcast()
					return
				}
				schedule := todo[len(todo)-1]
				todo = todo[:len(todo)-1]
				busy++
				tried++
				mu.Unlock()
				c := try(w, schedule)
				mu.Lock()
				busy--
				todo = append(todo, c.untried(len(schedule))...)
				wake.Broadcast()
			}
		})
	}
	wg.Wait()
	return tried
}

// worker is tables of its own, and players on them.
type worker struct {
	bench
	players []*player
	serial  int
}

func newWorkers(t *testing.T, k testdb.Kind, n int) []*worker {
	workers := make([]*worker, n)
	for i := range workers {
		w := &worker{bench: bench{k.Open(t), t}}
		for range 3 {
			w.players = append(w.players, newPlayer(w.bench))
		}
		workers[i] = w
	}
	return workers
}

func (w *worker) prefix() string {
	w.serial++
	return fmt.Sprintf("%06d/", w.serial)
}
