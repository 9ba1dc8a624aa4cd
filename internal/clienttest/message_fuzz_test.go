package clienttest_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/clienttest"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// strangers is a store whose messages come from others than rowlock: any user of a server may send.
type strangers struct {
	*memstore.Store
	listener chan func(key string, chosen bool)
}

func (s *strangers) Wakes() bool                                       { return true }
func (s *strangers) Announce(context.Context, []string) error          { return nil }
func (s *strangers) Wake(context.Context, lease.Owner, []string) error { return nil }
func (s *strangers) Listen(ctx context.Context, f func(key string)) error {
	return s.ListenAs(ctx, lease.Owner{}, func(key string, _ bool) { f(key) })
}

func (s *strangers) ListenAs(ctx context.Context, _ lease.Owner, heard func(key string, chosen bool)) error {
	s.listener <- heard
	<-ctx.Done()
	return ctx.Err()
}

// FuzzMessages sends messages to a client that waits. It is granted the key after the holder's
// release, and not before, whatever it hears.
func FuzzMessages(f *testing.F) {
	f.Add([]byte{}, "k")
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 16 {
		b := make([]byte, 1+r.IntN(40))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		f.Add(b, strings.Repeat("\xff\x00k", n*10))
	}
	f.Fuzz(func(t *testing.T, messages []byte, text string) {
		synctest.Test(t, func(t *testing.T) { hears(t, messages, text) })
	})
}

func hears(t *testing.T, messages []byte, text string) {
	s := &strangers{memstore.New(), make(chan func(string, bool), 100)}
	fair := len(messages) > 0 && messages[0]&1 == 1
	c := clienttest.Client(t, s, &rowlock.Config{Fair: fair, Reaper: rowlock.ReaperConfig{Off: true}})
	holder := clienttest.Another(t, s, "k", time.Hour)
	got := make(chan *rowlock.Lock, 1)
	go func() {
		defer close(got)
		l, err := c.Lock(t.Context(), "k")
		if err != nil {
			t.Error(err)
			return
		}
		got <- l
	}()
	hear := <-s.listener
	keys := []string{"k", "", text, lease.Reserved, "another"}
	for _, m := range messages[:min(len(messages), 40)] {
		hear(keys[int(m>>2)%len(keys)], m&2 == 2)
		if m > 200 { // of the bubble's time: the client polls meanwhile
			time.Sleep(time.Duration(m) * time.Millisecond)
		}
	}
	synctest.Wait()
	select {
	case l := <-got:
		t.Fatalf("granted beside the holder: %+v", l)
	default:
	}
	if _, err := s.Release(t.Context(), []lease.Lease{holder}); err != nil {
		t.Fatal(err)
	}
	l := <-got
	if l == nil || l.Token() <= holder.Token {
		t.Fatalf("granted %v after %d", l, holder.Token)
	}
	if err := l.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}
