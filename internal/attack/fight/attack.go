//go:build linux

package fight

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/rowlockdb/rowlock/internal/attack/check"
	"github.com/rowlockdb/rowlock/internal/attack/history"
)

// run is one attack.
type run struct {
	settings
	folder   string
	database Database
	db       *sql.DB
	plan     Plan
	team     *Team
	start    int64
	events   []history.Event
	slowed   slowdown
}

// attack starts the processes, makes their lives hard, and judges what they were told.
func attack(ctx context.Context, s settings) (err error) {
	r := &run{settings: s}
	if r.folder, err = os.MkdirTemp("", "rowlock-attack-"); err != nil {
		return err
	}
	if r.database, err = find(s.db, r.folder); err != nil {
		return err
	}
	if r.db, err = r.database.Open(5); err != nil {
		return err
	}
	defer r.db.Close()
	err = r.database.AddTenant(ctx, r.db)
	if err == nil {
		err = r.database.Create(ctx, r.db)
	}
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, r.database.Drop(context.WithoutCancel(ctx), r.db))
		err = errors.Join(err, r.tidy(err))
	}()
	r.plan = newPlan(s)
	if err := r.database.Counters(ctx, r.db, r.allKeys()); err != nil {
		return err
	}
	if s.protects() {
		if err := r.database.protect(ctx, r.db); err != nil {
			return err
		}
	}
	fmt.Printf("attack: %s, %s, seed %d\n", r.what(), s.length, s.seed)
	if err := r.fight(ctx); err != nil {
		return err
	}
	return r.judge(ctx)
}

// what is the name of what is attacked.
func (r *run) what() string {
	if r.bridge {
		return r.settings.db + " with a bridge to etcd"
	}
	return r.settings.db
}

// allKeys are those of the plan, each once.
func (r *run) allKeys() (list []string) {
	seen := make(map[string]bool)
	for _, p := range r.plan.Phases {
		for _, c := range p.Crews {
			for _, key := range r.keysOf(c) {
				if !seen[key] {
					seen[key] = true
					list = append(list, key)
				}
			}
		}
	}
	return list
}

// keysOf knows what a hand calls its own key.
func (r *run) keysOf(c Crew) []string {
	if !c.Own {
		return c.Keys
	}
	var own []string
	for w := range r.workers {
		for life := range mostLives {
			own = append(own, fmt.Sprintf("%s%d.%d", c.Keys[0], w, life))
		}
	}
	return own
}

// fight runs all phases, and returns when the processes are gone and their records are read.
func (r *run) fight(ctx context.Context) (err error) {
	etcd := ""
	if r.bridge {
		if etcd = os.Getenv("ROWLOCK_TEST_ETCD"); etcd == "" {
			return errors.New("ROWLOCK_TEST_ETCD is not set; run scripts/with-servers etcd … -- …")
		}
	}
	r.team = NewTeam(r.folder, Job{Database: r.database, Etcd: etcd, Plan: r.plan}, r.workers)
	defer r.team.Kill()
	if err := r.team.Start(); err != nil {
		return err
	}
	if r.start, err = r.team.Begin(ctx, &r.plan); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	slowing := make(chan struct{})
	r.slowed = slowdown{
		plan: &r.plan, team: r.team, database: r.database.Name, bridge: r.bridge, db: r.db, prefix: r.database.Prefix,
	}
	go func() { defer close(slowing); r.slowed.run(ctx) }()
	beside := make(chan error, 1)
	if r.database.Pooled {
		go func() { beside <- r.neighbour(ctx) }()
	} else {
		beside <- nil
	}
	err = r.follow(ctx)
	stop()
	<-slowing
	return errors.Join(err, <-beside)
}

// judge checks the history and prints what was found.
func (r *run) judge(ctx context.Context) error {
	rows, counters, err := r.database.Read(ctx, r.db)
	if err != nil {
		return err
	}
	in := &check.Input{Events: r.events, Journal: rows, Counters: counters, Healthy: make(map[int]bool), Killed: r.team.WasKilled()}
	if in.Left, err = r.database.Held(ctx, r.db); err != nil {
		return err
	}
	for i, p := range r.plan.Phases {
		if r.first && len(check.Calls(r.events).Violations) > 0 {
			break // a run that was cut short need not have had them all
		}
		in.Writes = in.Writes || p.Name == "mixed" || p.Name == "sections" || p.Name == "calm"
		in.HandOvers = in.HandOvers || p.Name == "sections" && r.database.Name == "postgres" && !r.bridge
		in.Protected = in.Protected || p.Name == "mixed" && r.protects()
		in.Phases = append(in.Phases, p.Name)
		in.Healthy[i] = p.Slow.healthy()
	}
	report := check.All(in)
	if err := r.print(report, len(rows)); err != nil {
		return err
	}
	if len(report.Violations) > 0 {
		return fmt.Errorf("%w %d times; the plan: make attack SEED=%d", errViolated, len(report.Violations), r.seed)
	}
	return nil
}

// tidy removes the records, except those of a violation or where -keep is set.
func (r *run) tidy(err error) error {
	if r.keep || errors.Is(err, errViolated) {
		fmt.Println("records:", r.folder)
		return nil
	}
	return os.RemoveAll(r.folder)
}

// pids are the processes of the servers, from the environment that scripts/with-servers makes.
func pids(name string) []string {
	return strings.FieldsFunc(os.Getenv("ROWLOCK_TEST_"+strings.ToUpper(name)+"_PID"), func(c rune) bool { return c == ',' || c == ' ' })
}
