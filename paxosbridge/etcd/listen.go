package etcd

import (
	"context"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/rowlockdb/rowlock/lease"
)

// Listen calls heard with each key whose lease is released or has ended: etcd tells by itself. See [lease.Notifier]. A member that has
// said nothing for 3 s, though it was asked, is left for another.
func (c *Cluster) Listen(ctx context.Context, heard func(key string)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	pause := pauses()
	for {
		began := time.Now()
		c.watch(clientv3.WithRequireLeader(ctx), heard)
		if time.Since(began) > c.silence {
			pause.Reset()
		}
		select {
		case <-ctx.Done():
			if c.ctx.Err() != nil {
				return fmt.Errorf("%w: listen", lease.ErrClosed)
			}
			return ctx.Err()
		case <-time.After(pause.NextBackOff()):
		}
	}
}

// Announce does nothing: etcd tells of what comes free.
func (c *Cluster) Announce(context.Context, []string) error { return nil }

// watch tells what one stream tells, until that ends or falls silent. The watcher is its own: streams that are shared with other watches
// of the client would survive it.
func (c *Cluster) watch(ctx context.Context, heard func(key string)) {
	var asks sync.WaitGroup
	defer asks.Wait()
	ctx, cancel := context.WithCancel(ctx)
	w := clientv3.NewWatcher(c.client)
	defer w.Close()
	defer cancel()
	silent := time.AfterFunc(c.silence, cancel) // Watch returns when a member has answered, and one that stands still never does
	told := w.Watch(ctx, c.holders(), clientv3.WithPrefix(), clientv3.WithFilterPut(), clientv3.WithCreatedNotify())
	if !silent.Stop() {
		return
	}
	ask := time.NewTicker(c.silence / 3)
	defer ask.Stop()
	asked := 0 // since it last said something
	for {
		select {
		case resp, ok := <-told:
			if !ok || resp.Err() != nil {
				return
			}
			asked = 0
			c.tell(resp, heard)
		case <-ask.C:
			if asked++; asked > 3 {
				return
			}
			asks.Go(func() { _ = w.RequestProgress(ctx) }) // may wait for a stream, until ctx ends
		}
	}
}

func (c *Cluster) tell(resp clientv3.WatchResponse, heard func(key string)) {
	if resp.Created {
		heard("")
	}
	for _, e := range resp.Events {
		if key, ok := c.keyOf(string(e.Kv.Key)); ok {
			heard(key)
		}
	}
}
