package servertest

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// scene is one database in one test, and the ways to come to it as several processes would.
type Scene struct {
	*testing.T
	Env *testdb.Env
}

// scenePatience bounds every wait of these tests. What is waited for comes much sooner, or never.
const Patience = 30 * time.Second

func Each(t *testing.T, f func(s *Scene)) {
	t.Helper()
	testdb.Each(t, func(t *testing.T, e *testdb.Env) { f(&Scene{t, e}) })
}

// eachServer leaves SQLite out.
func EachServer(t *testing.T, f func(s *Scene)) {
	t.Helper()
	for _, k := range testdb.Kinds {
		if k.Name != "sqlite" {
			t.Run(k.Name, func(t *testing.T) { f(&Scene{t, k.Open(t)}) })
		}
	}
}

func On(t *testing.T, name string, f func(s *Scene)) {
	t.Helper()
	for _, k := range testdb.Kinds {
		if k.Name == name {
			t.Run(name, func(t *testing.T) { f(&Scene{t, k.Open(t)}) })
		}
	}
}

// part runs f as a subtest on the same tables.
func (s *Scene) Part(name string, f func(s *Scene)) {
	s.Helper()
	s.Run(name, func(t *testing.T) { f(&Scene{t, s.Env}) })
}

func (s *Scene) Is(names ...string) bool {
	for _, n := range names {
		if s.Env.Name == n {
			return true
		}
	}
	return false
}

func (s *Scene) OK(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *Scene) WantErr(err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Errorf("got %v, want %v", err, want)
	}
}

// with returns the Env seen through a DSN with settings added, each "name=value".
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
		e.Source += sep + name + "=" + strings.NewReplacer("+", "%20", "%2C", ",").Replace(url.QueryEscape(value))
	}
	return &Scene{s.T, &e}
}

// client is another process: a client with a pool of its own. It does not sweep unless told to.
func (s *Scene) Client(change ...func(*rowlock.Config)) *rowlock.Client {
	s.Helper()
	return s.ClientOn(s.Env.Pool(s), change...)
}

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

// take gets a key that is free or about to be.
func (s *Scene) Take(c *rowlock.Client, key string, opts ...rowlock.Option) *rowlock.Lock {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), Patience)
	defer cancel()
	l, err := c.Lock(ctx, key, opts...)
	s.OK(err)
	return l
}

// wantHeld asks once, and is refused because somebody has the key.
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

// eventually waits until done returns true.
func (s *Scene) Eventually(what string, done func() bool) {
	s.Helper()
	Eventually(s, what, done)
}

// atLeast lets time pass: where the property is about time, not to wait for something.
func (s *Scene) Elapse(d time.Duration) { <-time.After(d) }

// quick fails the test if f takes longer than limit.
func (s *Scene) Within(limit time.Duration, what string, f func()) {
	s.Helper()
	began := time.Now()
	f()
	if took := time.Since(began); took > limit {
		s.Errorf("%s took %s, want at most %s", what, took.Round(time.Millisecond), limit)
	}
}
