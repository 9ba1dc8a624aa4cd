package wlock

import (
	"context"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// attempt is what an owner does with a key.
type attempt struct {
	key   string
	owner lease.Owner
}

func (a attempt) lock(token lease.Token) Lock {
	return Lock{Key: wireKey(a.key), Owner: a.owner, Token: token}
}

// entry is what this process knows of an attempt. Only the caller that has turn looks at it; view
// is a copy for others.
type entry struct {
	attempt
	turn chan struct{}
	refs int // callers; guarded by Store.mu

	// live says that the lease was told to its holder and has not ended: it has first as its token,
	// and the server knows it by newest. It is to be released if it is neither live nor released.
	live, released bool
	first, newest  lease.Token
	// until is when the holder must stop, and least the smallest TTL of tries whose outcome is
	// unknown: one that is carried out later sets the server's expiry to its own. See bound.
	until  time.Time
	least  time.Duration
	strays time.Time // until when such tries are remembered

	view view // guarded by Store.mu
}

// view is what others of this process are shown of a held lease.
type view struct {
	first          lease.Token
	until, granted time.Time
	note           string
}

// enter waits until no other call works on the attempt.
func (s *Store) enter(ctx context.Context, at attempt) (*entry, error) {
	s.mu.Lock()
	if len(s.book) >= s.room {
		s.tidy()
	}
	e := s.book[at]
	if e == nil {
		e = &entry{attempt: at, turn: make(chan struct{}, 1), released: true}
		s.book[at] = e
	}
	e.refs++
	s.mu.Unlock()
	select {
	case e.turn <- struct{}{}:
		return e, nil
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		e.refs--
		return nil, fmt.Errorf("rowlock: wlock: %w", ctx.Err())
	}
}

func (s *Store) leave(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	<-e.turn
	if e.refs--; e.refs == 0 && e.idle(time.Now()) {
		delete(s.book, e.attempt)
	}
}

// idle says that nothing is lost if the entry is forgotten. No call has its turn.
func (e *entry) idle(now time.Time) bool {
	return !now.Before(e.strays) && (e.released || now.After(e.until.Add(time.Minute)))
}

// tidy forgets leases that no caller has released after they were lost.
func (s *Store) tidy() {
	now := time.Now()
	for at, e := range s.book {
		if e.refs == 0 && e.idle(now) {
			delete(s.book, at)
			if s.holders[at.key] == e {
				delete(s.holders, at.key)
			}
		}
	}
	s.room = 2*len(s.book) + 64
}

// stray notes that a request may still be carried out.
func (s *Store) stray(e *entry, ttl time.Duration) {
	if e.least == 0 || ttl < e.least {
		e.least = ttl
	}
	e.strays = time.Now().Add(s.c.cfg.Patience + 2*ttl)
}

// bound refuses a lease that a try of the same owner could end early, if it is carried out later.
// Callers that ask for one TTL alone never see this.
func (e *entry) bound(ttl time.Duration) error {
	if e.least == 0 || ttl <= e.least {
		return nil
	}
	return fmt.Errorf("%w: wlock: %q: an earlier try for %s may still be carried out, and would end "+
		"a lease of %s early", lease.ErrBusy, e.key, e.least, ttl)
}

// holds notes a grant that is told to the holder, or its extension. It reports false if it came too
// late to be relied on.
func (s *Store) holds(e *entry, g Grant, ttl time.Duration, note string) bool {
	now, until := time.Now(), g.Sent.Add(ttl)
	if !now.Before(until) || e.live && !now.Before(e.until) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !e.live {
		e.first = g.Token
		e.view = view{first: g.Token, granted: now, note: note}
		s.holders[e.key] = e
	}
	e.live, e.released, e.newest = true, false, g.Token
	e.until, e.view.until = until, until
	return true
}

// ends notes that the lease is not held any more.
func (s *Store) ends(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.live = false
	if s.holders[e.key] == e {
		delete(s.holders, e.key)
	}
}

// seen returns the lease that this process holds a key with.
func (s *Store) seen(key string) (v view, owner lease.Owner, held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.holders[key]
	if e == nil {
		return view{}, lease.Owner{}, false
	}
	return e.view, e.owner, time.Now().Before(e.view.until)
}

// late returns what is called with a grant that no caller waits for any more.
//
// It waits until no call of the attempt is under way, because one of them may tell the holder of a
// smaller token: then this token is the lease's own, and a release of it would end the lease. If
// none has, each later request is granted a larger token, so that the release ends nothing else.
func (s *Store) late(at attempt) func(Grant) {
	return func(g Grant) {
		e, err := s.enter(s.c.ctx, at)
		if err != nil {
			return
		}
		defer s.leave(e)
		switch {
		case g.Token <= e.newest: // dead already, or the one that was released
		case e.live && time.Now().Before(e.until):
			e.newest = g.Token
		default:
			s.ends(e)
			e.newest = g.Token
			_, _ = s.free(s.c.ctx, e)
		}
	}
}
