package movetest

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// told is how long a key must have been unavailable for the record to keep what went on meanwhile.
const told = 3 * time.Second

// record is what the movers, the clients and the disturbances were answered, as long as it can
// explain why a key is unavailable: since the first of the keys was got last.
type record struct {
	mu      sync.Mutex
	began   time.Time
	whole   time.Time // since when nothing is broken; zero while something is
	lines   []line
	last    [keys]time.Time // when a key was got last
	longest time.Duration   // that a key was unavailable
	idle    time.Duration   // the same while nothing was broken
	during  []line          // the longest
	which   int
}

type line struct {
	at   time.Time
	key  int // or all
	text string
}

const all = -1

func newRecord() *record {
	r := &record{began: time.Now()}
	r.whole = r.began
	for i := range r.last {
		r.last[i] = r.began
	}
	return r
}

// note keeps an answer, with how long it has taken. An error's text can be very long.
func (r *record) note(key int, began time.Time, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	text = text[:min(len(text), 400)]
	r.lines = append(r.lines, line{time.Now(), key, fmt.Sprintf("%s, after %v", text, since(began))})
}

func since(at time.Time) time.Duration { return time.Since(at).Round(time.Millisecond) }

// got notes that a key was available.
func (r *record) got(key int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.judge(key, now)
	r.last[key] = now
	r.forget()
}

// breaks notes that something is broken from now on, until it is mended.
func (r *record) breaks() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.last {
		r.judge(key, time.Now())
	}
	r.whole = time.Time{}
}

func (r *record) mended() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.whole = time.Now()
}

// judge compares how long a key has been unavailable until now with the longest times before.
func (r *record) judge(key int, now time.Time) {
	began := r.last[key]
	if gap := now.Sub(began); gap > r.longest {
		r.longest, r.which = gap, key
		r.during = r.during[:0]
		for _, l := range r.lines {
			if gap > told && l.at.After(began) && (l.key == key || l.key == all) {
				r.during = append(r.during, l)
			}
		}
	}
	if r.whole.IsZero() {
		return
	}
	if r.whole.After(began) {
		began = r.whole
	}
	r.idle = max(r.idle, now.Sub(began))
}

// available reports whether each key was got since the last was mended.
func (r *record) available() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, at := range r.last {
		if at.Before(r.whole) {
			return false
		}
	}
	return true
}

// forget keeps no line that no gap can have any more.
func (r *record) forget() {
	oldest := r.last[0]
	for _, at := range r.last[1:] {
		if at.Before(oldest) {
			oldest = at
		}
	}
	n := 0
	for n < len(r.lines) && r.lines[n].at.Before(oldest) {
		n++
	}
	r.lines = r.lines[n:]
}

// explain is what went on while a key was unavailable for the longest time.
func (r *record) explain() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "%s was unavailable for %v", name(r.which), r.longest.Round(time.Millisecond))
	for _, l := range r.during {
		fmt.Fprintf(&b, "\n  %9v %s", l.at.Sub(r.began).Round(time.Millisecond), l.text)
	}
	return b.String()
}
