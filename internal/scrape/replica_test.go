package scrape

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/promrowlock"
)

// watched opens a client that has metrics, and returns where its page is. What the client leaves at
// the end of a test is what a process leaves whose database has gone.
func watched(tb testing.TB, db *sql.DB, d dialect.Dialect, change ...func(*rowlock.Config)) (
	c *rowlock.Client, address string, metrics *promrowlock.Collector,
) {
	tb.Helper()
	metrics, err := promrowlock.New(promrowlock.Config{Name: "main"})
	must(tb, err)
	cfg := servertest.Config(change...)
	cfg.Hooks = metrics.Hooks()
	c, err = rowlock.Open(db, d, cfg)
	must(tb, err)
	tb.Cleanup(func() { _ = c.Close() })
	must(tb, metrics.Observe(c))
	registry := prometheus.NewRegistry()
	must(tb, registry.Register(metrics))
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	tb.Cleanup(server.Close)
	return c, strings.TrimPrefix(server.URL, "http://"), metrics
}

// TestAReplicaAtWork is another process: it holds a key until it is told to end.
func TestAReplicaAtWork(t *testing.T) {
	source, prefix, _ := strings.Cut(os.Getenv("ROWLOCK_REPLICA"), "\n")
	if prefix == "" {
		t.Skip("only for a child process")
	}
	db, err := sql.Open("pgx", source)
	must(t, err)
	defer db.Close()
	locks, address, _ := watched(t, db, postgres.New(dialect.Prefix(prefix)))
	l, err := locks.Lock(context.Background(), "replica")
	must(t, err)
	fmt.Println("serves", address)
	bufio.NewScanner(os.Stdin).Scan()
	runtime.KeepAlive(l)
}

// replica starts a process that holds the key "replica", and adds its page.
func (f *fault) replica() (p *exec.Cmd, of *target) {
	f.Helper()
	p = exec.Command(os.Args[0], "-test.run=^TestAReplicaAtWork$")
	p.Env = append(os.Environ(), "ROWLOCK_REPLICA="+f.s.Env.Source+"\n"+f.s.Env.Dialect.Names().Prefix)
	_, err := p.StdinPipe()
	must(f, err)
	out, err := p.StdoutPipe()
	must(f, err)
	p.Stderr = os.Stderr
	must(f, p.Start())
	f.Cleanup(func() {
		_ = p.Process.Kill()
		_ = p.Wait()
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if address, ok := strings.CutPrefix(lines.Text(), "serves "); ok {
			return p, f.add("replica", address)
		}
	}
	f.Fatal("the replica has ended")
	return nil, nil
}

// stop stops a process as a virtual machine or a debugger does, and returns when it stands still.
func (f *fault) stop(p *exec.Cmd) {
	f.Helper()
	must(f, p.Process.Signal(syscall.SIGSTOP))
	f.s.Eventually("the process to stand", func() bool {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Process.Pid))
		_, state, _ := strings.Cut(string(stat), ") ")
		return strings.HasPrefix(state, "T")
	})
}

// lives adds a client of this process with its page.
func (f *fault) lives(instance string, change ...func(*rowlock.Config)) *rowlock.Client {
	f.Helper()
	return f.on(f.s.Env.Pool(f), instance, change...)
}

func (f *fault) on(db *sql.DB, instance string, change ...func(*rowlock.Config)) *rowlock.Client {
	f.Helper()
	c, address, _ := watched(f, db, f.s.Env.Dialect, change...)
	f.add(instance, address)
	return c
}
