package check

import (
	"time"

	"github.com/rowlockdb/rowlock/internal/attack/history"
)

// lost looks at locks that lasted long enough to expire and were lost. That is a violation if
// nothing was the matter: in a healthy phase, with a TTL that a busy machine can keep, and with no
// stall of the holder's process or of its database that is long beside the TTL.
func lost(r *Report, in *Input) {
	stalls := make(map[string][]*history.Event)
	grants := make(map[history.Holder]map[string]*history.Event)
	for i := range in.Events {
		switch e := &in.Events[i]; {
		case e.Kind == history.Stall:
			stalls[e.Process] = append(stalls[e.Process], e)
		case e.Kind == history.Grant && e.Result == history.OK:
			h := e.Holder()
			if grants[h] == nil {
				grants[h] = make(map[string]*history.Event, 1)
			}
			grants[h][e.Key] = e
		}
	}
	for i := range in.Events {
		e := &in.Events[i]
		g := grants[e.Holder()][e.Key]
		if e.Kind != history.Unlock || e.Result != history.Lost || e.Left || g == nil || e.Told-g.Sent < int64(g.TTL)*2/3 {
			continue
		}
		longest := longestStall(stalls[e.Process], g.Sent, e.Told)
		if in.Healthy[e.Phase] && g.TTL >= 3*time.Second && longest < int64(g.TTL)/6 {
			r.violation(HealthyLoss, e.Key, e.Told, "token %d of %s (%s), TTL %s, lost within %s; longest stall %s: %s",
				e.Token, e.Process, e.Act, g.TTL, ms(e.Told-g.Sent), ms(longest), e.Err)
			continue
		}
		r.finding(LostLocks, e.Key, e.Told, "token %d of %s (%s), TTL %s, within %s", e.Token, e.Process, e.Act, g.TTL, ms(e.Told-g.Sent))
	}
}

func longestStall(stalls []*history.Event, from, to int64) (longest int64) {
	for _, s := range stalls {
		if s.Sent < to && s.Told > from {
			longest = max(longest, s.Told-s.Sent)
		}
	}
	return longest
}
