package main

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/examples/internal/program"
	"github.com/rowlockdb/rowlock/examples/internal/source"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

var binary string

func TestMain(m *testing.M) { program.Main(m, &binary) }

// workers are processes of one schedule, heard through one channel.
type workers struct {
	*testing.T
	ctx    context.Context
	source string
	events chan event
	by     map[string]*exec.Cmd
}

func startWorkers(t *testing.T, source string, names ...string) *workers {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	w := &workers{t, ctx, source, make(chan event), make(map[string]*exec.Cmd)}
	for _, name := range names {
		w.start(name)
	}
	return w
}

func (w *workers) start(name string) {
	w.Helper()
	cmd := exec.CommandContext(w.ctx, binary, "-db", w.source, "-name", name, "-schedule", "* * * * * *", "-takes", "300ms")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		w.Fatal(err)
	}
	w.by[name] = cmd
	w.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	go func() {
		for lines := json.NewDecoder(out); ; {
			var e event
			if lines.Decode(&e) != nil {
				return
			}
			select {
			case w.events <- e:
			case <-w.ctx.Done():
				return
			}
		}
	}()
}

func (w *workers) next() event {
	w.Helper()
	select {
	case e := <-w.events:
		if e.What == "failed" {
			w.Fatalf("worker %s: %s", e.Worker, e.By)
		}
		return e
	case <-w.ctx.Done():
		w.Fatal("nothing more is heard of the workers")
		return event{}
	}
}

func TestEachTickIsRunOnceAndACrashIsPickedUp(t *testing.T) {
	for _, k := range testdb.Drawn(t, testdb.Kinds) {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			w := startWorkers(t, program.Fresh(t, k), "a", "b", "c", "d")
			runs, done := make(map[int64][]string), make(map[int64]string)
			var victim int64
			// A worker that was killed too late has done its tick, and may not have said so: then
			// another is killed, in a later tick.
			late := func(at int64, by string) {
				if at == victim && by == runs[at][0] {
					victim, done[at] = 0, by
				}
			}
			for len(done) < 5 || done[victim] == "" {
				e := w.next()
				at := e.Tick.Unix()
				switch e.What {
				case "runs":
					runs[at] = append(runs[at], e.Worker)
					if len(runs) >= 3 && victim == 0 {
						victim = at
						_ = w.by[e.Worker].Process.Kill()
					}
				case "done":
					if by := done[at]; by != "" {
						t.Errorf("%v was done by %s and by %s", e.Tick, by, e.Worker)
					}
					done[at] = e.Worker
					late(at, e.Worker)
				case "skipped":
					if done[at] != "" && done[at] != e.By {
						t.Errorf("%v was done by %s, and %s was told %s", e.Tick, done[at], e.Worker, e.By)
					}
					late(at, e.By)
				}
			}
			for at, by := range runs {
				if want := map[bool]int{true: 2, false: 1}[at == victim]; len(by) != want {
					t.Errorf("tick %d was run by %v", at, by)
				}
			}
			if by := runs[victim]; done[victim] == "" || done[victim] == by[0] {
				t.Errorf("the tick of the killed %v was done by %q", by, done[victim])
			}
			at := slices.Sorted(maps.Keys(done))
			if last := at[len(at)-1]; last != at[0]+int64(len(at))-1 {
				t.Errorf("the ticks %v were done, and there is one every second: some were left out", at)
			}
			w.wantRecorded(done)
		})
	}
}

// wantRecorded compares with what the database says was run.
func (w *workers) wantRecorded(done map[int64]string) {
	w.Helper()
	db, err := source.Open(w.ctx, w.source)
	if err != nil {
		w.Fatal(err)
	}
	defer db.Close()
	for at, by := range done {
		var recorded []string
		if err := db.Select(&recorded, db.Rebind(`SELECT ran_by FROM cron_runs WHERE tick = ?`), at); err != nil {
			w.Fatal(err)
		}
		if len(recorded) != 1 || recorded[0] != by {
			w.Errorf("tick %d was done by %s and is recorded as of %v", at, by, recorded)
		}
	}
}

// A worker that comes to a tick after it was run, as after a restart, does nothing.
func TestATickThatHasBeenRunIsSkipped(t *testing.T) {
	t.Parallel()
	name := program.Fresh(t, testdb.Kinds[0])
	db, err := source.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	yesterday := worker{db: db}
	if err := yesterday.open(t.Context(), "cron_"); err != nil {
		t.Fatal(err)
	}
	defer yesterday.locks.Close()
	soon := time.Now().Truncate(time.Second)
	for i := range 30 {
		if _, err := db.Exec(`INSERT INTO cron_runs (job, tick, ran_by) VALUES (?, ?, 'yesterday')`, job, soon.Add(time.Duration(i)*time.Second).Unix()); err != nil {
			t.Fatal(err)
		}
	}
	w := startWorkers(t, name, "late")
	for range 2 {
		if e := w.next(); e.What != "skipped" || e.By != "yesterday" {
			t.Errorf("%+v", e)
		}
	}
}

func TestTheProgramShowsIt(t *testing.T) {
	t.Parallel()
	for _, k := range testdb.Drawn(t, testdb.Kinds) {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			db := program.Fresh(t, k)
			show := func() (*program.Run, []byte, error) {
				p := program.New(t, binary, "-db", db, "-ticks", "4", "-schedule", "* * * * * *", "-takes", "100ms")
				out, err := p.Output()
				return p, out, err
			}
			p, out, err := show()
			// A machine with other work may kill the worker when it is done, and leave nothing to pick up.
			for try := 1; try < 5 && err == nil && !strings.Contains(string(out), "picks up what"); try++ {
				p, out, err = show()
			}
			for _, want := range []string{"is killed (SIGKILL) in the middle", "picks up what", "✓ 4 ticks, each done once."} {
				if err != nil || !strings.Contains(string(out), want) {
					t.Errorf("%v; the output lacks %q:\n%s\n%s", err, want, out, p.Stderr.String())
				}
			}
			p.LeavesNothing(t)
			program.LeavesNoTables(t, db)
		})
	}
}

func TestWrongFlagsAreRefused(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"-schedule often":            `"often" is none`,
		"-processes 1":               "-processes is 2 to 26",
		"-processes 27":              "-processes is 2 to 26",
		"-name x":                    "-name wants a -db",
		"extra":                      `"extra" is no flag`,
		"-schedule 0~0~0~30~2~*":     "has ended", // the thirtieth of February
		"-db no/such/folder/cron.db": "the folder no/such/folder is missing",
	} {
		p := program.New(t, binary, strings.Split(strings.ReplaceAll(args, " ", "\n"), "\n")...)
		for i, arg := range p.Args {
			p.Args[i] = strings.ReplaceAll(arg, "~", " ")
		}
		_, err := p.Output()
		if err == nil || !strings.Contains(p.Stderr.String(), want) {
			t.Errorf("%s: %v, said %q, want %q", args, err, p.Stderr.String(), want)
		}
		p.LeavesNothing(t)
	}
}

func TestABrokenPromiseIsAnError(t *testing.T) {
	t.Parallel()
	w := &watcher{out: io.Discard, begun: make(map[time.Time]string), done: make(map[time.Time]string), killed: "C"}
	for _, c := range []struct {
		event
		bad bool
	}{
		{event{"A", time.Time{}, "done", ""}, false},
		{event{"C", time.Time{}, "ended", ""}, false},
		{event{"B", time.Time{}, "done", ""}, true},
		{event{"B", time.Time{}, "ended", ""}, true},
		{event{"B", time.Time{}, "failed", "why"}, true},
	} {
		if err := w.heard(c.event); (err != nil) != c.bad {
			t.Errorf("%+v: %v", c.event, err)
		}
	}
}
