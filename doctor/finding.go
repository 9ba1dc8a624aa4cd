package doctor

import (
	"fmt"
	"slices"
	"time"
)

// Severity says how urgent a finding is. A larger one is worse.
type Severity int

const (
	// OK says that the check has found nothing.
	OK Severity = iota
	// Info is worth knowing and needs no action.
	Info
	// Warning weakens a guarantee, or will become a failure.
	Warning
	// Critical breaks a guarantee, or fails now.
	Critical
)

var severities = []string{"ok", "info", "warning", "critical"}

// String returns "ok", "info", "warning" or "critical".
func (s Severity) String() string {
	if s < OK || s > Critical {
		return fmt.Sprintf("Severity(%d)", int(s))
	}
	return severities[s]
}

// either returns then if something is so.
func either(so bool, then, otherwise Severity) Severity {
	if so {
		return then
	}
	return otherwise
}

// MarshalText has the form of String.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the form of String.
func (s *Severity) UnmarshalText(text []byte) error {
	i := slices.Index(severities, string(text))
	if i < 0 {
		return fmt.Errorf("rowlock: doctor: severity %q: want one of %q", text, severities)
	}
	*s = Severity(i)
	return nil
}

// Evidence is a value that was read.
type Evidence struct {
	// Name is that of a setting, a table or a figure, and Value as the database writes it.
	Name  string `json:"name"`
	Value string `json:"value"`
	// From is where it was read.
	From string `json:"from"`
}

// Finding is what one check has found. The names in JSON are stable.
type Finding struct {
	// ID names the check, for ever.
	ID       string   `json:"id"`
	Severity Severity `json:"severity"`
	// Summary says in a sentence what is so, and what that means.
	Summary string `json:"summary"`
	// Checked is false if the check could not be made. Summary then says why.
	Checked  bool       `json:"checked"`
	Evidence []Evidence `json:"evidence"`
	// Cure are statements and settings to copy, or what else to do. There is none for OK.
	Cure []string `json:"cure"`
}

// Report is all that was found.
type Report struct {
	// Server is the product and its version.
	Server string `json:"server"`
	// Dialect is "postgres", "mysql" (MariaDB too) or "sqlite".
	Dialect string    `json:"dialect"`
	At      time.Time `json:"at"`
	// Worst is the largest severity of a finding.
	Worst Severity `json:"worst"`
	// Findings has one for each check that was made, the worst first, and those of one severity in
	// the order of Checks.
	Findings []Finding `json:"findings"`
}

func (r *Report) add(f Finding) {
	if f.Evidence == nil {
		f.Evidence = []Evidence{}
	}
	if f.Cure == nil {
		f.Cure = []string{}
	}
	r.Findings = append(r.Findings, f)
	r.Worst = max(r.Worst, f.Severity)
}

func (r *Report) sort() {
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return int(b.Severity - a.Severity) })
}

// raise makes the finding at least as severe, and adds a sentence and cures.
func (f *Finding) raise(s Severity, summary string, cures ...string) {
	f.Severity = max(f.Severity, s)
	if f.Summary != "" {
		summary = f.Summary + "; " + summary
	}
	f.Summary = summary
	for _, cure := range cures {
		if cure != "" && !slices.Contains(f.Cure, cure) {
			f.Cure = append(f.Cure, cure)
		}
	}
}

func (f *Finding) saw(name string, value any, from string) {
	f.Evidence = append(f.Evidence, Evidence{name, fmt.Sprint(value), from})
}

// fine has the summary of a check that has found nothing.
func (f *Finding) fine(summary string) {
	if f.Summary == "" {
		f.Summary = summary
	}
}
