// Package far makes a server of this machine as far away as users have theirs: connections to it go
// through a process that keeps what passes, either way, for so long. It cuts and counts nothing:
// rig.Wire counts round trips where the client sends.
//
// A network namespace with netem would do the same for root alone, on kernels that have it.
package far

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// Place is a server and how far away it shall be, each way.
type Place struct {
	Address string
	Delay   time.Duration
}

// Network is the process that delays. It is one of its own so that what it does costs the measured
// process nothing, and so that its sleeping threads keep no processor from that one.
type Network struct {
	team rig.Team
	// At are the addresses of the places as they are seen from afar, in their order.
	At []string
}

// Open starts the process. A worker of this program that is told job must call Serve.
func Open(ctx context.Context, job any) (*Network, error) {
	n := new(Network)
	var err error
	if n.team, err = rig.StartTeam(ctx, 1, job); err == nil {
		err = n.team.Hear(func(int) any { return &n.At })
	}
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

// Close ends the process, and with it all connections through it.
func (n *Network) Close() error { return n.team.End() }

// listen opens a port for each place.
func listen(places []Place) (all []net.Listener, at []string, err error) {
	for range places {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return all, nil, fmt.Errorf("far: %w", err)
		}
		all, at = append(all, l), append(at, l.Addr().String())
	}
	return all, at, nil
}
