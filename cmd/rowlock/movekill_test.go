package main

import (
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// slowly is an endpoint by which a command's requests reach etcd late.
func (a *app) slowly(by time.Duration) string {
	a.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	a.done(err)
	a.Cleanup(func() { _ = l.Close() })
	first, _, _ := strings.Cut(a.endpoints, ",")
	go func() {
		for near, err := l.Accept(); err == nil; near, err = l.Accept() {
			far, err := net.Dial("tcp", first)
			if err != nil {
				_ = near.Close()
				continue
			}
			go func() { _, _ = io.Copy(near, far); _ = near.Close() }()
			go func() { _, _ = io.Copy(&late{far, by}, near); _ = far.Close() }()
		}
	}()
	return l.Addr().String()
}

// late delays what is written.
type late struct {
	io.Writer
	by time.Duration
}

func (l *late) Write(p []byte) (int, error) {
	time.Sleep(l.by)
	return l.Writer.Write(p)
}

// The command is killed when the key has left the table, and before it is open in the cluster.
func TestAKillBetweenTheStepsLeavesAMoveThatTheApplicationCompletes(t *testing.T) {
	a := newBed(t, testdb.Kinds[1].Open(t)).app()
	for n := 0; n < 10 && a.completed.Load() == 0; n++ { // a busy machine kills late
		slow := a.slowly(min(30*time.Millisecond<<n, time.Second))
		key := "k" + itoa(n)
		var last lease.Token
		a.done(a.lock(key, &last).Unlock(t.Context()))
		cmd := a.command("move", key, "--etcd", slow, "--etcd-prefix", a.prefix)
		a.done(cmd.Start())
		eventually(t, "the key to leave the table", func() bool {
			rows, err := a.table.Inspect(t.Context(), lease.Filter{Keys: []string{key}})
			a.done(err)
			return rows[0].Placement == 1
		})
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		l := a.lock(key, &last)
		if l.Token()>>lease.EpochShift != 1 {
			t.Errorf("token %d is not of epoch 1", l.Token())
		}
		a.fences(l)
		a.done(l.Unlock(t.Context()))
		a.prints(0, "", key+" is in the table", a.to("recall", key)...)
		a.done(a.lock(key, &last).Unlock(t.Context()))
	}
	if a.completed.Load() == 0 {
		t.Error("no kill has left a half move")
	}
}

// Whatever step a killed command was at, the application locks the key, with growing tokens.
func TestKillsOfAMoveLeaveAKeyThatTheApplicationLocks(t *testing.T) {
	a := newBed(t, testdb.Kinds[1].Open(t)).app()
	var last lease.Token
	began := time.Now()
	a.wants(0, "", a.to("move", "k")...)
	usual := time.Since(began)
	killed := 0
	for n := 0; n < 12 && time.Since(began) < 12*time.Second; n++ {
		verb := []string{"recall", "move"}[n%2]
		cmd := a.command(a.to(verb, "k", "--timeout", "1s")...)
		a.done(cmd.Start())
		time.AfterFunc(usual/2+rand.N(usual*3/4), func() { _ = cmd.Process.Kill() })
		if cmd.Wait() != nil {
			killed++
		}
		l := a.lock("k", &last)
		a.fences(l)
		a.done(l.Unlock(t.Context()))
	}
	t.Logf("killed %d commands, of which one takes %s; the application completed %d moves", killed, usual,
		a.completed.Load())
	a.wants(0, "", a.to("recall", "k")...)
	a.prints(0, "", "state    free", "show", "k")
	a.done(a.lock("k", &last).Unlock(t.Context()))
}
