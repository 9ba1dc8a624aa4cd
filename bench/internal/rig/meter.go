package rig

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
)

// Meter reads what a turn costs besides time. What it is not told of costs NaN.
type Meter struct {
	PID  int   // the server's process; its children count too
	Wire *Wire // the client's connections
	// Log returns how many bytes the server has written to its log so far.
	Log func(ctx context.Context) (int64, error)
}

// Cost is what one pair costs. NaN is not known.
type Cost struct {
	Server, Client float64 // µs of processors
	Log            float64 // bytes
	Trips          float64
	Objects        float64 // allocated by this process
}

type reading struct {
	server, client time.Duration
	log, trips     int64
	objects        uint64
}

// Begin reads before a turn. What it returns reads after it, and returns the cost of each of the
// pairs that were done. The reading's own statement does not count.
func (m *Meter) Begin(ctx context.Context) (end func(pairs int64) (Cost, error), err error) {
	var before, after reading
	if err := m.slow(ctx, &before); err != nil {
		return nil, err
	}
	m.fast(&before)
	return func(pairs int64) (Cost, error) {
		m.fast(&after)
		if err := m.slow(ctx, &after); err != nil {
			return Cost{}, err
		}
		return m.cost(&before, &after, pairs), nil
	}, nil
}

func (m *Meter) fast(r *reading) {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	r.trips, r.client, r.objects = m.Wire.Trips(), CPU(), memory.Mallocs
}

func (m *Meter) slow(ctx context.Context, r *reading) (err error) {
	if m.PID > 0 {
		if r.server, err = TreeCPU(m.PID); err != nil {
			return err
		}
	}
	if m.Log != nil {
		r.log, err = m.Log(ctx)
	}
	return err
}

func (m *Meter) cost(before, after *reading, pairs int64) Cost {
	known := func(yes bool, n float64) float64 {
		if !yes || pairs < 1 {
			return math.NaN()
		}
		return n / float64(pairs)
	}
	return Cost{
		Server:  known(m.PID > 0, float64((after.server - before.server).Microseconds())),
		Client:  known(true, float64((after.client - before.client).Microseconds())),
		Log:     known(m.Log != nil, float64(after.log-before.log)),
		Trips:   known(m.Wire != nil, float64(after.trips-before.trips)),
		Objects: known(true, float64(after.objects-before.objects)),
	}
}

// tick is the unit of times in /proc, the same on all Linux kernels that Go runs on.
const tick = 10 * time.Millisecond

// TreeCPU is the processors' time of a process, its living descendants, and those that have ended
// and were waited for: PostgreSQL has a process for each connection.
func TreeCPU(root int) (time.Duration, error) {
	stats, err := tree(root)
	ticks := 0
	for _, s := range stats {
		ticks += int(s.UTime) + int(s.STime) + s.CUTime + s.CSTime
	}
	return time.Duration(ticks) * tick, err
}

// TreeMemory is the memory of a process and its living descendants in bytes. What several of them
// have in common, as PostgreSQL's have their buffers, counts once.
func TreeMemory(root int) (sum int64, err error) {
	stats, err := tree(root)
	for pid := range stats {
		p, err := procfs.NewProc(pid)
		if err != nil {
			continue // it has just ended
		}
		if m, err := p.ProcSMapsRollup(); err == nil {
			sum += int64(m.Pss)
		}
	}
	return sum, err
}

// tree is a process and its living descendants.
func tree(root int) (map[int]procfs.ProcStat, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return nil, err
	}
	stats := make(map[int]procfs.ProcStat)
	for _, p := range all {
		if s, err := p.Stat(); err == nil { // else it has just ended
			stats[p.PID] = s
		}
	}
	if _, ok := stats[root]; !ok {
		return nil, fmt.Errorf("the server's process %d is not there", root)
	}
	for pid := range maps.Clone(stats) {
		if !descends(stats, pid, root) {
			delete(stats, pid)
		}
	}
	return stats, nil
}

func descends(stats map[int]procfs.ProcStat, pid, root int) bool {
	for pid > 1 && pid != root {
		pid = stats[pid].PPID
	}
	return pid == root
}

// ServerPID is the process that scripts/with-servers says a server is, or 0.
func ServerPID(name string) int {
	pid, _ := strconv.Atoi(os.Getenv("ROWLOCK_TEST_" + strings.ToUpper(name) + "_PID"))
	return pid
}

// logs are the statements that say how many bytes of log a server has written, by driver.
var logs = map[string]string{
	"pgx":   `SELECT 'wal', (pg_current_wal_insert_lsn() - '0/0')::bigint`,
	"mysql": `SHOW GLOBAL STATUS LIKE 'Innodb_os_log_written'`,
}

// Meter reads the costs of turns on d's server. SQLite has none.
func (d *Database) Meter() *Meter {
	m := &Meter{PID: ServerPID(d.Name), Wire: d.Wire}
	if query := logs[d.Driver]; query != "" {
		m.Log = func(ctx context.Context) (n int64, err error) {
			var name string
			err = d.Pool.QueryRowContext(ctx, query).Scan(&name, &n)
			return n, err
		}
	}
	return m
}

// Known is the median of those values that are known, or NaN.
func Known(costs []Cost, of func(Cost) float64) float64 {
	var known []float64
	for _, c := range costs {
		if v := of(c); cmp.Compare(v, math.Inf(-1)) > 0 { // NaN is less than anything
			known = append(known, v)
		}
	}
	if len(known) == 0 {
		return math.NaN()
	}
	return Median(known)
}
