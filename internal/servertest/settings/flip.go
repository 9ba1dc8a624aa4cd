package settings

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// Flip is a setting with another value than usual.
type Flip struct{ Name, Value string }

func (f Flip) String() string { return f.Name + " = " + f.Value }

// Opener opens a pool on which every connection has settings, and is to be closed before another is
// opened.
type Opener func(ctx context.Context, flips []Flip) (*sql.DB, error)

// Tries is how settings are tried: all of a list at once, and halves of it if something is wrong.
type Tries struct {
	Env  *testdb.Env
	Open Opener
	// Undo takes back what Open has set of the server: nil if that sets of connections alone.
	Undo func(ctx context.Context) error
	// Connections says of a setting that the application's own transactions are what it makes of them.
	Connections func(name string) bool
	// Checked says of a setting that Open may refuse it, and then names it.
	Checked func(name string) bool
}

// Run returns what is wrong under each of the settings that make something wrong.
func (t *Tries) Run(ctx context.Context, flips []Flip) (wrong []error) {
	var alone, app, connections []Flip
	for _, f := range flips {
		switch {
		case t.Checked(f.Name):
			alone = append(alone, f)
		case t.Connections(f.Name):
			connections = append(connections, f)
		default:
			app = append(app, f)
		}
	}
	for _, f := range alone {
		wrong = append(wrong, t.refused(ctx, f))
	}
	wrong = append(wrong, t.halve(ctx, app, Conform)...)
	wrong = append(wrong, t.halve(ctx, connections, ConformPinned)...)
	writing := slices.DeleteFunc(slices.Clone(connections), readOnly)
	wrong = append(wrong, t.halve(ctx, writing, Migrations)...)
	for _, f := range connections {
		if !readOnly(f) {
			continue
		}
		if err := t.try(ctx, []Flip{f}, Migrations); err != nil && !errors.Is(err, lease.ErrReadOnly) {
			wrong = append(wrong, fmt.Errorf("%s: %w", f, err))
		}
	}
	return wrong
}

// readOnly tells of settings under which a migration may be refused.
func readOnly(f Flip) bool { return strings.HasSuffix(f.Name, "read_only") }

type conform func(ctx context.Context, db *sql.DB, seen, clean *testdb.Env) error

// halve finds the settings under which something is wrong. One name has one value at a time.
func (t *Tries) halve(ctx context.Context, flips []Flip, run conform) (wrong []error) {
	for len(flips) > 0 {
		var now, later []Flip
		names := make(map[string]bool)
		for _, f := range flips {
			if names[f.Name] {
				later = append(later, f)
				continue
			}
			names[f.Name] = true
			now = append(now, f)
		}
		wrong = append(wrong, t.bisect(ctx, now, run)...)
		flips = later
	}
	return wrong
}

func (t *Tries) bisect(ctx context.Context, flips []Flip, run conform) []error {
	err := t.try(ctx, flips, run)
	switch {
	case err == nil:
		return nil
	case len(flips) == 1:
		return []error{fmt.Errorf("%s: %w", flips[0], err)}
	}
	half := len(flips) / 2
	wrong := append(t.bisect(ctx, flips[:half], run), t.bisect(ctx, flips[half:], run)...)
	if wrong == nil {
		wrong = []error{fmt.Errorf("%v together: %w", flips, err)}
	}
	return wrong
}

// patience ends a conformance that hangs. The longest takes a few seconds on a machine that does
// nothing else, and over a minute where every plan is compiled beside the tests of four databases.
const patience = 10 * time.Minute

// try runs a conformance under settings.
func (t *Tries) try(ctx context.Context, flips []Flip, run conform) (err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if t.Undo != nil {
		defer func() { err = errors.Join(err, t.Undo(context.WithoutCancel(ctx))) }()
	}
	db, err := t.Open(ctx, flips)
	if err != nil {
		return err
	}
	return errors.Join(run(ctx, db, t.Env, t.Env), db.Close())
}

// refused wants everything right, or a refusal that names the setting.
func (t *Tries) refused(ctx context.Context, f Flip) error {
	err := t.try(ctx, []Flip{f}, Conform)
	if err == nil {
		return nil
	}
	if !errors.As(err, new(Refused)) || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(f.Name)) {
		return fmt.Errorf("%s: %w, and not a refusal that names it", f, err)
	}
	return nil
}
