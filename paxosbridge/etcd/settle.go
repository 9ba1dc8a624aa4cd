package etcd

import (
	"context"
	"time"
)

// serverBound is for how long an etcd server works on a request that its client has given up: 5 s for
// the proposal and two election timeouts, of 1 s each unless the server is told otherwise.
const serverBound = 7 * time.Second

// grants is write, and notes for Settle when a try that may grant had an unknown outcome.
func (c *Cluster) grants(ctx context.Context, verb, key string, try func(ctx context.Context) error) (doubtful bool, err error) {
	doubtful, err = c.write(ctx, verb, key, try)
	if doubtful {
		c.unheard.Store(time.Now().UnixNano())
	}
	return doubtful, err
}

// Settle returns when etcd has given up every request whose outcome was unknown before it was called,
// or with ctx. etcd does not say when that is: Settle waits for as long as a server may take.
func (c *Cluster) Settle(ctx context.Context) {
	last := c.unheard.Load()
	if last == 0 {
		return
	}
	select {
	case <-time.After(time.Until(time.Unix(0, last).Add(serverBound))):
	case <-ctx.Done():
	}
}
