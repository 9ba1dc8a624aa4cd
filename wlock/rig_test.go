package wlock_test

import (
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/race/bubbles"
	"github.com/rowlockdb/rowlock/wlock"
	"github.com/rowlockdb/rowlock/wlock/internal/wlocktest"
)

func TestMain(m *testing.M) { bubbles.Main(m) }

const cluster = "default_key"

// newDouble starts a cluster in memory.
func newDouble(tb testing.TB) *wlocktest.Cluster {
	tb.Helper()
	c := wlocktest.New(wlocktest.Options{Nodes: 3, Groups: 15}, cluster)
	tb.Cleanup(c.Close)
	return c
}

func config(c *wlocktest.Cluster) wlock.Config {
	return wlock.Config{
		Registry: []string{c.Address}, Cluster: cluster, Dial: c.Dial, Skew: time.Millisecond,
	}
}

// patient is for tests in real time: a machine that stands still for seconds fails none of them.
func patient(cfg wlock.Config) wlock.Config {
	cfg.Timeout, cfg.Patience, cfg.Heartbeat = 20*time.Second, time.Minute, 20*time.Second
	return cfg
}

// open opens a store on a cluster, as another process would.
func open(tb testing.TB, cfg wlock.Config) *wlock.Store {
	tb.Helper()
	s, err := wlock.Open(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

func wire(key string) string { return wlocktest.Tenant(cluster) + "_" + wlock.WireKey(key) }
