package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/paper"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
	"github.com/rowlockdb/rowlock/bench/internal/section"
)

func TestADataSourceNameChangesItsAddressAndNothingElse(t *testing.T) {
	for _, one := range []struct{ driver, source, address, moved string }{
		{"pgx", "postgres://me:it@db:5432/app?sslmode=disable", "db:5432", "postgres://me:it@far:1/app?sslmode=disable"},
		{"redis", "redis://db:6379/2", "db:6379", "redis://far:1/2"},
		{"mysql", "me:it@tcp(db:3306)/app?parseTime=true", "db:3306", "me:it@tcp(far:1)/app?parseTime=true"},
	} {
		address, with, err := split(one.driver, one.source)
		if err != nil || address != one.address {
			t.Errorf("%s: %q, %v", one.source, address, err)
			continue
		}
		if moved := with("far:1"); moved != one.moved {
			t.Errorf("%s: moved is %q", one.source, moved)
		}
	}
	for driver, source := range map[string]string{"pgx": "host=/run dbname=app", "mysql": "me@unix(/run/my.sock)/app"} {
		if _, _, err := split(driver, source); err == nil {
			t.Errorf("%s has no address, and none was missed", source)
		}
	}
}

// A ratio of times of different rounds would be one of what else the machine did.
func TestARatioIsOfTheTimesOfOneRound(t *testing.T) {
	var order []string
	timed := func(name string, times ...time.Duration) *way {
		calls := -2 // it runs in
		return &way{name: name, do: func(context.Context) (sample, error) {
			order = append(order, name)
			calls++
			return sample{times[max(0, calls-1)], 3}, nil
		}}
	}
	raw, ours := timed("raw", 10*time.Millisecond, 100*time.Millisecond), timed("ours", 20*time.Millisecond, 200*time.Millisecond)
	s := settings{rounds: 2, turn: 1}
	if err := s.play(t.Context(), "", []*group{{"", []*way{raw, ours}}}, rig.NewProgress(2)); err != nil {
		t.Fatal(err)
	}
	if r := ours.ratio(raw); r.Least != 2 || r.Most != 2 || len(ours.times) != 2 {
		t.Errorf("the ratio is %v, of %v and %v", r, ours.times, raw.times)
	}
	if ours.trips[0] != 3 {
		t.Errorf("round trips are %v", ours.trips)
	}
	if turns := slices.Compact(order); !slices.Equal(turns, []string{"raw", "ours", "raw", "ours", "raw"}) {
		t.Errorf("the turns are %v", turns)
	}
}

// found are results of ways that all took as long as from so far away.
func found(kinds []string, delays []time.Duration) (all []*result) {
	for _, delay := range delays {
		for _, kind := range kinds {
			f := new(field)
			f.Field, f.own, f.orders, f.pair, f.d = new(section.Field), new(own), new(orders), new(pair), new(rig.Database)
			r := &result{kind: rig.Kind{Name: kind}, delay: delay, groups: f.groups()}
			for _, g := range r.groups {
				for i, w := range g.ways {
					w.times, w.trips = []float64{delay.Seconds() * 1e3 * float64(i+1)}, []float64{float64(i)}
				}
			}
			all = append(all, r)
		}
	}
	return all
}

func TestThePageHasEachWayOfEachDatabaseFromEachDistance(t *testing.T) {
	s := settings{delays: []time.Duration{time.Millisecond, 4 * time.Millisecond}, rounds: 1, out: t.TempDir()}
	all := found([]string{"mariadb", "mysql"}, s.delays)
	if err := publish(s, all); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(s.out, "costs.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{
		"| MySQL | SELECT FOR UPDATE | 1 | 1 | 4 | 1 | 0 |",
		"| MariaDB | server's own lock, a transaction | 2 | 2.00 (2.00–2.00) | 8 | 2.00 (2.00–2.00) | 1 |",
	} {
		if !strings.Contains(string(text), row) {
			t.Errorf("there is no row %s", row)
		}
	}
	for _, g := range all[0].groups {
		for _, w := range g.ways {
			if n := strings.Count(string(text), "| "+w.name+" |"); n < 2 {
				t.Errorf("%s has %d rows", w.name, n)
			}
		}
	}
	for _, c := range []paper.Chart{pictureOfSections, pictureOfWaiting, pictureOfNetwork} {
		link := "](costs/" + c.File + ")"
		if _, err := os.Stat(filepath.Join(s.out, "costs", c.File)); err != nil || !strings.Contains(string(text), link) {
			t.Errorf("%s: %v", c.File, err)
		}
	}
}
