package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/cluster"
	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/rowlockdb/rowlock/paxosbridge"
	"github.com/spf13/cobra"
)

// moving is what move and recall are told.
type moving struct {
	etcd      cluster.Etcd
	placement int
	wait      time.Duration
	back      bool
}

const lastPlacement = 32766 // of paxosbridge.Config

func (p *program) move() *cobra.Command {
	return p.moves(&moving{}, "move KEY…", "Move keys out to the cluster of the application's bridge",
		"out of the table, into the etcd cluster", "back when it is cool")
}

func (p *program) recall() *cobra.Command {
	return p.moves(&moving{back: true}, "recall KEY…", "Move keys back to the table from the cluster of the "+
		"application's bridge", "back to the table, from the etcd cluster", "out again if it is hot")
}

func (p *program) moves(m *moving, use, short, where, returns string) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short, Args: cobra.MinimumNArgs(1),
		Long: long(fmt.Sprintf(`
Move keys %s of an application that has a bridge
(paxosbridge). The application goes on: a holder keeps its key, and the move waits until it is
released. Tokens go on growing. The bridge moves a key %s, unless its Pin says
that the key stays.

Give --etcd, --etcd-prefix and --placement as the application has them. Endpoints and files can be set as
for etcdctl: ETCDCTL_CACERT, ETCDCTL_CERT, ETCDCTL_KEY, ETCDCTL_USER, ETCDCTL_PASSWORD.

The exit code is 1 if a key was not moved, because it was held for all of --wait for example.`, where, returns)),
		RunE: func(c *cobra.Command, args []string) error { return p.moveKeys(c.Context(), m, args) },
	}
	flags := c.Flags()
	var given []string
	if text := os.Getenv("ROWLOCK_ETCD"); text != "" {
		given = strings.Split(text, ",")
	}
	prefix := "rowlock/"
	if text, ok := os.LookupEnv("ROWLOCK_ETCD_PREFIX"); ok {
		prefix = text
	}
	flags.StringSliceVar(&m.etcd.Endpoints, "etcd", given, "the cluster's endpoints (ROWLOCK_ETCD)")
	flags.StringVar(&m.etcd.Prefix, "etcd-prefix", prefix,
		"the application's etcd.Prefix (ROWLOCK_ETCD_PREFIX)")
	flags.StringVar(&m.etcd.CACert, "cacert", os.Getenv("ETCDCTL_CACERT"), "file: who signs etcd's certificates")
	flags.StringVar(&m.etcd.Cert, "cert", os.Getenv("ETCDCTL_CERT"), "file: our certificate for etcd")
	flags.StringVar(&m.etcd.Key, "key", os.Getenv("ETCDCTL_KEY"), "file: the key of our certificate")
	flags.StringVar(&m.etcd.User, "user", os.Getenv("ETCDCTL_USER"), "etcd's USER or USER:PASSWORD")
	flags.Lookup("user").DefValue = "" // it may have a password
	m.etcd.Password = os.Getenv("ETCDCTL_PASSWORD")
	flags.DurationVar(&m.etcd.Timeout, "timeout", 5*time.Second, "how long a call to etcd may take")
	flags.IntVar(&m.placement, "placement", 1, "the application's paxosbridge.Config.Placement")
	flags.DurationVar(&m.wait, "wait", 10*time.Second, "how long to wait for the holder of each key")
	return p.listed(c)
}

func (m *moving) check(texts []string) (keys []string, err error) {
	if err := m.etcd.Check(); err != nil {
		return nil, err
	}
	switch {
	case m.placement < 1 || m.placement > lastPlacement:
		return nil, usage("--placement %d must be 1 to %d: write the application's paxosbridge.Config.Placement",
			m.placement, lastPlacement)
	case m.wait < 0:
		return nil, usage("--wait %s is negative: write 0 to move free keys only", m.wait)
	}
	for _, text := range texts {
		key, err := keytext.Read(text)
		if err != nil {
			return nil, err
		}
		if slices.Contains(keys, key) {
			return nil, usage("key %s is named twice", keytext.Show(key))
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func (p *program) moveKeys(ctx context.Context, m *moving, texts []string) error {
	m.etcd.RequireTLS = p.settings.RequireTLS
	keys, err := m.check(texts)
	if err != nil {
		return err
	}
	p.warn(m.etcd.Warning())
	_, table, end, err := p.table(ctx)
	if err != nil {
		return err
	}
	defer end()
	j, end, err := p.journey(ctx, m, table, keys)
	if err != nil {
		return unreachable(err)
	}
	defer end()
	left := 0
	for _, key := range keys {
		a, err := j.take(ctx, key)
		if err != nil {
			return unreachable(err)
		}
		if !a.there() {
			left++
		}
		if err := p.printArrival(a); err != nil {
			return err
		}
	}
	switch {
	case left == 1:
		return &exitError{exitMissing, errors.New("1 key was not moved")}
	case left > 1:
		return &exitError{exitMissing, fmt.Errorf("%d keys were not moved", left)}
	}
	return nil
}

// journey opens the cluster and a bridge that moves nothing by itself, and whose only audit is of
// keys.
func (p *program) journey(
	ctx context.Context, m *moving, table paxosbridge.Table, keys []string,
) (*journey, func(), error) {
	etcd, end, err := m.etcd.Dial(ctx, adapter.Claim(table, m.placement))
	if err != nil {
		return nil, nil, err
	}
	named := &cluster.Named{Cluster: etcd}
	if named.List, err = cluster.Compare(ctx, table, etcd, m.placement, keys); err != nil {
		end()
		return nil, nil, err
	}
	bridge, err := paxosbridge.New(ctx, table, named, &paxosbridge.Config{
		Placement: m.placement, Every: -1, Refresh: 24 * time.Hour, MoveTimeout: m.etcd.Timeout, Logger: p.logger(),
	})
	if err != nil {
		end()
		return nil, nil, err
	}
	endTrace := p.traceMoves(ctx, table, bridge)
	j := &journey{moving: m, table: table, cluster: named, bridge: bridge}
	return j, func() { endTrace(); _ = bridge.Close(); end() }, nil
}

// unreachable gives the exit code to an error of etcd's client.
func unreachable(err error) error {
	var gone *cluster.UnreachableError
	if errors.As(err, &gone) {
		return &exitError{exitUnreachable, err}
	}
	return err
}
