package latch_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/latch"
)

func barrier(tb testing.TB, s *latch.Latches, parties int) *latch.Barrier {
	tb.Helper()
	b, err := s.Barrier(tb.Context(), "b", parties)
	ok(tb, err)
	return b
}

// parties returns a barrier in as many processes.
func (r *rig) parties(tb testing.TB, n int) []*latch.Barrier {
	tb.Helper()
	bs := make([]*latch.Barrier, n)
	for i := range bs {
		bs[i] = barrier(tb, r.process(tb), n)
	}
	return bs
}

func TestNoPartyIsInBeforeAllAreAndNoneOutBeforeAllLeave(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		const n, rounds = 3, 3
		var entering, leaving atomic.Int64
		bs := r.parties(t, n)
		inParallel(n, func(i int) {
			for round := range int64(rounds) {
				entering.Add(1)
				if err := bs[i].Enter(soon(t), fmt.Sprint(i)); err != nil || entering.Load() < (round+1)*n {
					t.Errorf("party %d is in when %d of %d have come: %v", i, entering.Load(), (round+1)*n, err)
				}
				leaving.Add(1)
				if err := bs[i].Leave(soon(t), fmt.Sprint(i)); err != nil || leaving.Load() < (round+1)*n {
					t.Errorf("party %d is out when %d of %d leave: %v", i, leaving.Load(), (round+1)*n, err)
				}
			}
		})
	})
}

// die has the heartbeat of a party be over.
func (r *rig) die(tb testing.TB, party string) {
	tb.Helper()
	r.Exec(tb, `UPDATE {rowlock_party} SET alive_until = {now} - {second} WHERE phase = 0 AND party = ?`, []byte(party))
}

func TestAPartyThatDiesBeforeAllAreInBreaksTheBarrierForAll(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		bs := r.parties(t, 3)
		gone, cancel := context.WithCancel(t.Context())
		cancelled := make(chan error, 1)
		go func() { cancelled <- bs[0].Enter(gone, "dead") }()
		told := make(chan error, 1)
		go func() { told <- bs[1].Enter(soon(t), "waits") }()
		r.entered(t, 2)
		cancel()
		wantIs(t, <-cancelled, context.Canceled)
		r.die(t, "dead")
		err := <-told
		var broken *latch.BrokenError
		if !errors.As(err, &broken) || broken.Party != "dead" || broken.Generation != 1 {
			t.Errorf("got %v", err)
		}
		wantIs(t, bs[2].Enter(soon(t), "late"), latch.ErrBroken)
		wantIs(t, bs[0].Enter(soon(t), "dead"), latch.ErrBroken)
		ok(t, bs[2].Reset(t.Context()))
		inParallel(3, func(i int) {
			if err := bs[i].Enter(soon(t), fmt.Sprint(i)); err != nil {
				t.Error(err)
			}
		})
	})
}

// entered returns when that many parties have entered, as the tables show.
func (r *rig) entered(tb testing.TB, n int) {
	tb.Helper()
	r.reached(tb, "entered", `SELECT COUNT(*) FROM {rowlock_party} WHERE phase = 0`, n)
}

func (r *rig) left(tb testing.TB, n int) {
	tb.Helper()
	r.reached(tb, "left", `SELECT COUNT(*) FROM {rowlock_party} WHERE phase = 1`, n)
}

func (r *rig) reached(tb testing.TB, what, query string, n int) {
	tb.Helper()
	ctx := soon(tb)
	for r.count(tb, query) < n {
		if ctx.Err() != nil {
			tb.Fatalf("%d parties have not %s", n, what)
		}
	}
}

func TestAPartyThatDiesInsideBreaksTheBarrierForThoseThatLeave(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		bs := r.parties(t, 2)
		inParallel(2, func(i int) {
			if err := bs[i].Enter(soon(t), fmt.Sprint(i)); err != nil {
				t.Error(err)
			}
		})
		told := make(chan error, 1)
		go func() { told <- bs[0].Leave(soon(t), "0") }()
		r.die(t, "1")
		wantIs(t, <-told, latch.ErrBroken)
		wantIs(t, bs[1].Leave(soon(t), "1"), latch.ErrBroken)
	})
}

func TestAPartyMayRepeatEnterAndLeave(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		bs := r.parties(t, 2)
		in := func(i int) {
			for range 2 {
				if err := bs[i].Enter(soon(t), fmt.Sprint(i)); err != nil {
					t.Error(err)
				}
			}
		}
		wantIs(t, bs[0].Leave(t.Context(), "0"), latch.ErrNotEntered)
		inParallel(2, in)
		restarted := barrier(t, r.process(t), 2)
		ok(t, restarted.Enter(soon(t), "1"))
		wantIs(t, restarted.Enter(soon(t), "2"), latch.ErrFull)
		wantIs(t, restarted.Leave(soon(t), "2"), latch.ErrNotEntered)
		bs[1] = restarted
		inParallel(2, func(i int) {
			if err := bs[i].Leave(soon(t), fmt.Sprint(i)); err != nil {
				t.Error(err)
			}
		})
		ok(t, restarted.Leave(soon(t), "1"))
		inParallel(2, in)
	})
}

func TestAResetEndsTheWaitOfABarrier(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		bs := r.parties(t, 2)
		told := make(chan error, 1)
		go func() { told <- bs[0].Enter(soon(t), "0") }()
		r.entered(t, 1)
		ok(t, bs[1].Reset(t.Context()))
		wantIs(t, <-told, latch.ErrStale)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { told <- bs[0].Enter(ctx, "0") }()
		r.entered(t, 2)
		cancel()
		wantIs(t, <-told, context.Canceled)
	})
}

// beats returns when the heartbeat of a party has changed its row so often.
func (r *rig) beats(tb testing.TB, party string, n int) {
	tb.Helper()
	ctx, last := soon(tb), ""
	for n >= 0 {
		var now string
		ok(tb, r.DB.QueryRowContext(ctx, r.SQL(`SELECT alive_until FROM {rowlock_party} WHERE party = ?`),
			[]byte(party)).Scan(&now))
		if now != last {
			n--
		}
		last = now
	}
}

func TestACallOfEnterThatEndsLeavesTheHeartbeatToAnother(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		// A party of a process that gets no turn for as long is dead.
		const alive = 3 * time.Second
		b := barrier(t, r.open(t, r.Pool(t), latch.Config{Sweep: -1, Connections: 1, Alive: alive}), 2)
		gone, cancel := context.WithCancel(t.Context())
		cancelled, told := make(chan error, 1), make(chan error, 2)
		go func() { cancelled <- b.Enter(gone, "twice") }()
		r.entered(t, 1)
		go func() { told <- b.Enter(soon(t), "twice") }()
		r.beats(t, "twice", 3) // both wait
		cancel()
		wantIs(t, <-cancelled, context.Canceled)
		r.beats(t, "twice", 3) // for longer than the party lives without
		go func() { told <- b.Enter(soon(t), "other") }()
		ok(t, <-told)
		ok(t, <-told)
	})
}

// Else a program that gives up would have a party alive in a generation that is over.
func TestThePartyThatLeaveTellsOfTheEndHasNoHeartbeat(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		const alive = time.Second
		b := barrier(t, r.open(t, r.Pool(t), latch.Config{Sweep: -1, Connections: 1, Alive: alive}), 1)
		other := barrier(t, r.process(t), 1)
		for want, end := range map[error]func(){
			latch.ErrBroken: func() { r.Exec(t, `UPDATE {rowlock_latch} SET state = 3`) },
			latch.ErrStale:  func() { ok(t, other.Reset(t.Context())) },
		} {
			ok(t, b.Enter(soon(t), "p"))
			end()
			wantIs(t, b.Leave(soon(t), "p"), want)
			for ctx := soon(t); r.count(t, `SELECT COUNT(*) FROM {rowlock_party} WHERE alive_until > {now}`) > 0; {
				if ctx.Err() != nil {
					t.Fatalf("the heartbeat outlasts Leave's %v", want)
				}
			}
			ok(t, other.Reset(t.Context()))
		}
	})
}

// A party whose ctx ended in Leave has left. If it were let in again at once, it would go on while
// the others are in the round before.
func TestAPartyThatHasLeftEntersNoMoreUntilAllHave(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		bs := r.parties(t, 2)
		inParallel(2, func(i int) {
			if err := bs[i].Enter(soon(t), fmt.Sprint(i)); err != nil {
				t.Error(err)
			}
		})
		leaves, cancel := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() { left <- bs[0].Leave(leaves, "0") }()
		r.left(t, 1)
		cancel()
		wantIs(t, <-left, context.Canceled)
		wantIs(t, bs[0].Enter(soon(t), "0"), latch.ErrFull)
		wantIs(t, barrier(t, r.process(t), 2).Enter(soon(t), "0"), latch.ErrFull)
		ok(t, bs[1].Enter(soon(t), "1")) // it is inside
		ok(t, bs[1].Leave(soon(t), "1"))
		ok(t, bs[0].Leave(soon(t), "0"))
		inParallel(2, func(i int) {
			if err := bs[i].Enter(soon(t), fmt.Sprint(i)); err != nil {
				t.Error(err)
			}
		})
	})
}
