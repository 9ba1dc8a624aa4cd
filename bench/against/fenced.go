package main

import (
	"context"
	"errors"
	"slices"

	"github.com/rowlockdb/rowlock/bench/internal/paper"
	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
	"github.com/rowlockdb/rowlock/bench/internal/section"
)

// sections are what locks are for, and so the first that is measured and the first of the page.
func (s settings) sections(ctx context.Context, d *rig.Database, p *rig.Progress) (r *race.Result, err error) {
	f, err := section.New(ctx, d, 1)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r = &race.Result{Kind: d.Kind}
	course := race.Course{Title: d.Name, Goroutines: 1, Rounds: s.rounds, Turn: s.turn, Progress: p}
	return r, r.Counted(ctx, course, f.Contenders(), d.Wire.Trips)
}

// sections is the table of them.
func (p *page) sections(all []*result) {
	var rows [][]string
	for _, r := range all {
		if r.sections == nil {
			continue
		}
		for i, row := range r.sections.Rows {
			ratio, trips := row.Ratio.String(), paper.Number(r.sections.Sent[i])
			if r.kind.Name == "sqlite" { // has no wire
				trips = ""
			}
			if i == 0 {
				ratio = "1"
			}
			rows = append(rows, []string{paper.Title(r.kind.Name), row.Name, paper.Number(row.Rate.Median), ratio, trips})
		}
	}
	if rows == nil {
		return
	}
	p.Say("Sections that lock a key, write a row, and prove in the same transaction that they still hold the key: " +
		"Lock, BEGIN, Fence, UPDATE, COMMIT, and the release after the transaction (Unlock), within it (UnlockTx), or both " +
		"by DoTx. One caller. The ratio is to SELECT FOR UPDATE in place of the lock, in the same round.")
	p.Table("||sections/s|ratio (min–max)|round trips", rows)
}

func drawSections(folder string, _ settings, all []*result) ([]chart, error) {
	c := chart{Title: "Sections per second, 1 caller", File: "fenced.svg"}
	of := func(label, name string, l look) bars {
		return grouping(all, label, l, func(r *result) float64 {
			if r.sections == nil {
				return 0
			}
			i := slices.IndexFunc(r.sections.Rows, func(row race.Row) bool { return row.Name == name })
			if i < 0 {
				return 0
			}
			return r.sections.Rows[i].Rate.Median
		})
	}
	return paper.DrawBars(folder, c, "sections per second", groupsOf(all), []bars{
		of(section.Raw, section.Raw, looks[nameOwn]), of("rowlock, Unlock", section.Unlock, paper.Ours["postgres"]),
		of("rowlock, UnlockTx", section.UnlockTx, paper.Ours["mariadb"]), of("rowlock, DoTx", section.DoTx, paper.Ours["sqlite"]),
		of("rowlock, DoTx of pgx", section.OfPgx, paper.Ours["mysql"]),
	})
}
