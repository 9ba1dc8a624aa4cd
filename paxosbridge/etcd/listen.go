package etcd

import (
	"context"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/rowlockdb/rowlock/internal/retry"
	"github.com/rowlockdb/rowlock/lease"
)

// Listen calls heard with each key whose lease was released or has ended. See [lease.Notifier]. It
// leaves a member that has not answered for 3 s for another.
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
		if retry.Sleep(ctx, pause.NextBackOff()) {
			continue
		}
		if c.ctx.Err() != nil {
			return fmt.Errorf("%w: listen", lease.ErrClosed)
		}
		return ctx.Err()
	}
}

// Announce does nothing, because etcd notifies listeners itself.
func (c *Cluster) Announce(context.Context, []string) error { return nil }

// watch passes on one stream until that ends or falls silent. The stream has a watcher of its own,
// because one shared with other watches of the client would outlive it.
func (c *Cluster) watch(ctx context.Context, heard func(key string)) {
	var asks sync.WaitGroup
	defer asks.Wait()
	ctx, cancel := context.WithCancel(ctx)
	w := clientv3.NewWatcher(c.client)
	defer w.Close()
	defer cancel()
	// Watch returns after a member's answer; a hung member never answers.
	silent := time.AfterFunc(c.silence, cancel)
	events := w.Watch(
		ctx, c.holderOf(""), clientv3.WithPrefix(), clientv3.WithFilterPut(),
		clientv3.WithCreatedNotify(),
	)
	if !silent.Stop() {
		return
	}
	ask := time.NewTicker(c.silence / 3)
	defer ask.Stop()
	asked := 0 // since the last answer
	for {
		select {
		case resp, ok := <-events:
			if !ok || resp.Err() != nil {
				return
			}
			asked = 0
			c.notify(resp, heard)
		case <-ask.C:
			if asked++; asked > 3 {
				return
			}
			asks.Go(func() { _ = w.RequestProgress(ctx) }) // may wait for a stream, until ctx ends
		}
	}
}

func (c *Cluster) notify(resp clientv3.WatchResponse, heard func(key string)) {
	if resp.Created {
		heard("")
	}
	for _, e := range resp.Events {
		if key, ok := c.keyOf(string(e.Kv.Key)); ok {
			heard(key)
		}
	}
}
