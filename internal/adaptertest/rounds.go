package adaptertest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/testdb"
)

// patience is how long a worker may take on a busy machine beyond what it is to take.
const patience = 20 * time.Second

// Rounds is how many there are if they are not few: make soak has a thousand.
func Rounds(few int) int {
	if n, err := strconv.Atoi(os.Getenv("ROWLOCK_ADAPTER_ROUNDS")); err == nil {
		return n
	}
	return few
}

// heard is a line of a worker's.
type heard struct {
	from       *worker
	what, more string
}

type worker struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	inside int // when it came into the section, where it waits for the test; 0 outside
}

// scene is two workers and what is heard of them.
type scene struct {
	*testing.T
	Contest
	env     *testdb.Env
	parties []Party
	lines   chan heard
	done    chan struct{}
	workers []*worker
	entries int
	acked   map[int]int // the process that was told that a number is committed
}

// Party is how a process is started that works as those of Main do. It gets the name of the table that
// it counts in.
type Party func(t *testing.T, e *testdb.Env, counter string) *exec.Cmd

// Contend has two processes contend for a key. By turns the one that holds it is killed, the one that
// waits, and none: then two sections follow each other. In the end each number is there once, in the order of the tokens, and
// none that was acknowledged is missing.
func Contend(t *testing.T, e *testdb.Env) {
	slowest := Contest{Rounds: Rounds(20), Turns: 5 * time.Second}.Run(t, e, Go(""), Go(""))
	t.Logf("after a kill the other process held the key within %s, of which %s is the TTL",
		slowest.Round(time.Millisecond), TTL)
}

// Go is a process that Main serves.
func Go(role string) Party {
	return func(_ *testing.T, e *testdb.Env, _ string) *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), variable+"="+strings.Join(
			[]string{e.Name, e.Dialect.Names().Prefix, e.Source, role}, "\n"))
		return cmd
	}
}

// Contest is Contend among processes of several kinds.
type Contest struct {
	Rounds int
	// Turns is for how long sections follow each other in a round without a kill, until each process has
	// had two: while one is in the section, another that nothing keeps out comes in too, and writes the
	// same number when its turn has come again. There are two sections at least.
	Turns time.Duration
	// Freed is called after the end of a process that held the key, unless it is nil: it may end the
	// lease at once.
	Freed func()
}

// Run runs a contest. slowest is the longest time until another process held the key after a kill.
func (c Contest) Run(t *testing.T, e *testdb.Env, parties ...Party) (slowest time.Duration) {
	e.Exec(t, `CREATE TABLE `+counter(e)+` (n BIGINT PRIMARY KEY, token BIGINT NOT NULL, by_process BIGINT NOT NULL)`)
	s := &scene{
		T: t, env: e, Contest: c, parties: parties,
		lines: make(chan heard), done: make(chan struct{}), acked: make(map[int]int),
	}
	t.Cleanup(func() { close(s.done); e.Exec(t, `DROP TABLE `+counter(e)) })
	for _, p := range parties {
		s.workers = append(s.workers, s.start(p))
	}
	for round := range c.Rounds {
		if round%3 == 2 {
			s.passAll()
			continue
		}
		slowest = max(slowest, s.round(round%3 == 0))
	}
	s.check()
	return slowest
}

// round kills one of the workers while the other, or it, is in the section. It returns how long the
// key was held by no living process.
func (s *scene) round(holder bool) (free time.Duration) {
	s.Helper()
	inside := s.entered(nil)
	victim := s.other(inside)
	if holder {
		victim = inside
	}
	s.kill(victim)
	killed := time.Now()
	if holder {
		if s.Freed != nil {
			s.Freed()
		}
		inside = s.entered(victim)
		free = time.Since(killed)
	}
	s.pass(inside)
	i := slices.Index(s.workers, victim)
	s.workers[i] = s.start(s.parties[i])
	return free
}

// passAll has sections follow each other.
func (s *scene) passAll() {
	s.Helper()
	had := make(map[*worker]int)
	waits := func(w *worker) bool { return had[w] < 2 }
	for n, began := 0, time.Now(); n < 2 || slices.ContainsFunc(s.workers, waits) && time.Since(began) < s.Turns; n++ {
		inside := s.entered(nil)
		s.pass(inside)
		had[inside]++
	}
}

// pass has a worker finish its section.
func (s *scene) pass(inside *worker) {
	s.Helper()
	inside.inside = 0
	fmt.Fprintln(inside.in, "go on")
	for said := s.next(); said.from != inside || said.what != "out" && said.what != "refused"; {
		said = s.next()
	}
}

// entered waits until a worker is in the section: another one than was killed. Of two, which are
// there if the first has lost its lock, or if none was needed, it is the first.
func (s *scene) entered(killed *worker) *worker {
	s.Helper()
	for ; ; s.next() {
		var first *worker
		for _, w := range s.workers {
			if w.inside > 0 && w != killed && (first == nil || w.inside < first.inside) {
				first = w
			}
		}
		if first != nil {
			return first
		}
	}
}

func (s *scene) next() heard {
	s.Helper()
	select {
	case said := <-s.lines:
		switch said.what {
		case "in":
			s.entries++
			said.from.inside = s.entries
		case "failed":
			s.Fatalf("a worker: %s", said.more)
		case "refused":
			s.Logf("a worker was refused: %s", said.more)
		case "out":
			n, _ := strconv.Atoi(said.more)
			s.acked[n] = said.from.cmd.Process.Pid
		}
		return said
	case <-time.After(TTL + patience):
		s.Fatal("no worker holds the key")
		return heard{}
	}
}

// other is one that does not hold the key.
func (s *scene) other(w *worker) *worker {
	return s.workers[(slices.Index(s.workers, w)+1)%len(s.workers)]
}

func (s *scene) start(p Party) *worker {
	s.Helper()
	cmd := p(s.T, s.env, counter(s.env))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		s.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	w := &worker{cmd: cmd, in: in}
	s.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	go s.listen(w, out)
	return w
}

func (s *scene) listen(w *worker, out io.Reader) {
	for in := bufio.NewScanner(out); in.Scan(); {
		line, ok := strings.CutPrefix(in.Text(), "worker: ")
		if !ok {
			continue
		}
		what, more, _ := strings.Cut(line, " ")
		select {
		case s.lines <- heard{w, what, more}:
		case <-s.done:
			return
		}
	}
}

// kill is kill -9.
func (s *scene) kill(w *worker) { _ = w.cmd.Process.Kill() }

// check compares what is counted with what was acknowledged.
func (s *scene) check() {
	s.Helper()
	rows, err := s.env.DB.Query(`SELECT n, token, by_process FROM ` + counter(s.env) + ` ORDER BY n`)
	if err != nil {
		s.Fatal(err)
	}
	defer rows.Close()
	counted, last := 0, int64(0)
	for rows.Next() {
		var n, by int
		var token int64
		if err := rows.Scan(&n, &token, &by); err != nil {
			s.Fatal(err)
		}
		counted++
		if n != counted || token < last && token > 0 { // some locks have no token
			s.Errorf("the number %d is the %d. one, with token %d after %d", n, counted, token, last)
		}
		if pid, ok := s.acked[n]; ok && pid != by {
			s.Errorf("process %d was told that it wrote %d, which is of %d", pid, n, by)
		}
		delete(s.acked, n)
		last = max(last, token)
	}
	if err := rows.Err(); err != nil {
		s.Fatal(err)
	}
	if counted == 0 || len(s.acked) > 0 {
		s.Errorf("%d numbers are there, and of those acknowledged these are missing: %v", counted, s.acked)
	}
}
