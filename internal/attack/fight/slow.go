//go:build linux

package fight

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// slowdown makes servers and clients slow, stops and kills them, as the plan says.
type slowdown struct {
	plan     *Plan
	team     *Team
	database string
	bridge   bool
	db       *sql.DB
	prefix   string // of the workers' tables

	mu                           sync.Mutex
	reniced, stops, kills, ended int
	refused                      bool // a thread's priority could not be set
}

// lowest is the priority of a slowed thread.
const lowest = 19

// run lasts until ctx ends. Whatever it has slowed or stopped goes on as before when it returns.
func (s *slowdown) run(ctx context.Context) {
	for n := range s.plan.Phases {
		p := &s.plan.Phases[n]
		Sleep(ctx, time.Duration(p.From-Now()))
		inPhase, cancel := context.WithTimeout(ctx, time.Duration(p.To-Now()))
		var wg sync.WaitGroup
		for _, f := range []struct {
			name string
			is   bool
			run  func(context.Context, slow, *rand.Rand)
		}{
			{"renice", p.Slow.Renice > 0, s.renice},
			{"stop server", p.Slow.Stop > 0, s.stopServers},
			{"stop client", p.Slow.Stop > 0, s.stopClients},
			{"kill", p.Slow.Kill > 0, s.killClients},
			{"end", p.Slow.End > 0, s.endSessions},
		} {
			if f.is {
				wg.Go(func() { f.run(inPhase, p.Slow, s.plan.Stream(f.name, n)) })
			}
		}
		wg.Wait()
		Sleep(inPhase, time.Hour) // a calm phase
		cancel()
	}
}

// renice has some random threads of the servers run at the lowest priority, others every time. Of a
// busy processor they still get a share; the idle ones get what no other thread wants. SQLite has
// no server: there it is the clients' threads.
//
// All threads go on as before then, and not those alone. One that a slowed thread has started is as
// slow, and on a machine that does much else it could stand still with a lock of the file.
func (s *slowdown) renice(ctx context.Context, how slow, rng *rand.Rand) {
	for ctx.Err() == nil {
		all := s.threads()
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		some := all[:min(how.Renice, len(all))]
		n := max(len(some)-how.Idle, 0)
		s.each(some[:n], func(id int) error { return unix.Setpriority(unix.PRIO_PROCESS, id, lowest) })
		s.each(some[n:], func(id int) error { return schedule(id, unix.SCHED_IDLE) })
		s.countReniced(len(some))
		Sleep(ctx, how.Every)
		s.each(s.threads(), func(id int) error { return schedule(id, unix.SCHED_NORMAL) })
	}
}

// schedule sets a thread's scheduling policy, with the usual priority.
func schedule(id int, policy uint32) error {
	return unix.SchedSetAttr(id, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: policy}, 0)
}

// each slows threads, or ends that. It says so once if that is not allowed.
func (s *slowdown) each(threads []int, f func(id int) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range threads {
		switch err := f(id); {
		case err == nil, errors.Is(err, unix.ESRCH): // or it has ended
		case !s.refused:
			s.refused = true
			fmt.Printf("attack: RENICE IS NOT ALLOWED (%v): SERVER THREADS ARE NOT SLOWED; only processes of ours are stopped. Run as root.\n", err)
		}
	}
}

// stopServers stops some server processes for some milliseconds, now and then: up to half of
// PostgreSQL's, which has one for each connection, and all of a server that is one process.
func (s *slowdown) stopServers(ctx context.Context, how slow, rng *rand.Rand) {
	for {
		Sleep(ctx, how.between(rng))
		if ctx.Err() != nil {
			return
		}
		all := s.servers()
		if len(all) == 0 {
			return
		}
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		some := all[:1+rng.IntN((len(all)+1)/2)]
		for _, pid := range some {
			_ = unix.Kill(pid, unix.SIGSTOP)
		}
		time.Sleep(how.pause(rng)) // not until ctx ends: it is short, and the servers must go on
		for _, pid := range some {
			_ = unix.Kill(pid, unix.SIGCONT)
		}
		s.count(&s.stops)
	}
}

// stopClients does the same to worker processes.
func (s *slowdown) stopClients(ctx context.Context, how slow, rng *rand.Rand) {
	for {
		Sleep(ctx, how.between(rng))
		if ctx.Err() != nil {
			return
		}
		n := rng.IntN(len(s.team.workers))
		s.team.Signal(n, unix.SIGSTOP)
		time.Sleep(how.pause(rng))
		s.team.Signal(n, unix.SIGCONT)
		s.count(&s.stops)
	}
}

// killClients kills a worker process, which is started again.
func (s *slowdown) killClients(ctx context.Context, how slow, rng *rand.Rand) {
	for {
		Sleep(ctx, how.Kill/2+time.Duration(rng.Int64N(int64(how.Kill))))
		if ctx.Err() != nil {
			return
		}
		s.team.KillOne(rng.IntN(len(s.team.workers)))
		s.count(&s.kills)
	}
}

func (s *slowdown) countReniced(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reniced += n
}

func (s *slowdown) count(n *int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*n++
}

func (s *slowdown) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("%d threads reniced, %d stops, %d kills, %d sessions ended", s.reniced, s.stops, s.kills, s.ended)
}

func (s slow) between(rng *rand.Rand) time.Duration {
	return s.Between/2 + time.Duration(rng.Int64N(int64(s.Between)))
}

func (s slow) pause(rng *rand.Rand) time.Duration {
	return time.Millisecond + time.Duration(rng.Int64N(int64(s.Stop)))
}
