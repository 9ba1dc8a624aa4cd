package bidq

import (
	"time"

	"github.com/rowlockdb/rowlock/internal/waitq"
)

const (
	// leastGrants is how often a process is granted the key in its turn, at least.
	leastGrants = 2
	// turnsPerPass is how many times as long as a pass the grants of a turn take, at least: the key
	// lies free while a process is woken.
	turnsPerPass = 3
	// slowPass is as how many grants a pass counts, at most. Where the key is held for long now and
	// then, the turns of the others are longer than this process can know.
	slowPass = 10
)

// pace is how the turns of one key go.
type pace struct {
	turn  time.Duration // that a turn of this process lasts
	round time.Duration // from the end of one to the next
	grant time.Duration // that a grant takes which nothing delays
	crowd int           // how many processes wait, as last counted

	rounds int // that there were; the first ones last longer

	lasted time.Duration // a turn, over many
	grants float64       // in it
}

// granted takes the shorter ones: what delays a grant on an overloaded machine delays a pass too.
func (p *pace) granted(took time.Duration) {
	if slower := p.grant + p.grant/8; p.grant == 0 || took < slower {
		p.grant = took
	} else {
		p.grant = slower
	}
}

func (p *pace) took(turn time.Duration, grants int) {
	if p.turn == 0 {
		p.turn = turn
	}
	p.turn += (turn - p.turn) / 4
	p.lasted += (turn - p.lasted) / 16
	p.grants += (float64(grants) - p.grants) / 16
}

// pair is how long a grant lasts, with its release: over many turns, because one may be long.
func (p *pace) pair() time.Duration {
	return time.Duration(float64(p.lasted) / max(p.grants, 1)) // less than that in the first turns
}

func (p *pace) came(after time.Duration) {
	if p.rounds++; p.round == 0 {
		p.round = after
	}
	p.round += (after - p.round) / 4
}

// pass is how long it takes until the next process has the key: what a round has lasted for longer
// than the turns in it. A process that was just woken waits for the processor where the machine is
// overloaded, and one that runs does not.
func (p *pace) pass() time.Duration {
	return max(0, p.round/time.Duration(p.others())-p.turn)
}

// soon is how soon a process asks again that is said to return at once: within as long as it would
// take to pass the key, at most most. On an overloaded machine a process may be away for longer
// than waitq.Soon only because it waits for the processor.
func (p *pace) soon(most time.Duration) time.Duration {
	return max(waitq.Soon, min(p.pass(), most))
}

// queue is how many processes take turns, of those that wait: as many turns as a round has time
// for.
func (p *pace) queue() int {
	return min(1+int(p.round/max(p.turn, time.Microsecond)), p.others()+1)
}

// others is how many processes have their turn in a round of this one.
func (p *pace) others() int { return max(1, p.crowd-1) }

// ripe reports whether the time slice may end. All waiting processes have theirs within round,
// unless a pass takes so long that it costs too many grants. No slice is longer than most. Grants
// are counted, because on an overloaded machine time passes without any.
func (p *pace) ripe(grants int, lasted, held, round, most time.Duration) bool {
	switch {
	case grants > 0 && lasted >= most:
		return true
	case grants < leastGrants && held < most/3:
		return false
	}
	pairs := held + time.Duration(grants)*2*p.grant // a release takes about as long as a grant
	pass := min(p.pass(), slowPass*p.grant)
	return lasted >= round/time.Duration(p.others()+1) && pairs >= turnsPerPass*pass
}

// rest is when a process that waits for its turn polls: when its turn would be stuck, and now and
// then at once.
func (r *relay) rest() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.kept) > keepTurns/8<<min(r.keeps, 3) {
		r.kept = now
		r.keeps++
		r.counts = true
		r.q.hints.Recount(r.key)
		return 0
	}
	// A process that leaves the key to one without turns waits too, and after a long turn the one
	// before ended long ago: without a pause it would poll again and again.
	return max(r.q.cfg.PollMin, r.late()-time.Since(r.ended))
}

// late is for how long a turn has not come that counts as stuck: three rounds as they last now, or
// half as long as one where rounds are long. The caller has the mutex.
func (r *relay) late() time.Duration {
	most, round := r.q.cfg.PollMax, r.pace.round
	if round == 0 {
		return 4 * most // it is not known yet
	}
	return max(most, min(3*round, 4*most), round+round/2)
}
