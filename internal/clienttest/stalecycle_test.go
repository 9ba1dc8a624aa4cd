package clienttest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// late is a store whose readings of waits are answered late, and whose removals fail, when a test
// says so.
type late struct {
	*memstore.Store
	mu     sync.Mutex
	answer time.Duration // by how much the next reading is answered late
	err    error         // of removals
	reads  int
}

func (s *late) Edges(
	ctx context.Context, by lease.Party, from []lease.Owner, limit int,
) ([]lease.Edge, error) {
	edges, err := s.Store.Edges(ctx, by, from, limit)
	s.mu.Lock()
	wait := s.answer
	s.answer, s.reads = 0, s.reads+1
	s.mu.Unlock()
	time.Sleep(wait)
	return edges, err
}

func (s *late) Erase(ctx context.Context, chains []lease.Caller) error {
	s.mu.Lock()
	err := s.err
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return s.Store.Erase(ctx, chains)
}

func (s *late) set(answer time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer, s.err = answer, err
}

func (s *late) pending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answer > 0
}

func (s *late) readings() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads
}

// A process that was stopped while the answer of its reading was on its way acts on what was long
// ago: meanwhile the other call has given up.
func TestAReadingThatIsAnsweredLateEndsNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tables := memstore.New()
		slow := &late{Store: tables}
		first, second := Client(t, tables, nil), Client(t, slow, nil)
		a, b := Take(t, first, "a"), Take(t, second, "b")
		ctx, cancel := context.WithCancel(a.Context())
		firstWaits := WaitIn(t, ctx, first, "b")
		time.Sleep(100 * time.Millisecond)
		secondWaits := WaitIn(t, b.Context(), second, "a")
		time.Sleep(1050 * time.Millisecond) // the cycle has been read once
		for slow.readings() < 2 {
			slow.set(3*time.Second, nil)
			time.Sleep(10 * time.Millisecond)
		}
		slow.set(3*time.Second, nil)
		cancel()
		WantIs(t, "the call that gave up", (<-firstWaits).Err, context.Canceled)
		time.Sleep(20 * time.Second)
		if len(secondWaits) > 0 {
			t.Fatalf("the other call was ended: %v", (<-secondWaits).Err)
		}
		Unlock(t, a)
		w := <-secondWaits
		WantIs(t, "the other call", w.Err)
		Unlock(t, w.Lock)
		Unlock(t, b)
	})
}

// A record that a granted call has left, because it could not be erased, was extended long ago, and
// read by a process one of whose calls is recorded only now. The holder of what it names is in no
// cycle with it: it works, and will unlock.
func TestARecordThatAGrantHasLeftIsNoPartOfACycle(t *testing.T) {
	for ahead := time.Duration(0); ahead < 300*time.Millisecond; ahead += 20 * time.Millisecond {
		t.Run(ahead.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { leaveRecord(t, ahead) })
		})
	}
}

func leaveRecord(t *testing.T, ahead time.Duration) {
	tables := memstore.New()
	cut, slow := &late{Store: tables}, &late{Store: tables}
	worker, before := Client(t, cut, nil), Client(t, tables, nil)
	process := Client(t, slow, nil)
	end := Take(t, before, "end")
	h, k, v := Take(t, worker, "h"), Take(t, before, "k"), Take(t, process, "v")
	beforeWaits := WaitIn(t, k.Context(), before, "end")
	workerWaits := WaitIn(t, h.Context(), worker, "k")
	time.Sleep(10 * time.Millisecond)
	aside := WaitIn(t, v.Context(), process, "h") // it reads the worker's record
	time.Sleep(2*time.Second + ahead)

	slow.set(720*time.Millisecond, nil) // the answer of the last reading before all moves on
	for slow.pending() {
		time.Sleep(time.Millisecond)
		synctest.Wait()
	}
	cut.set(0, ErrDown)
	Unlock(t, end)
	Unlock(t, (<-beforeWaits).Lock)
	Unlock(t, k)
	worked := <-workerWaits
	WantIs(t, "the worker", worked.Err)
	Unlock(t, worked.Lock)
	k = Take(t, process, "k")
	waiting := WaitIn(t, k.Context(), process, "h")
	time.Sleep(5 * time.Second)
	if len(waiting) > 0 {
		t.Fatalf("a call was ended: %v", (<-waiting).Err)
	}
	Unlock(t, h)
	for range 2 {
		select {
		case w := <-aside:
			WantIs(t, "the other waiter", w.Err)
			Unlock(t, w.Lock)
			aside = nil
		case w := <-waiting:
			WantIs(t, "the waiter", w.Err)
			Unlock(t, w.Lock)
		}
	}
	Unlock(t, k)
	Unlock(t, v)
}

// tardy has a store carry out some records when the test wants it, long after their call was told
// that the outcome is unknown.
type tardy struct {
	*memstore.Store
	mu   sync.Mutex
	late bool
	jobs []func()
}

func (s *tardy) Record(
	ctx context.Context, by lease.Party, chains []lease.Caller, life time.Duration,
) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.late {
		return s.Store.Record(ctx, by, chains, life)
	}
	s.jobs = append(s.jobs, func() { _ = s.Store.Record(context.Background(), by, chains, life) })
	return fmt.Errorf("%w: late", lease.ErrUnknown)
}

// carryOut does what was left, one after the other.
func (s *tardy) carryOut(apart time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, job := range s.jobs {
		job()
		time.Sleep(apart)
	}
}

// Several records of one wait are carried out after their call has given up and has removed them.
// They extend no wait that is over.
func TestLateRecordsDoNotExtendEachOther(t *testing.T) {
	for _, apart := range []time.Duration{100, 200, 310} {
		apart *= time.Millisecond
		t.Run(apart.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memstore.New()
				way := &tardy{Store: s}
				gone, stays := Client(t, way, nil), Client(t, s, nil)
				h, k := Take(t, gone, "h"), Take(t, stays, "k")
				time.AfterFunc(1050*time.Millisecond, func() { // after the first record
					way.mu.Lock()
					defer way.mu.Unlock()
					way.late = true
				})
				waiting := make(chan error, 1)
				time.AfterFunc(1100*time.Millisecond, func() { // too late to be recorded before it has gone
					ctx, cancel := context.WithTimeout(k.Context(), 5*time.Second)
					defer cancel()
					_, err := stays.Lock(ctx, "h")
					waiting <- err
				})
				brief, cancel := context.WithTimeout(h.Context(), 2200*time.Millisecond)
				defer cancel()
				_, err := gone.Lock(brief, "k")
				WantIs(t, "a call that gives up", err, context.DeadlineExceeded)
				way.carryOut(apart)
				if err := <-waiting; errors.Is(err, rowlock.ErrDeadlock) {
					t.Errorf("the call that waits was ended: %v", err)
				}
				if len(way.jobs) < 2 {
					t.Errorf("%d late records", len(way.jobs))
				}
				Unlock(t, h)
				Unlock(t, k)
			})
		})
	}
}
