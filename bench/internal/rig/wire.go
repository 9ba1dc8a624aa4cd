package rig

import (
	"context"
	"net"
	"sync/atomic"
	"time"
)

// Wire counts the round trips of the connections that it dials: how often an answer came after
// something was sent. It counts below the driver, so that what is sent at once counts once,
// whichever way a library sends it.
type Wire struct{ trips atomic.Int64 }

// Trips is the number of round trips so far. A nil Wire has none.
func (w *Wire) Trips() int64 {
	if w == nil {
		return 0
	}
	return w.trips.Load()
}

// Dial connects as drivers do by themselves.
func (w *Wire) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return w.DialWith(ctx, &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 5 * time.Minute}, network, address)
}

// DialWith connects by a dialer.
func (w *Wire) DialWith(ctx context.Context, d *net.Dialer, network, address string) (net.Conn, error) {
	c, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		return &counted{TCPConn: tcp, wire: w}, nil
	}
	return c, nil
}

// counted is a TCP connection and not any net.Conn: drivers look at its file to see whether the
// server has closed it.
type counted struct {
	*net.TCPConn
	wire *Wire
	sent atomic.Bool // and not answered
}

// Write takes down that something was sent before it is sent: the answer may be read by another
// goroutine before Write returns.
func (c *counted) Write(b []byte) (int, error) {
	c.sent.Store(true)
	return c.TCPConn.Write(b)
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	if n > 0 && c.sent.CompareAndSwap(true, false) {
		c.wire.trips.Add(1)
	}
	return n, err
}
