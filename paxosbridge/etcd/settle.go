package etcd

import (
	"context"
	"time"
)

// serverBound is how long an etcd server works on a request that its client has abandoned: 5 s for
// the proposal and two election timeouts, of 1 s each unless the server is configured otherwise.
const serverBound = 7 * time.Second

// Settle returns when etcd has given up every request whose outcome was unknown before the call, or
// with ctx. etcd does not say when that is, so Settle waits for as long as a server may take.
func (c *Cluster) Settle(ctx context.Context) { c.unknown.Wait(ctx, serverBound) }
