package servertest

import (
	"context"
	"errors"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// Scene is one database in one test, used as several processes would.
type Scene struct {
	*testing.T
	Env *testdb.Env
}

// Patience bounds every wait of these tests. What a test waits for comes much sooner, or never.
const Patience = time.Minute

// Each runs f on every database, all of them side by side, when the caller returns.
func Each(t *testing.T, f func(s *Scene)) {
	t.Helper()
	testdb.Each(t, func(t *testing.T, e *testdb.Env) { f(&Scene{t, e}) })
}

// InTurn is Each with one database after the other: for a test that measures the process.
func InTurn(t *testing.T, f func(s *Scene)) {
	t.Helper()
	testdb.InTurn(t, func(t *testing.T, e *testdb.Env) { f(&Scene{t, e}) })
}

// EachServer is Each without SQLite.
func EachServer(t *testing.T, f func(s *Scene)) {
	t.Helper()
	testdb.EachOf(t, testdb.Servers, func(t *testing.T, e *testdb.Env) { f(&Scene{t, e}) })
}

// On runs f on the database of that name.
func On(t *testing.T, name string, f func(s *Scene)) {
	t.Helper()
	for _, k := range testdb.Kinds {
		if k.Name == name {
			t.Run(name, func(t *testing.T) { f(&Scene{t, k.Open(t)}) })
		}
	}
}

// Part runs f as a subtest on the same tables.
func (s *Scene) Part(name string, f func(s *Scene)) {
	s.Helper()
	s.Run(name, func(t *testing.T) { f(&Scene{t, s.Env}) })
}

// Is reports whether the database is one of these.
func (s *Scene) Is(names ...string) bool {
	for _, n := range names {
		if s.Env.Name == n {
			return true
		}
	}
	return false
}

// OK ends the test if err is not nil.
func (s *Scene) OK(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// WantErr fails the test unless err is want.
func (s *Scene) WantErr(err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Errorf("got %v, want %v", err, want)
	}
}

// With returns the scene seen through a DSN with settings added, each "name=value".
func (s *Scene) With(settings ...string) *Scene {
	e := *s.Env
	for _, setting := range settings {
		name, value, ok := strings.Cut(setting, "=")
		if !ok {
			continue
		}
		sep := "?"
		if strings.Contains(e.Source, "?") {
			sep = "&"
		}
		e.Source += sep + name + "=" +
			strings.NewReplacer("+", "%20", "%2C", ",").Replace(url.QueryEscape(value))
	}
	return &Scene{s.T, &e}
}

// Client is another process: a client with a pool of its own. It does not sweep unless configured
// to.
func (s *Scene) Client(change ...func(*rowlock.Config)) *rowlock.Client {
	s.Helper()
	return s.ClientOn(s.Env.Pool(s), change...)
}

// ClientOn is a client on a given pool.
func (s *Scene) ClientOn(db rowlock.DB, change ...func(*rowlock.Config)) *rowlock.Client {
	s.Helper()
	c, err := rowlock.Open(db, s.Env.Dialect, Config(change...))
	s.OK(err)
	s.Cleanup(func() {
		if err := c.Close(); err != nil {
			s.Errorf("close: %v", err)
		}
	})
	return c
}

// Take locks a key that is free or soon will be. The lock is not forgotten before the test ends.
func (s *Scene) Take(c *rowlock.Client, key string, opts ...rowlock.Option) *rowlock.Lock {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), Patience)
	defer cancel()
	l, err := c.Lock(ctx, key, opts...)
	s.OK(err)
	s.Cleanup(func() { runtime.KeepAlive(l) })
	return l
}

// WantHeld fails the test unless TryLock is refused because the key is held.
func (s *Scene) WantHeld(c *rowlock.Client, key string) *rowlock.HeldError {
	s.Helper()
	l, err := c.TryLock(s.Context(), key)
	var held *rowlock.HeldError
	switch {
	case err == nil:
		s.Fatalf("%q was granted with token %d while it is held", key, l.Token())
	case !errors.As(err, &held):
		s.Fatalf("%q: %v, want ErrHeld", key, err)
	}
	return held
}

// Eventually waits until done returns true.
func (s *Scene) Eventually(what string, done func() bool) {
	s.Helper()
	Eventually(s, what, done)
}

// Elapse lets time pass: for properties that are about time, not to wait for something.
func (s *Scene) Elapse(d time.Duration) { <-time.After(d) }

// AtOnce fails the test if f takes longer than limit each of five times.
func (s *Scene) AtOnce(limit time.Duration, what string, f func()) {
	s.Helper()
	AtOnce(s, limit, what, func() time.Duration {
		began := time.Now()
		f()
		return time.Since(began)
	})
}

// Within fails the test if f takes longer than limit.
func (s *Scene) Within(limit time.Duration, what string, f func()) {
	s.Helper()
	began := time.Now()
	f()
	if took := time.Since(began); took > limit {
		s.Errorf("%s took %s, want at most %s", what, took.Round(time.Millisecond), limit)
	}
}
