package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

const memberCommand = "member" // the first argument of the process that is an etcd

// memberProcess is one that is an etcd. It ends when its standard input does, and so with us, however we end.
type memberProcess struct {
	cmd      *exec.Cmd
	stdin    io.Closer
	stderr   bytes.Buffer
	endpoint string
}

// startMember starts this very program once more, as an etcd, and returns when that can be used.
func startMember() (m *memberProcess, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	m = &memberProcess{cmd: exec.Command(self, memberCommand)}
	m.cmd.Stderr = &m.stderr
	stdout, err := m.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if m.stdin, err = m.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := m.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("it said no endpoint: %w", err), m.Close())
	}
	m.endpoint = strings.TrimSpace(line)
	return m, nil
}

// Close lets the process end by itself, which removes its data.
func (m *memberProcess) Close() error {
	_ = m.stdin.Close()
	if err := m.cmd.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(m.stderr.Bytes()))
	}
	return nil
}

// member is that process's life: it says its endpoint, and waits for the end of its input. Ctrl-C is for its parent.
func member(context.Context, []string) (err error) {
	signal.Ignore(syscall.SIGPIPE) // nobody may be left to hear its last words, and its data are to be removed all the same
	folder, err := os.MkdirTemp("", "rowlock-against-etcd-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	e, err := embed.StartEtcd(memberConfig(folder))
	if err != nil {
		return err
	}
	defer e.Close()
	select {
	case <-e.Server.ReadyNotify():
	case <-time.After(30 * time.Second):
		return errors.New("not ready within 30 s")
	}
	fmt.Println(e.Clients[0].Addr())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// memberConfig is etcd's default, which writes to the disk before it answers, on ports that are free.
func memberConfig(folder string) *embed.Config {
	c := embed.NewConfig()
	c.Dir, c.LogLevel, c.LogOutputs = folder, "error", []string{"stderr"}
	any := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c.ListenClientUrls, c.AdvertiseClientUrls, c.ListenPeerUrls, c.AdvertisePeerUrls = any, any, any, any
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	return c
}
