//go:build linux

package fight

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rowlockdb/rowlock/internal/attack/history"
)

// mostLives is how often a worker may be started.
const mostLives = 50

// Team is the worker processes. A killed one is started again, as its next life, with a record of
// its own.
type Team struct {
	// Sources are the data source names of the workers; none means the job's for all.
	Sources []string
	// Adapt changes a worker's job before it starts.
	Adapt func(*Job)
	// Enter is a command that runs its arguments, for each worker: in a network of its own, say.
	Enter func(worker int) []string

	folder string
	job    Job
	end    int64 // of the plan; Begin sets it

	mu      sync.Mutex
	workers []*member
	records []string // of all lives, for follow
	over    bool
	kills   int
	failed  []error
	running sync.WaitGroup
}

// member is a worker in its present life.
type member struct {
	number, life int
	cmd          *exec.Cmd
	killed       bool
}

func NewTeam(folder string, j Job, n int) *Team {
	t := &Team{folder: folder, job: j}
	for i := range n {
		t.workers = append(t.workers, &member{number: i})
	}
	return t
}

func (t *Team) Start() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range t.workers {
		if err := t.launch(m); err != nil {
			return err
		}
	}
	return nil
}

// launch starts this very program. Its servers' variables stay with it; the signal of a terminal
// does not reach it, and it does not outlive this process.
func (t *Team) launch(m *member) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	j := t.job
	j.Worker, j.Life = m.number, m.life
	if len(t.Sources) > 0 {
		j.Database.DSN = t.Sources[m.number]
	}
	if t.Adapt != nil {
		t.Adapt(&j)
	}
	j.Record = filepath.Join(t.folder, fmt.Sprintf("record-%d.%d", m.number, m.life))
	text, err := json.Marshal(j)
	if err != nil {
		return err
	}
	line := []string{self}
	if t.Enter != nil {
		line = append(t.Enter(m.number), self)
	}
	m.cmd = exec.Command(line[0], line[1:]...)
	m.cmd.Env = append(os.Environ(), JobVariable+"="+string(text))
	m.cmd.Stderr = os.Stderr
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := m.cmd.Start(); err != nil {
		return err
	}
	t.records = append(t.records, j.Record)
	cmd := m.cmd
	t.running.Go(func() { t.ended(m, cmd.Wait()) })
	return nil
}

// ended starts a worker again that was killed by us. Any other end before the last phase is a
// failure of the attack itself, or a crash of rowlock's.
func (t *Team) ended(m *member, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.over:
	case m.killed && m.life+1 < mostLives:
		m.killed = false
		m.life++
		err = t.launch(m)
		fallthrough
	default:
		if err != nil {
			t.failed = append(t.failed, fmt.Errorf("worker %d.%d: %w", m.number, m.life, err))
		}
	}
}

// Kill ends all workers for good.
func (t *Team) Kill() {
	t.mu.Lock()
	t.over = true
	for _, m := range t.workers {
		if m.cmd != nil && m.cmd.Process != nil && m.cmd.Process.Kill() == nil {
			t.kills++
		}
	}
	t.mu.Unlock()
	t.running.Wait()
}

// KillOne ends a worker with SIGKILL, and has it started again, unless it is in its last life.
func (t *Team) KillOne(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.workers[n%len(t.workers)]
	if m.life+1 == mostLives {
		return
	}
	m.killed = true
	t.kills++
	_ = m.cmd.Process.Kill()
}

// Present are the records of all lives so far.
func (t *Team) Present() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.records[:len(t.records):len(t.records)]
}

// WasKilled reports whether a worker had no time to close.
func (t *Team) WasKilled() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.kills > 0
}

// pids are the processes that run now.
func (t *Team) pids() (list []int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range t.workers {
		list = append(list, m.cmd.Process.Pid)
	}
	return list
}

// Signal sends a worker a signal. The lock keeps it from being waited for meanwhile, so that its
// number is still its own, or no process's.
func (t *Team) Signal(n int, s unix.Signal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.workers[n%len(t.workers)].cmd.Process.Signal(s)
}

// wait returns a channel that is closed when all workers have ended.
func (t *Team) wait() <-chan struct{} {
	done := make(chan struct{})
	go func() { t.running.Wait(); close(done) }()
	return done
}

// trouble is what went wrong with the processes themselves.
func (t *Team) trouble() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return errors.Join(t.failed...)
}

// tails are the records of all lives so far.
type tails map[string]*history.Tail

// read returns what is new in them.
func (t *Team) read(open tails) (events []history.Event, err error) {
	for _, path := range t.Present() {
		if open[path] == nil {
			tail, err := history.Open(path)
			if errors.Is(err, os.ErrNotExist) {
				continue // it is only starting
			}
			if err != nil {
				return nil, err
			}
			open[path] = tail
		}
		more, err := open[path].Read()
		if err != nil {
			return nil, err
		}
		events = append(events, more...)
	}
	return events, nil
}
