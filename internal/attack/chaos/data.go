//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/internal/attack/check"
	"github.com/rowlockdb/rowlock/internal/attack/proxy"
)

// data is the report for programs. The page is made of it and of nothing else, so that the two
// cannot differ.
type data struct {
	Run        setup
	Faults     []result
	Statements []statement
	Again      []string // how to repeat what was found
}

// setup is what ran where.
type setup struct {
	Began      string   `json:"began"`
	Rowlock    string   `json:"rowlock"`
	Servers    []string `json:"servers"`
	Cores      int      `json:"cores"`
	Go         string   `json:"go"`
	Each       string   `json:"each_database_for"`
	Round      string   `json:"round"`
	Lease      string   `json:"lease"`
	Workers    int      `json:"workers"`
	Goroutines int      `json:"goroutines_each"`
	Command    string   `json:"command"`
}

// result is one fault on one database. NotTested says why, and Unfinished counts the rounds that
// did not come to their end.
type result struct {
	Database   string             `json:"database"`
	Fault      string             `json:"fault"`
	NotTested  string             `json:"not_tested,omitempty"`
	Unfinished int                `json:"unfinished,omitempty"`
	Rounds     int                `json:"rounds"`
	Struck     int                `json:"struck"`
	Grants     int                `json:"grants"`
	Writes     int                `json:"fenced_writes"`
	Lost       int                `json:"err_lost"`
	Violations map[check.Kind]int `json:"violations,omitempty"`
	Wait       rounded            `json:"longest_wait"`
	NextGrant  rounded            `json:"next_grant"`
	LateLoss   rounded            `json:"loss_told_late_by"`
	Overlaps   *overlaps          `json:"overlaps,omitempty"`
	Expired    int                `json:"expired_when_granted"`
	RowsLeft   map[string]int     `json:"rows_left,omitempty"`
	Failovers  *failed            `json:"failovers,omitempty"`
}

// overlaps are times in which two processes believed that they held a key.
type overlaps struct {
	Number int     `json:"number"`
	Median rounded `json:"median"`
	Worst  rounded `json:"worst"`
}

// failed sums up failovers.
type failed struct {
	Number    int     `json:"number"`
	Lossy     int     `json:"lossy"`
	Repeated  int     `json:"tokens_repeated"`
	Fallen    int     `json:"tokens_fallen"`
	Median    rounded `json:"next_grant_median"`
	Longest   rounded `json:"next_grant_longest"`
	Committed int     `json:"writes_of_holders_before_committed"`
	Refused   int     `json:"writes_of_holders_before_refused"`
}

// statement is how often a connection was cut at one, by database: before the server executed it,
// after that and before the end of the reply, and how often it was delivered late.
type statement struct {
	Name string            `json:"statement"`
	Cut  map[string][3]int `json:"cut_before_after_late"`
}

// rounded is a duration of which a report keeps two digits or three.
type rounded time.Duration

func (r rounded) String() string               { return tenths(time.Duration(r)) }
func (r rounded) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

func (r *rounded) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	*r = rounded(d)
	return err
}

// json has a line for each result, so that a reader of a change sees what has changed.
func (d *data) json() ([]byte, error) {
	var b bytes.Buffer
	for _, part := range []struct {
		before string
		list   []any
		after  string
	}{
		{"{\"run\": ", []any{d.Run}, ""},
		{",\n\"faults\": [\n", anys(d.Faults), "\n]"},
		{",\n\"statements\": [\n", anys(d.Statements), "\n]"},
		{",\n\"again\": [\n", anys(d.Again), "\n]}\n"},
	} {
		b.WriteString(part.before)
		for i, one := range part.list {
			text, err := json.Marshal(one)
			if err != nil {
				return nil, err
			}
			if i > 0 {
				b.WriteString(",\n")
			}
			b.Write(text)
		}
		b.WriteString(part.after)
	}
	return b.Bytes(), nil
}

func anys[T any](list []T) (all []any) {
	for _, one := range list {
		all = append(all, one)
	}
	return all
}

// data is what the rounds have shown so far.
func (s *summary) data() *data {
	d := &data{Run: s.setup(), Statements: s.statements(), Again: s.bad}
	for _, l := range s.lines {
		if l.Skipped != "" || l.Failed > 0 || l.Rounds > 0 {
			d.Faults = append(d.Faults, l.result())
		}
	}
	return d
}

func (s *summary) setup() setup {
	return setup{
		Began: s.began.UTC().Format("2006-01-02 15:04 MST"), Rowlock: s.revision, Servers: s.versions,
		Cores: runtime.NumCPU(), Go: runtime.Version(), Each: s.settings.length.String(),
		Round: s.settings.round.String(), Lease: ttl.String(), Workers: s.settings.workers, Goroutines: goroutines(),
		Command: s.settings.command(),
	}
}

func (l *line) result() result {
	r := result{
		Database: l.Database, Fault: l.Fault, NotTested: l.Skipped, Unfinished: l.Failed, Rounds: l.Rounds,
		Struck: l.Struck, Grants: l.Grants, Writes: l.Writes, Lost: l.Lost, Violations: l.Violations,
		Wait: rounded(l.Wait), NextGrant: rounded(l.Recovery), LateLoss: rounded(l.LateLoss), Expired: l.Stale,
		RowsLeft: l.rows(), Failovers: l.standing(),
	}
	if n := len(l.Overlaps); n > 0 {
		r.Overlaps = &overlaps{n, rounded(l.Overlaps[n/2]), rounded(l.Overlaps[n-1])}
	}
	return r
}

// rows are those that processes leave for the next caller of the key, or for the cleaner.
func (l *line) rows() map[string]int {
	left := maps.Clone(l.Rows)
	maps.DeleteFunc(left, func(table string, n int) bool {
		return n == 0 || strings.Contains(table, "floor") || strings.Contains(table, "meta")
	})
	return left
}

// statements has each kind of statement that was cut.
func (s *summary) statements() (list []statement) {
	cut := make(map[string]map[string][3]int)
	for _, l := range s.lines {
		if l.Fault != "reply" && l.Fault != "late" {
			continue
		}
		for what, n := range l.Blows {
			kind, fate, _ := strings.Cut(what, ": ")
			if way := wayOf(fate); way >= 0 {
				if cut[kind] == nil {
					cut[kind] = make(map[string][3]int)
				}
				numbers := cut[kind][l.Database]
				numbers[way] += n
				cut[kind][l.Database] = numbers
			}
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(cut)) {
		list = append(list, statement{kind, cut[kind]})
	}
	return list
}

// ways are the fates of a statement that a reader tells apart: cut before it was executed, cut
// after it, and late.
var ways = [][]proxy.Fate{{proxy.Unsent, proxy.Half}, {proxy.ReplyLost, proxy.ReplyHalf}, {proxy.Late}}

// wayOf is the place of a fate among ways, or -1.
func wayOf(fate string) int {
	return slices.IndexFunc(ways, func(way []proxy.Fate) bool {
		return slices.ContainsFunc(way, func(f proxy.Fate) bool { return f.String() == fate })
	})
}
