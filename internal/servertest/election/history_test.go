package election

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/lease"
)

// Candidates are killed, stopped, asked to resign and to end, at random. Terms grow, and no write
// of a term follows one of a later term. With more time:
//
//	ROWLOCK_ELECTION_SECONDS=60 scripts/with-servers postgres mariadb mysql -- \
//		go test ./internal/servertest/election -run TestRandomHistories -v
func TestRandomHistoriesHaveOneLeaderAtATime(t *testing.T) {
	const candidates, ttl = 3, time.Second
	seconds := servertest.FromEnvironment("ROWLOCK_ELECTION_SECONDS", 5)
	eachMode(t, func(s *servertest.Scene, m servertest.Mode) {
		seed := rand.Uint64()
		s.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 0))
		h := open(s, m, ttl)
		var all []*candidate
		join := func() {
			c := h.candidate("candidate")
			c.Send("busy")
			all = append(all, c)
		}
		for range candidates {
			join()
		}
		began := time.Now()
		for time.Since(began) < time.Duration(seconds)*time.Second ||
			h.showsLittle() && time.Since(began) < 3*time.Minute {
			i := random.IntN(len(all))
			if led := h.present(); led != nil && random.IntN(3) > 0 {
				i = max(0, slices.Index(all, led)) // mostly the leader
			}
			c := all[i]
			switch random.IntN(4) {
			case 0:
				c.Kill()
				<-c.over
				all = slices.Delete(all, i, i+1)
				join()
			case 1:
				c.Pause()
				s.Elapse(time.Duration(random.IntN(2000)) * time.Millisecond)
				c.Resume()
			case 2:
				h.close(c)
				all = slices.Delete(all, i, i+1)
				join()
			case 3:
				c.Send("resign")
				s.Elapse(time.Duration(random.IntN(600)) * time.Millisecond)
			}
		}
		h.close(all...)
		h.judge()
	})
}

// present is the candidate that has last told that it leads.
func (h *house) present() (c *candidate) {
	for _, e := range h.soFar() {
		if e.Did == "leads" {
			c = e.by
		}
	}
	return c
}

// showsLittle reports whether a slow machine has not come far.
func (h *house) showsLittle() bool {
	counts := map[string]int{}
	for _, e := range h.soFar() {
		counts[e.Did]++
	}
	return counts["leads"] < 3 || counts["wrote"] < 30
}

// judge fails the test if the history is not that of one leader at a time.
func (h *house) judge() {
	s, history := h.s, h.soFar()
	s.Helper()
	counts, terms := map[string]int{}, map[lease.Token]bool{}
	var writes []told
	for _, e := range history {
		counts[e.Did]++
		switch e.Did {
		case "wrote":
			writes = append(writes, e)
		case "leads":
			if terms[e.Term] {
				s.Errorf("term %d was told twice", e.Term)
			}
			terms[e.Term] = true
		case "broke":
			s.Errorf("a candidate said %q", e.Why)
		}
	}
	s.Logf("%v", counts)
	if h.showsLittle() {
		s.Errorf("%d terms and %d writes show nothing", counts["leads"], counts["wrote"])
	}
	slices.SortFunc(writes, func(a, b told) int { return cmp.Compare(a.N, b.N) })
	for i := range len(writes) - 1 {
		if a, b := writes[i], writes[i+1]; a.N == b.N || a.Term > b.Term {
			s.Errorf("write %d of term %d comes before write %d of term %d", a.N, a.Term, b.N, b.Term)
		}
	}
	ops := operations(history)
	if result := porcupine.CheckOperationsTimeout(electionModel(), ops, time.Minute); result != porcupine.Ok {
		for _, op := range ops {
			s.Log(describe(op))
		}
		s.Errorf("the history is %s", result)
	}
}
