package wlock

import (
	"cmp"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/wlock/internal/frame"
)

var (
	// ErrCluster: the registry does not know Config.Cluster. The names are compared by their hash,
	// in upper and lower case.
	ErrCluster = errors.New("wlock: the registry does not know the cluster key")
	// ErrIncomplete: the registry lists fewer groups than Config.Groups, as while a group has no
	// master. A client that went on would look for a key in another group, where it is free.
	ErrIncomplete = errors.New("wlock: the registry does not list every group")
	// ErrCorrupt and ErrTooLong: a peer has sent what is no frame, or claims one of gigabytes. The
	// connection is closed.
	ErrCorrupt = frame.ErrCorrupt
	ErrTooLong = frame.ErrTooLong
)

// Config says where a cluster is.
type Config struct {
	// Registry are addresses of the registry, host:port each. Required.
	Registry []string
	// Cluster is the name of the registry's key, as "default_key". Required.
	Cluster string
	// Groups is how many groups serve keys. Default 15, as a cluster has unless it was told
	// otherwise. Every client of a key must have the same number.
	Groups int

	// Timeout is how long one answer is waited for, because silence is an answer of WLock. Default
	// 3 s.
	Timeout time.Duration
	// Patience bounds a call with all its tries. Default 15 s: a group whose master has died has
	// none for about 11 s, in which calls wait.
	Patience time.Duration
	// Skew is by how much the clocks of two lock servers may differ. A lease is asked for that much
	// longer than its holder relies on. Default 500 ms.
	Skew time.Duration
	// Heartbeat is the time between signs of life on an idle connection. One that has shown none
	// for three is closed. Default 4 s.
	Heartbeat time.Duration
	// Poll is how often the registry is asked for changes. Default 60 s, as the Java client does.
	Poll time.Duration
	// Dial opens connections, and ends with its ctx. Default: a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

func (c Config) withDefaults() (Config, error) {
	c.Groups = cmp.Or(c.Groups, 15)
	c.Timeout, c.Patience = cmp.Or(c.Timeout, 3*time.Second), cmp.Or(c.Patience, 15*time.Second)
	c.Skew, c.Heartbeat = cmp.Or(c.Skew, 500*time.Millisecond), cmp.Or(c.Heartbeat, 4*time.Second)
	c.Poll = cmp.Or(c.Poll, time.Minute)
	if c.Dial == nil {
		c.Dial = new(net.Dialer).DialContext
	}
	switch {
	case len(c.Registry) == 0:
		return c, fmt.Errorf("%w: wlock.Config.Registry is empty: name the registry's host:port", lease.ErrConfig)
	case c.Cluster == "":
		return c, fmt.Errorf("%w: wlock.Config.Cluster is empty: name the registry's key", lease.ErrConfig)
	case c.Groups < 1 || min(c.Timeout, c.Patience, c.Skew, c.Heartbeat, c.Poll) < 0:
		return c, fmt.Errorf("%w: wlock.Config has %d Groups, and its least time is %s: leave out what is negative",
			lease.ErrConfig, c.Groups, min(c.Timeout, c.Patience, c.Skew, c.Heartbeat, c.Poll))
	}
	return c, nil
}

func has(ctx context.Context) error {
	if ctx != nil {
		return nil
	}
	return fmt.Errorf("%w: wlock: ctx is nil; pass context.Background() if nothing is to end the call", lease.ErrConfig)
}

// tenant is the hash by which the registry and the servers know the cluster's key.
func (c *Config) tenant() string {
	return strings.ToUpper(fmt.Sprintf("%x", md5.Sum([]byte(c.Cluster))))
}
