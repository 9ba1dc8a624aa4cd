// Package setting is rowlock as benchmarks configure it.
package setting

import (
	"log/slog"
	"reflect"

	"github.com/rowlockdb/rowlock"
)

// durable is the field of Config that has a release wait for the disk. Without it every release
// does. The field is looked up by its name because rowlock may not have it.
const durable = "DurableRelease"

// CanRelax is true if a release may be relaxed: it need not wait for the disk.
func CanRelax() bool {
	f, ok := reflect.TypeFor[rowlock.Config]().FieldByName(durable)
	return ok && f.Type.Kind() == reflect.Bool
}

// Config is a client's. The reaper, which benchmarks do not time, is off.
func Config(lanes int, relaxed bool) *rowlock.Config {
	c := &rowlock.Config{
		Lanes: lanes, Logger: slog.New(slog.DiscardHandler), Reaper: rowlock.ReaperConfig{Off: true},
	}
	if CanRelax() {
		reflect.ValueOf(c).Elem().FieldByName(durable).SetBool(!relaxed)
	}
	return c
}
