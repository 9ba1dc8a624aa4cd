package doctor_test

import (
	"testing"

	"github.com/rowlockdb/rowlock/doctor"
)

func TestAHealthyServerHasNoFindingAboveInfo(t *testing.T) {
	each(t, func(s scene) {
		c := s.Client()
		s.OK(s.Take(c, "k").Unlock(s.Context()))
		r := s.examine(quick())
		if r.Worst > doctor.Info || r.Server == "" || r.Dialect != s.Env.Dialect.Name() {
			s.Errorf("the report is %+v", r)
		}
		for _, f := range r.Findings {
			if f.Severity > doctor.Info || !f.Checked || len(f.Evidence) == 0 || f.Summary == "" {
				s.Errorf("%+v", f)
			}
		}
	})
}
