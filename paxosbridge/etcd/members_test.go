//go:build linux

package etcd_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/ports"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// members are three members of a cluster of the test's own, which the test may harm.
type members struct {
	testing.TB
	program string
	folder  string
	client  []string // endpoints
	peer    []string
	running [3]*exec.Cmd
}

func startMembers(tb testing.TB) *members {
	tb.Helper()
	m := &members{TB: tb, program: given(tb, "ROWLOCK_TEST_ETCD_PROGRAM"), folder: tb.TempDir()}
	free, err := ports.Free(6)
	if err != nil {
		tb.Fatal(err)
	}
	m.client, m.peer = free[:3], free[3:]
	for i := range m.running {
		m.start(i)
	}
	tb.Cleanup(func() {
		for i := range m.running {
			m.kill(i)
			if said, _ := os.ReadFile(m.log(i)); tb.Failed() {
				tb.Logf("member %d said: %s", i, said)
			}
		}
	})
	m.answers()
	return m
}

func (m *members) start(i int) {
	m.Helper()
	var all []string
	for n, peer := range m.peer {
		all = append(all, fmt.Sprintf("m%d=http://%s", n, peer))
	}
	cmd := exec.Command(
		m.program, "--name", fmt.Sprint("m", i), "--data-dir",
		filepath.Join(m.folder, fmt.Sprint(i)), "--listen-client-urls", "http://"+m.client[i],
		"--advertise-client-urls", "http://"+m.client[i], "--listen-peer-urls", "http://"+m.peer[i],
		"--initial-advertise-peer-urls", "http://"+m.peer[i], "--initial-cluster",
		strings.Join(all, ","), "--initial-cluster-token", m.folder, "--log-level", "error",
	)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	log, err := os.OpenFile(m.log(i), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		m.Fatal(err)
	}
	defer log.Close()
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		m.Fatal(err)
	}
	m.running[i] = cmd
}

func (m *members) log(i int) string { return filepath.Join(m.folder, fmt.Sprint("log", i)) }

// kill ends a member as a power cut does. It may be stopped.
func (m *members) kill(i int) {
	if cmd := m.running[i]; cmd != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		m.running[i] = nil
	}
}

// signal sends a signal to members. After SIGSTOP it waits until they have stopped: a busy machine
// lets a thread run on for some milliseconds, in which it can still answer.
func (m *members) signal(s syscall.Signal, which ...int) {
	m.Helper()
	for _, i := range which {
		if err := m.running[i].Process.Signal(s); err != nil {
			m.Fatal(err)
		}
	}
	for _, i := range which {
		for s == syscall.SIGSTOP && !stopped(m.running[i].Process.Pid) {
			time.Sleep(time.Millisecond)
		}
	}
}

// stopped reports whether no thread of a process runs.
func stopped(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, thread := range threads {
		line, err := os.ReadFile(thread)
		_, state, _ := strings.Cut(string(line), ") ")
		if err != nil || !strings.HasPrefix(state, "T") {
			return false
		}
	}
	return true // also without /proc
}

// answers waits until every running member can do what needs a quorum.
func (m *members) answers() {
	m.Helper()
	for i, cmd := range m.running {
		if cmd == nil {
			continue
		}
		client := dialTo(m.TB, m.client[i:i+1])
		eventually(m.TB, fmt.Sprintf("member %d", i), func() bool {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_, err := client.Get(ctx, "none")
			return err == nil
		})
		_ = client.Close()
	}
}

// leader returns the leader.
func (m *members) leader(client *clientv3.Client) (which int) {
	m.Helper()
	eventually(m.TB, "a leader", func() bool {
		for i, endpoint := range m.client {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			s, err := client.Status(ctx, endpoint)
			cancel()
			if err == nil && s.Leader == s.Header.MemberId {
				which = i
				return true
			}
		}
		return false
	})
	return which
}
