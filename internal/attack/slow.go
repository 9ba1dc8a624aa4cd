//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// slowdown makes servers and clients slow, stops and kills them, as the plan says.
type slowdown struct {
	plan     *plan
	team     *team
	database string
	bridge   bool

	mu                    sync.Mutex
	reniced, stops, kills int
	refused               bool // a thread's priority could not be set
}

// lowest is the priority of a slowed thread.
const lowest = 19

// run lasts until ctx ends. Whatever it has slowed or stopped goes on as before when it returns.
func (s *slowdown) run(ctx context.Context) {
	for n := range s.plan.Phases {
		p := &s.plan.Phases[n]
		sleep(ctx, time.Duration(p.From-now()))
		inPhase, cancel := context.WithTimeout(ctx, time.Duration(p.To-now()))
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
		} {
			if f.is {
				wg.Go(func() { f.run(inPhase, p.Slow, s.plan.stream(f.name, n)) })
			}
		}
		wg.Wait()
		sleep(inPhase, time.Hour) // a calm phase
		cancel()
	}
}

// renice has some random threads of the servers run at the lowest priority, others every time. SQLite has
// no server: there it is the clients'.
func (s *slowdown) renice(ctx context.Context, how slow, rng *rand.Rand) {
	for ctx.Err() == nil {
		all := s.threads()
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		some := all[:min(how.Renice, len(all))]
		s.setPriority(some, lowest)
		sleep(ctx, how.Every)
		s.setPriority(some, 0)
	}
}

func (s *slowdown) setPriority(threads []int, nice int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range threads {
		switch err := unix.Setpriority(unix.PRIO_PROCESS, id, nice); err {
		case nil:
			s.reniced++
		case unix.ESRCH: // it has ended
		default:
			if !s.refused {
				s.refused = true
				fmt.Printf("attack: RENICE IS NOT ALLOWED (%v): SERVER THREADS ARE NOT SLOWED; only processes of ours are stopped. Run as root.\n", err)
			}
		}
	}
}

// stopServers stops a server process for some milliseconds, now and then.
func (s *slowdown) stopServers(ctx context.Context, how slow, rng *rand.Rand) {
	for {
		sleep(ctx, how.between(rng))
		if ctx.Err() != nil {
			return
		}
		all := s.servers()
		if len(all) == 0 {
			return
		}
		pid := all[rng.IntN(len(all))]
		if unix.Kill(pid, unix.SIGSTOP) != nil {
			continue
		}
		time.Sleep(how.pause(rng)) // not until ctx ends: it is short, and the server must go on
		_ = unix.Kill(pid, unix.SIGCONT)
		s.count(&s.stops)
	}
}

// stopClients does the same to worker processes.
func (s *slowdown) stopClients(ctx context.Context, how slow, rng *rand.Rand) {
	for {
		sleep(ctx, how.between(rng))
		if ctx.Err() != nil {
			return
		}
		n := rng.IntN(len(s.team.workers))
		s.team.signal(n, unix.SIGSTOP)
		time.Sleep(how.pause(rng))
		s.team.signal(n, unix.SIGCONT)
		s.count(&s.stops)
	}
}

// killClients kills a worker process, which is started again.
func (s *slowdown) killClients(ctx context.Context, how slow, rng *rand.Rand) {
	for {
		sleep(ctx, how.Kill/2+time.Duration(rng.Int64N(int64(how.Kill))))
		if ctx.Err() != nil {
			return
		}
		s.team.killOne(rng.IntN(len(s.team.workers)))
		s.count(&s.kills)
	}
}

func (s *slowdown) count(n *int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*n++
}

func (s *slowdown) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("%d threads reniced, %d stops, %d kills", s.reniced/2, s.stops, s.kills)
}

func (s slow) between(rng *rand.Rand) time.Duration {
	return s.Between/2 + time.Duration(rng.Int64N(int64(s.Between)))
}

func (s slow) pause(rng *rand.Rand) time.Duration {
	return time.Millisecond + time.Duration(rng.Int64N(int64(s.Stop)))
}
