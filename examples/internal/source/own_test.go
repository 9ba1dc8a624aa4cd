package source_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/rowlockdb/rowlock/examples/internal/command"
	"github.com/rowlockdb/rowlock/examples/internal/program"
	"github.com/rowlockdb/rowlock/examples/internal/source"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// What an interrupted run comes to: its context has ended.
func TestRemoveLeavesNothing(t *testing.T) {
	for _, k := range testdb.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			name := program.Fresh(t, k)
			ctx, cancel := context.WithCancel(t.Context())
			o, err := source.OpenOwn(ctx, name, "own")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := o.Exec(`CREATE TABLE ` + o.Table("things") + ` (id BIGINT)`); err != nil {
				t.Fatal(err)
			}
			cancel()
			if err := o.Remove(ctx, "things"); err != nil {
				t.Fatal(err)
			}
			program.LeavesNoTables(t, name)
		})
	}
}

func TestAFileThatWasThereStays(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "app.db")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := source.OpenOwn(t.Context(), name, "own")
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(name); err != nil {
		t.Error(err)
	}
}

func TestWhatCannotBeRemovedIsNamed(t *testing.T) {
	t.Parallel()
	o, err := source.OpenOwn(t.Context(), "", "own")
	if err != nil {
		t.Fatal(err)
	}
	_ = o.DB.DB.Close()
	if err := o.Remove(t.Context()); !errors.Is(err, command.ErrLeft) {
		t.Errorf("got %v", err)
	}
}
