package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

const memberCommand = "member" // the only argument of a process that is a member of an etcd

// seat is what a member is told in one line: the name of its folder, where it listens, and who the
// others are.
type seat struct{ folder, name, client, peer, all string }

// member is that process's life. It ends with its input, and so with its parent, however that ends.
// Ctrl-C is for its parent.
func member() int {
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	in := bufio.NewReader(os.Stdin)
	line, err := in.ReadString('\n')
	if err != nil {
		return 1 // the parent is gone
	}
	fields := strings.Fields(line)
	if len(fields) != 5 {
		fmt.Fprintf(os.Stderr, "a member was told %q\n", line)
		return 1
	}
	s := seat{fields[0], fields[1], fields[2], fields[3], fields[4]}
	if err := s.sit(in); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (s seat) String() string {
	return strings.Join([]string{s.folder, s.name, s.client, s.peer, s.all}, " ")
}

// sit serves until its input ends. Then it leaves without the ceremony of a leader who resigns, for
// which the others may be gone.
func (s seat) sit(in io.Reader) error {
	folder := filepath.Join(s.folder, s.name)
	defer func() {
		_ = os.RemoveAll(folder)
		_ = os.Remove(s.folder) // by the last one, if the parent could not
	}()
	e, err := embed.StartEtcd(s.config(folder))
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, in)
		close(ended)
	}()
	select {
	case <-e.Server.ReadyNotify():
		fmt.Println("ready")
	case <-ended:
		return nil
	case err := <-e.Err():
		return err
	case <-time.After(startTimeout):
		return errors.New("not ready in time")
	}
	select {
	case <-ended:
		return nil
	case err := <-e.Err():
		return err
	}
}

// config is etcd's default, which writes to the disk before it answers.
func (s seat) config(folder string) *embed.Config {
	at := func(address string) []url.URL { return []url.URL{{Scheme: "http", Host: address}} }
	c := embed.NewConfig()
	c.Name, c.Dir, c.LogLevel, c.LogOutputs = s.name, folder, "error", []string{"stderr"}
	c.ListenClientUrls, c.AdvertiseClientUrls = at(s.client), at(s.client)
	c.ListenPeerUrls, c.AdvertisePeerUrls = at(s.peer), at(s.peer)
	c.InitialCluster, c.InitialClusterToken = s.all, filepath.Base(s.folder)
	return c
}
