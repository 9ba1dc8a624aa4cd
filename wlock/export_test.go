package wlock

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/wlock/internal/frame"
)

// EndAll has the store's own clock say that its leases on key have ended.
func (s *Store) EndAll(key string) {
	s.mu.Lock()
	var list []attempt
	for at := range s.book {
		if at.key == key {
			list = append(list, at)
		}
	}
	s.mu.Unlock()
	for _, at := range list {
		e, err := s.enter(context.Background(), at)
		if err != nil {
			panic(err)
		}
		s.mu.Lock()
		e.until, e.view.until = time.Time{}, time.Time{}
		s.mu.Unlock()
		s.leave(e)
	}
}

// RenewsAsJava has the store extend leases by RENEW.
func (s *Store) RenewsAsJava() {
	s.extend = func(ctx context.Context, a Ask) (Grant, error) {
		sent, renewed, err := s.c.RenewLock(ctx, a.Lock, a.TTL)
		if err == nil && !renewed {
			err = ErrRefused
		}
		return Grant{Lock: a.Lock, Sent: sent}, err
	}
}

// WatchAsJava watches a key as Java clients do, with a token older than that of its holder: of that
// the server tells all that wait, and forgets them.
func (c *Client) WatchAsJava(ctx context.Context, key string) error {
	l := Lock{Key: key, Owner: lease.NewOwner()}
	q, err := l.request(ctx, frame.Watch)
	if err != nil {
		return err
	}
	id, w := c.watch(l)
	defer c.unwatch(id, w, 0)
	q.Watch, q.WatchID, q.Timeout, q.Expire, q.Weight = 1, id, 1000, 1, 1
	_, err = c.ask(ctx, q, nil)
	return err
}

// Book is how many attempts the store remembers.
func (s *Store) Book() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.book)
}

// Client returns the store's client.
func (s *Store) Client() *Client { return s.c }

// WireKey is a key as the cluster has it.
func WireKey(key string) string { return wireKey(key) }

// Place is a part of routing.
var Place = place

// Order returns the groups of a topology in their order.
func Order(text string, want int) ([]int32, error) {
	t, err := parse([]byte(text))
	if err != nil {
		return nil, err
	}
	return t.order(want)
}
