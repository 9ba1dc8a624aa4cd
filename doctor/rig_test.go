package doctor_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/doctor"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// quick examines for as short as it makes sense.
func quick(only ...string) *doctor.Options {
	return &doctor.Options{Only: only, ClockFor: 20 * time.Millisecond, Limit: 20 * time.Second}
}

// scene is a database that is examined.
type scene struct{ *servertest.Scene }

func each(t *testing.T, f func(s scene)) {
	t.Helper()
	servertest.Each(t, func(s *servertest.Scene) { f(durable(s)) })
}

func on(t *testing.T, f func(s scene), names ...string) {
	t.Helper()
	for _, name := range names {
		servertest.On(t, name, func(s *servertest.Scene) { f(durable(s)) })
	}
}

// durable undoes what makes the tests' SQLite files fast and would be found.
func durable(s *servertest.Scene) scene {
	s.Env.Source = strings.Replace(s.Env.Source, "&_pragma=synchronous%28off%29", "", 1)
	return scene{s}
}

// examine returns the report of the scene's own pool.
func (s scene) examine(o *doctor.Options) *doctor.Report {
	s.Helper()
	return s.examineOn(s.Env.Pool(s), s.Env.Dialect, o)
}

func (s scene) examineOn(db dialect.DB, d dialect.Dialect, o *doctor.Options) *doctor.Report {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), servertest.Patience)
	defer cancel()
	r, err := doctor.Examine(ctx, db, d, o)
	s.OK(err)
	return r
}

// finding is what one check finds on the scene's pool.
func (s scene) finding(id string) doctor.Finding {
	s.Helper()
	return s.findingWith(id, quick(id))
}

func (s scene) findingWith(id string, o *doctor.Options) doctor.Finding {
	s.Helper()
	r := s.examine(o)
	if len(r.Findings) != 1 || r.Findings[0].ID != id {
		s.Fatalf("the findings of %s alone are %+v", id, r.Findings)
	}
	return r.Findings[0]
}

// wants fails the test unless a check has found this, with texts in its summary, evidence or cure.
func (s scene) wants(severity doctor.Severity, id string, texts ...string) doctor.Finding {
	s.Helper()
	f := s.finding(id)
	judge(s.T, f, severity, texts...)
	return f
}

func judge(t *testing.T, f doctor.Finding, severity doctor.Severity, texts ...string) {
	t.Helper()
	if f.Severity != severity || f.Summary == "" || !f.Checked {
		t.Errorf("%s is %s, want %s: %+v", f.ID, f.Severity, severity, f)
	}
	if severity > doctor.Info && len(f.Cure) == 0 || severity > doctor.OK && len(f.Evidence) == 0 {
		t.Errorf("%s has no cure or no evidence: %+v", f.ID, f)
	}
	all := f.Summary + "\n" + strings.Join(f.Cure, "\n")
	for _, e := range f.Evidence {
		all += "\n" + e.Name + " = " + e.Value + " from " + e.From
	}
	for _, text := range texts {
		if !strings.Contains(all, text) {
			t.Errorf("%s says %q, want %q in it", f.ID, all, text)
		}
	}
	if strings.Contains(f.Summary, "\n") {
		t.Errorf("%s has a summary of several lines: %q", f.ID, f.Summary)
	}
}
