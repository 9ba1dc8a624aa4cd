package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/internal/ports"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
)

const startTimeout = 30 * time.Second

// members is an etcd of three processes, each this very program once more.
type members struct {
	folder  string
	running []*running
}

type running struct {
	name, client string
	cmd          *exec.Cmd
	stdin        io.Closer
	out          *bufio.Reader
	stderr       bytes.Buffer
}

// startMembers returns when the cluster can be used. The ports were free a moment ago, which is no
// promise: it tries again.
func startMembers(ctx context.Context) (m *members, err error) {
	for range 3 {
		if m, err = tryMembers(ctx); err == nil || ctx.Err() != nil {
			break
		}
	}
	if err == nil {
		return m, nil
	}
	return nil, fmt.Errorf("etcd: %w", err)
}

func tryMembers(ctx context.Context) (m *members, err error) {
	m = new(members)
	if m.folder, err = os.MkdirTemp("", "rowlock-hotkey-etcd-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.close())
		}
	}()
	free, err := ports.Free(6)
	if err != nil {
		return nil, err
	}
	var all []string
	for i, peer := range free[3:] {
		all = append(all, fmt.Sprintf("m%d=http://%s", i+1, peer))
	}
	for i := range 3 {
		s := seat{m.folder, fmt.Sprintf("m%d", i+1), free[i], free[3+i], strings.Join(all, ",")}
		if err := m.start(s); err != nil {
			return nil, err
		}
	}
	return m, m.ready(ctx)
}

func (m *members) start(s seat) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	r := &running{name: s.name, client: s.client, cmd: exec.Command(self, memberCommand)}
	r.cmd.Stderr = &r.stderr
	stdin, err := r.cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := r.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := r.cmd.Start(); err != nil {
		return err
	}
	r.stdin, r.out = stdin, bufio.NewReader(stdout)
	m.running = append(m.running, r)
	_, err = fmt.Fprintln(stdin, s)
	return err
}

// ready waits until every member says that it is. If ctx ends, or one of them does, all are ended:
// two could wait for a third for long.
func (m *members) ready(ctx context.Context) error {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(waiting, func() {
		for _, r := range m.running {
			_ = r.cmd.Process.Kill()
		}
	})
	defer stop() // before cancel
	var all errgroup.Group
	for _, r := range m.running {
		all.Go(func() error {
			_, err := r.out.ReadString('\n')
			if err != nil {
				cancel()
			}
			return err
		})
	}
	switch err := all.Wait(); {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("a member did not start: %s", m.logged())
	}
	return nil
}

// logged ends all members and returns what they have said.
func (m *members) logged() string {
	var all []string
	for _, r := range m.running {
		all = append(all, r.name+": "+r.kill())
	}
	return strings.Join(all, "\n")
}

// kill ends a member with -9, as a power cut would, and returns what it has logged.
func (r *running) kill() string {
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
	_ = r.stdin.Close()
	return strings.TrimSpace(r.stderr.String())
}

// close ends those that are left. They have nothing to say to each other any more.
func (m *members) close() error {
	for _, r := range m.running {
		r.kill()
	}
	return os.RemoveAll(m.folder)
}

func (m *members) endpoints() (all []string) {
	for _, r := range m.running {
		all = append(all, r.client)
	}
	return all
}

func (m *members) pids() string {
	var all []string
	for _, r := range m.running {
		all = append(all, fmt.Sprint(r.cmd.Process.Pid))
	}
	return strings.Join(all, ", ")
}

// connect returns a client that leaves a member that does not answer for another. It logs nothing:
// we have killed that member.
func (m *members) connect() (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints: m.endpoints(), DialTimeout: 5 * time.Second, Logger: zap.NewNop(),
		DialKeepAliveTime: 2 * time.Second, DialKeepAliveTimeout: time.Second,
	})
}

// leader returns the member whose death the others must notice, and elect another.
func (m *members) leader(ctx context.Context, client *clientv3.Client) (*running, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		for _, r := range m.running {
			s, err := client.Status(ctx, r.client)
			if err == nil && s.Leader == s.Header.MemberId {
				return r, nil
			}
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("etcd: no member leads: %w", ctx.Err())
		case <-time.After(50 * time.Millisecond): // no member leads during an election
		}
	}
}
