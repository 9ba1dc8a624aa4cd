// Package notice is the form of what package transition keeps in the lock table, and the doctor
// reads. A notice is a lease that no process renews or releases: it outlives all processes, as a
// row that the reaper removes an hour after its end would not.
package notice

import (
	"strings"
	"time"
)

// What a notice says of a transition: when the first process began with Both, or with New, and when
// an old process was last seen.
const (
	Both = "since both"
	New  = "since new"
	Seen = "seen"
)

const (
	// Prefix begins the key of each notice.
	Prefix = "rowlock transition/"
	// TTL is that of the lease.
	TTL = 10 * 365 * 24 * time.Hour
	// Quiet is the default of transition.Config.Quiet.
	Quiet = time.Hour
)

// Key returns the key of a notice.
func Key(transition, what string) string { return Prefix + transition + "/" + what }

// Parse takes a key of Key apart. Of another key what is "".
func Parse(key string) (transition, what string) {
	rest, ours := strings.CutPrefix(key, Prefix)
	at := strings.LastIndexByte(rest, '/')
	if !ours || at < 0 {
		return "", ""
	}
	return rest[:at], rest[at+1:]
}

// Age returns how long ago a notice was made or renewed, of which the lease lasts for so long yet.
func Age(remaining time.Duration) time.Duration { return max(TTL-remaining, time.Microsecond) }
