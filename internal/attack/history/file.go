package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// Recorder appends events to a file. Each is one write(2), which a process killed a moment later
// has still made: a buffer in the process would die with it, and the checker would miss what was
// told.
type Recorder struct {
	mu  sync.Mutex
	f   *os.File
	err error
}

// Create makes the file.
func Create(path string) (*Recorder, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_APPEND|os.O_WRONLY, 0o644)
	return &Recorder{f: f}, err
}

// Add appends events. An error of the file is kept for Close.
func (r *Recorder) Add(events ...Event) {
	var lines []byte
	for i := range events {
		line, err := json.Marshal(&events[i])
		if err != nil {
			panic(err) // numbers and strings
		}
		lines = append(append(lines, line...), '\n')
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.f.Write(lines); err != nil && r.err == nil {
		r.err = err
	}
}

// Close returns the first error there was: a history with holes must not pass for a complete one.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.err, r.f.Close())
}

// Tail reads what a Recorder has appended since the last Read.
type Tail struct {
	f    *os.File
	in   *bufio.Reader
	part []byte
}

// Open opens the file of a Recorder that may still be appending.
func Open(path string) (*Tail, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return &Tail{f: f, in: bufio.NewReaderSize(f, 1<<20)}, nil
}

// Read returns the new events. A line without its end is left for the next Read: it is being
// written, or its writer was killed within it.
func (t *Tail) Read() (events []Event, err error) {
	for {
		line, err := t.in.ReadBytes('\n')
		t.part = append(t.part, line...)
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return events, err
		}
		var e Event
		if err := json.Unmarshal(t.part, &e); err != nil {
			return events, fmt.Errorf("%s: %q: %w", t.f.Name(), t.part, err)
		}
		events, t.part = append(events, e), t.part[:0]
	}
}

// Close closes the file.
func (t *Tail) Close() error { return t.f.Close() }
