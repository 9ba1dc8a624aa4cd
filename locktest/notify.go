package locktest

import (
	"bytes"
	"context"
	"errors"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

var notifyProperties = []property{
	{"whoever begins to listen is told that any key may be free", listenBegins},
	{"a listener hears what another process announces", listenHears},
	{"an announcement is of all its keys", listenHearsAll},
	{"to listen ends with its context and leaves nothing running", listenEnds},
}

// ear is a goroutine that listens on a store.
type ear struct {
	*rig
	end  context.CancelFunc
	done chan error

	mu   sync.Mutex
	what []string
	lost int // announcements that were not heard in time
}

// An announcement may be lost, so that it is made again after a while. Not each may be lost.
const (
	inTime   = 10 * time.Second
	mostLost = 1
)

// listen begins to listen, and returns after the first call. The goroutine and all it starts are
// labeled.
func (r *rig) listen(s lease.Store, label string) *ear {
	r.Helper()
	n := r.notifier(s)
	ctx, cancel := context.WithCancel(r.ctx)
	e := &ear{rig: r, end: cancel, done: make(chan error, 1)}
	go pprof.Do(ctx, pprof.Labels("locktest", label), func(ctx context.Context) { e.done <- n.Listen(ctx, e.hear) })
	r.Cleanup(cancel)
	r.eventually("the first call of a listener", func() bool {
		select {
		case err := <-e.done:
			if errors.Is(err, lease.ErrUnsupported) {
				r.Skip("the store has nothing to listen to")
			}
			r.Fatalf("listen: %v", err)
		default:
		}
		return len(e.heard()) > 0
	})
	return e
}

func (r *rig) notifier(s lease.Store) lease.Notifier { return able[lease.Notifier](r, s) }

func (e *ear) hear(key string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.what = append(e.what, key)
}

func (e *ear) heard() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.what)
}

// hears waits for a key to be heard, or "" in its place, after the first n that were. It announces
// what may have been lost again.
func (e *ear) hears(n int, key string, announced ...string) {
	e.Helper()
	last := time.Now()
	e.eventually("an announcement", func() bool {
		if time.Since(last) > inTime {
			last = time.Now()
			if e.lost++; e.lost > mostLost {
				e.Fatalf("%d announcements were not heard within %s", e.lost, inTime)
			}
			e.announce(announced...)
		}
		heard := e.heard()[n:]
		return slices.Contains(heard, key) || slices.Contains(heard, "")
	})
}

func (e *ear) stop() error {
	e.Helper()
	e.end()
	select {
	case err := <-e.done:
		return err
	case <-e.ctx.Done():
		e.Fatal("a listener goes on after its context has ended")
		return nil
	}
}

func (r *rig) announce(keys ...string) {
	r.Helper()
	if err := r.notifier(r.there()).Announce(r.ctx, keys); err != nil {
		r.Fatalf("announce %q: %v", keys, err)
	}
}

func listenBegins(r *rig) {
	e := r.listen(r.here, "begins")
	if heard := e.heard(); heard[0] != "" {
		r.Errorf("the first that is heard is %q, want \"\"", heard)
	}
	_ = e.stop()
}

// listenHears releases too, because some stores need no announcement.
func listenHears(r *rig) {
	e := r.listen(r.here, "hears")
	for _, key := range []string{"k", "\x00\xff'\"", strings.Repeat("x", lease.MaxKey)} {
		l := r.takeThere(key)
		n := len(e.heard())
		r.releaseThere(l)
		r.announce(key)
		e.hears(n, key, key)
	}
	_ = e.stop()
}

func (r *rig) takeThere(key string) lease.Lease {
	r.Helper()
	owner := lease.NewOwner()
	a := r.try(r.there(), key, owner)
	if !a.Granted {
		r.Fatalf("acquire %q: refused, though it is free", key)
	}
	return lease.Lease{Key: key, Owner: owner, Token: a.Token}
}

func (r *rig) releaseThere(l lease.Lease) {
	r.Helper()
	if _, err := releaseOne(r.ctx, r.there(), l); err != nil {
		r.Fatalf("release %q: %v", l.Key, err)
	}
}

func listenHearsAll(r *rig) {
	e := r.listen(r.here, "hears all")
	n := len(e.heard())
	for _, key := range []string{"a", "b", "c"} {
		r.releaseThere(r.takeThere(key))
	}
	r.announce("a", "b", "c")
	for _, key := range []string{"a", "b", "c"} {
		e.hears(n, key, "a", "b", "c")
	}
	_ = e.stop()
}

func listenEnds(r *rig) {
	const label = "a listener that ends"
	for range 3 {
		e := r.listen(r.here, label)
		if err := e.stop(); !errors.Is(err, context.Canceled) {
			r.Errorf("listen whose context was cancelled: %v", err)
		}
	}
	r.eventually("what a listener has started to end", func() bool { return !isRunning(label) })
}

// isRunning reports whether a goroutine with the label runs; goroutines inherit it from the one
// that started them.
func isRunning(label string) bool {
	var b bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&b, 1)
	return strings.Contains(b.String(), label)
}
