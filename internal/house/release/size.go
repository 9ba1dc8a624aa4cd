package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rowlockdb/rowlock/internal/house/figures"
)

// mostGrowth is by how many bytes locks may make an application larger, without its symbols.
const mostGrowth = 3_500_000

// drivers are of each database: how database/sql knows it, and what is imported for that.
var drivers = map[string][2]string{
	"postgres": {"pgx", "github.com/jackc/pgx/v5/stdlib"},
	"mysql":    {"mysql", "github.com/go-sql-driver/mysql"},
	"sqlite":   {"sqlite", "modernc.org/sqlite"},
}

// using is a program that uses the database alone, and locking is what it has besides with locks.
const (
	using = `package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"

	_ %q
	%s
)

func main() {
	ctx := context.Background()
	db, err := sql.Open(%q, os.Args[1])
	if err == nil {
		_, err = db.ExecContext(ctx, "SELECT 1")
	}
	fmt.Println(err)
	%s
}
`
	locking = `locks, err := rowlock.Open(db, dialect.New(), nil)
	fmt.Println(err, locks.Do(ctx, "key", func(ctx context.Context, l *rowlock.Lock) error {
		return l.DoTx(ctx, func(ctx context.Context, tx *sql.Tx) error { return nil })
	}))`
)

// sizes fails if locks make an application larger than they may.
func (r *release) sizes(ctx context.Context, folder string) error {
	var failed []error
	for _, database := range dialects {
		var plain, locked int64
		err := step("the size of an application on "+database, func() (err error) {
			d := drivers[database]
			imports := fmt.Sprintf("%q\n\tdialect %q", figures.Module, figures.Module+"/dialect/"+database)
			plain, err = r.size(ctx, filepath.Join(folder, database), fmt.Sprintf(using, d[1], "", d[0], ""))
			if err == nil {
				locked, err = r.size(ctx, filepath.Join(folder, database+"-locked"), fmt.Sprintf(using, d[1], imports, d[0], locking))
			}
			return err
		})
		if err != nil {
			return err
		}
		fmt.Printf("  %d bytes, and %d more with locks\n", plain, locked-plain)
		if locked-plain > mostGrowth {
			failed = append(failed, fmt.Errorf("locks on %s add %d bytes to an application, and may add %d", database, locked-plain, mostGrowth))
		}
	}
	return errors.Join(failed...)
}

// size is that of a program without its symbols, as it is deployed.
func (r *release) size(ctx context.Context, folder, program string) (int64, error) {
	if err := application(folder, program); err != nil {
		return 0, err
	}
	for _, args := range [][]string{
		{"get", figures.Module + "@" + r.version},
		{"build", "-trimpath", "-ldflags=-s -w", "-o", "application", "."},
	} {
		if _, err := r.command(ctx, folder, "go", args...); err != nil {
			return 0, err
		}
	}
	info, err := os.Stat(filepath.Join(folder, "application"))
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
