package striped_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/memstore"
	"github.com/rowlockdb/rowlock/striped"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func client(t *testing.T) *rowlock.Client {
	t.Helper()
	c, err := rowlock.New(memstore.New(), &rowlock.Config{Reaper: rowlock.ReaperConfig{Off: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func stripes(t *testing.T, name string, n int) *striped.Stripes {
	t.Helper()
	s, err := striped.New(client(t), name, n)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Processes of other versions go by these.
func TestAnIdBelongsToTheSameStripeForEver(t *testing.T) {
	s := stripes(t, "stock/42", 16)
	for id, want := range map[string]string{
		"": "stock/42/05", "a": "stock/42/12", "customer-1": "stock/42/07", "customer-2": "stock/42/10",
		"Zürich": "stock/42/00",
	} {
		if got := s.For(id); got != want {
			t.Errorf("%q belongs to %q, want %q", id, got, want)
		}
	}
	if keys := stripes(t, "k", 112).Keys(); keys[0] != "k/00" || keys[9] != "k/09" || keys[111] != "k/111" {
		t.Errorf("the keys are %q", keys)
	}
}

func TestIdsAreSpreadEvenly(t *testing.T) {
	s := stripes(t, "k", 16)
	count := make([]int, s.Len())
	for i := range 16000 {
		count[s.Number(fmt.Sprintf("customer-%d", i))]++
	}
	if slices.Min(count) < 850 || slices.Max(count) > 1150 {
		t.Errorf("of 16,000 ids the stripes have %v", count)
	}
}

func TestAKeyHasItsIndex(t *testing.T) {
	s := stripes(t, "k", 12)
	for i, key := range s.Keys() {
		if got, ok := s.Index(key); !ok || got != i || s.Key(i) != key {
			t.Errorf("%q has the index %d, %t", key, got, ok)
		}
	}
	for _, key := range []string{"k", "k/", "k/12", "k/1", "k/001", "k/-1", "k/+1", "other/01", ""} {
		if i, ok := s.Index(key); ok {
			t.Errorf("%q is stripe %d", key, i)
		}
	}
}

func TestWhatCannotBeStripedIsRefused(t *testing.T) {
	c := client(t)
	for _, n := range []int{-1, 0, striped.Max + 1} {
		if _, err := striped.New(c, "k", n); !errors.Is(err, rowlock.ErrConfig) {
			t.Errorf("%d stripes: %v", n, err)
		}
	}
	if _, err := striped.New(nil, "k", 1); !errors.Is(err, rowlock.ErrConfig) {
		t.Errorf("no client: %v", err)
	}
	for _, name := range []string{"", strings.Repeat("x", 252), "\x00rowlock\x00x"} {
		_, err := striped.New(c, name, 101)
		if !errors.Is(err, rowlock.ErrInvalidKey) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.10q: %v", name, err)
		}
	}
	if _, err := striped.New(c, strings.Repeat("x", 251), striped.Max); err != nil {
		t.Error(err)
	}
}

func TestAnyIsAStripeOfItsOwnAndAllAreAll(t *testing.T) {
	s := stripes(t, "k", 4)
	var held []*rowlock.Lock
	seen := make(map[int]bool)
	for range s.Len() {
		l, err := s.Any(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		i, ok := s.Index(l.Key())
		if !ok || seen[i] {
			t.Fatalf("%q is stripe %d, %t, after %v", l.Key(), i, ok, seen)
		}
		seen[i], held = true, append(held, l)
	}
	if _, err := s.TryAny(t.Context()); !errors.Is(err, rowlock.ErrHeld) {
		t.Errorf("TryAny of none: %v", err)
	}
	var waiting sync.WaitGroup
	waiting.Go(func() {
		all, err := s.All(t.Context())
		if err != nil || len(all.Keys()) != 4 {
			t.Errorf("All: %v", err)
			return
		}
		if err := all.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
	for _, l := range held {
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	}
	waiting.Wait()
}
