package failover

import (
	"context"
	"net"
	"sync"
)

// route is where one name leads: a DNS that changes, and a count of the connections that servers
// have accepted.
type route struct {
	mu       sync.Mutex
	to       string
	accepted map[string]int
}

func newRoute(to string) *route { return &route{to: to, accepted: make(map[string]int)} }

func (r *route) change(to string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to = to
}

func (r *route) now() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.to
}

// lookup is a resolver whose answer changes. The answer has the port too.
func (r *route) lookup(context.Context, string) ([]string, error) { return []string{r.now()}, nil }

// dial connects to address, and counts.
func (r *route) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.accepted[address]++
	}
	return conn, err
}

// resolve is dial to where the name leads now.
func (r *route) resolve(ctx context.Context, network, _ string) (net.Conn, error) {
	return r.dial(ctx, network, r.now())
}

func (r *route) count(address string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.accepted[address]
}
