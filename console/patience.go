package console

import (
	"context"
	"errors"
	"time"

	"github.com/rowlockdb/rowlock/internal/shown"
)

// patience bounds one reading, and the wait for it to begin.
const patience = shown.Patience

// opening is how many pages are read at a time because a viewer opens them. More would take the
// connections of the application's pool.
const opening = 3

// errBusy is of a page whose reading could not begin.
var errBusy = errors.New("rowlock: too many pages are opened at once")

// longPatience bounds a check of the database's settings, and how often it is made.
const longPatience = 30 * time.Second

// keeps is how long what was read is passed to viewers who come later.
func (f *feed) keeps(v view, read *frame) time.Duration {
	if v.page == pageFindings && read.err == nil {
		return max(f.every, longPatience)
	}
	return f.every
}

// opened reads a view for a viewer who opens a page.
func (f *feed) opened(v view) *frame {
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case f.slots <- struct{}{}:
	case <-late.C:
		return &frame{err: errBusy, at: time.Now()}
	}
	defer func() { <-f.slots }()
	fr, _ := f.once(v)
	return fr
}

func (f *feed) once(v view) (*frame, int) {
	bound := patience
	if v.page == pageFindings {
		bound = longPatience
	}
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	return f.read(ctx, v)
}
