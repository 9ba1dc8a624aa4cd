package doctor

import (
	"cmp"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// Options configure Examine. nil and the zero value have the defaults.
type Options struct {
	// Only and Skip are ids of checks: only these are made, or all but these.
	Only, Skip []string
	// Limit bounds each check; 0 means 5 s.
	Limit time.Duration
	// ClockFor is how long the server's clock is watched for its drift; 0 means 1 s.
	ClockFor time.Duration
	// TTL and Connections are those of the clients' Config; 0 means its defaults, 30 s and 3 (SQLite:
	// 1).
	TTL         time.Duration
	Connections int
	// Retention is that of the clients' Config.Reaper; 0 means 1 h.
	Retention time.Duration
	// OldTransaction is the age from which an open transaction is reported; 0 means 10 min.
	OldTransaction time.Duration
}

func (o *Options) filled(oneWriter bool) (Options, error) {
	out := *cmp.Or(o, new(Options))
	for name, d := range map[string]time.Duration{
		"Limit": out.Limit, "ClockFor": out.ClockFor, "TTL": out.TTL, "Retention": out.Retention,
		"OldTransaction": out.OldTransaction, "Connections": time.Duration(out.Connections),
	} {
		if d < 0 {
			return out, fmt.Errorf("%w: doctor: Options.%s is negative; leave it 0 for the default",
				lease.ErrConfig, name)
		}
	}
	out.Limit = cmp.Or(out.Limit, 5*time.Second)
	out.ClockFor = cmp.Or(out.ClockFor, time.Second)
	out.TTL = cmp.Or(out.TTL, 30*time.Second)
	out.Retention = cmp.Or(out.Retention, time.Hour)
	out.OldTransaction = cmp.Or(out.OldTransaction, 10*time.Minute)
	connections := 3
	if oneWriter {
		connections = 1
	}
	out.Connections = cmp.Or(out.Connections, connections)
	return out, nil
}
