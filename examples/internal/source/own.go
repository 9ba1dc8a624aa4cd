package source

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/examples/internal/command"
	"github.com/rowlockdb/rowlock/schema"
)

// Own is a database in which a program leaves nothing behind: all its tables have a prefix that is
// new every time, so that they can meet neither yours nor those of another run.
type Own struct {
	*DB
	Prefix string
	file   string // made by us; or none
}

// OpenOwn opens source and makes rowlock's tables.
func OpenOwn(ctx context.Context, source, program string) (o *Own, err error) {
	o = &Own{Prefix: program + "_" + strings.ToLower(rand.Text()[:6]) + "_"}
	if _, err := os.Stat(source); source != "" && errors.Is(err, fs.ErrNotExist) && !strings.Contains(source, "://") {
		o.file = source
	}
	if o.DB, err = Open(ctx, source, dialect.Prefix(o.Prefix)); err != nil {
		return nil, errors.Join(err, o.removeFile())
	}
	if err = schema.Migrate(ctx, o.DB.DB.DB, o.Dialect); err != nil {
		return nil, errors.Join(err, o.Remove(ctx))
	}
	return o, nil
}

// Table is the full name of one of the program's own tables.
func (o *Own) Table(name string) string { return o.Prefix + name }

// Remove drops the program's tables and rowlock's and closes the database. It works even if ctx has
// ended: that is how an interrupted run comes here.
func (o *Own) Remove(ctx context.Context, tables ...string) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	for _, name := range tables {
		_, dropped := o.ExecContext(ctx, `DROP TABLE IF EXISTS `+o.Table(name))
		err = errors.Join(err, dropped)
	}
	err = errors.Join(err, schema.Uninstall(ctx, o.DB.DB.DB, o.Dialect), o.Close(), o.removeFile())
	if err != nil {
		return fmt.Errorf("%w, tables %s* in %s: %w", command.ErrLeft, o.Prefix, o.Shown(), err)
	}
	return nil
}

func (o *Own) removeFile() (err error) {
	if o.file == "" {
		return nil
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if e := os.Remove(o.file + suffix); !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}
