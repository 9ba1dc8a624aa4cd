package cli

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/target"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/schema"
	"github.com/spf13/cobra"
)

func (p *program) migrate() *cobra.Command {
	c := &cobra.Command{
		Use:   "migrate",
		Short: "Make, remove, look at or print the tables",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return usage("migrate: say up, down, status or sql")
		},
	}
	c.AddCommand(p.migrateUp(), p.migrateDown(), p.migrateStatus(), p.migrateSQL())
	return c
}

func (p *program) migrateUp() *cobra.Command {
	var create bool
	var sets []schema.Set
	c := &cobra.Command{
		Use:   "up",
		Short: "Make the tables, or bring them to this version",
		Long: long(`
Make the tables, or bring them to the version of this program. It may run in any number of processes
at once and any number of times, and is undone if it is interrupted. With --set it makes the sets of
tables that are named, and core, and brings those that are there to this version.`),
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if create {
				if err := p.settings.Create(); err != nil {
					return err
				}
			}
			up := func(ctx context.Context, db schema.DB, d dialect.Dialect) error {
				return schema.Migrate(ctx, db, d, sets...)
			}
			return p.migrated(c.Context(), up, fmt.Sprintf("tables at version %d", schema.Version))
		},
	}
	c.Flags().BoolVar(&create, "create", false, "make the SQLite file if it is missing")
	setFlag(c, &sets)
	return c
}

func setFlag(c *cobra.Command, sets *[]schema.Set) {
	// A StringSlice would take an empty value for no set, and no set is all.
	c.Flags().Func("set", "sets of tables, between commas: core, shared, once, latch, forupdate, trace (default all)",
		func(value string) error {
			for name := range strings.SplitSeq(value, ",") {
				*sets = append(*sets, schema.Set(name))
			}
			return nil
		})
}

func (p *program) migrateDown() *cobra.Command {
	return p.removal("down", "Remove the tables, and keep which tokens were granted", schema.Down, `
Remove the tables, except rowlock_floor and rowlock_meta, in which it keeps which tokens were granted:
after another "migrate up" tokens go on above them. It refuses while the tables guard something: a
lock, a slot, a result of once, a latch. "rowlock uninstall" removes all.`)
}

func (p *program) uninstall() *cobra.Command {
	return p.removal("uninstall", "Remove all tables, with every lock and every token", schema.Uninstall, `
Remove all tables, with every lock, every result of once and every token. Stop the clients first, and
fence nothing afterwards with a token from before: new tables may grant it again.`)
}

func (p *program) removal(
	name, short string, do func(context.Context, schema.DB, dialect.Dialect) error, text string,
) *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use: name + " --yes", Short: short, Long: long(text), Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if !yes {
				return usage("%s cannot be undone: say --yes if you mean it", name)
			}
			return p.migrated(c.Context(), do, "tables removed")
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "remove them")
	return c
}

func (p *program) migrateSQL() *cobra.Command {
	var down bool
	var sets []schema.Set
	c := &cobra.Command{
		Use:   "sql",
		Short: "Print the SQL that makes the tables, for your migration tool",
		Long: long(`
Print the SQL that makes the tables, or with --down removes them as "migrate down" does. It connects to
nothing: of --dsn only the kind counts.`),
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			d, _, err := p.settings.Dialect()
			if err != nil {
				return err
			}
			up, drop, err := schema.SQL(d, sets...)
			if down {
				up = drop
			}
			if err == nil {
				p.out.Line("%s", up)
			}
			return err
		},
	}
	c.Flags().BoolVar(&down, "down", false, "the SQL that removes them")
	setFlag(c, &sets)
	return c
}

func (p *program) migrated(
	ctx context.Context, do func(context.Context, schema.DB, dialect.Dialect) error, done string,
) error {
	t, end, err := p.connect(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err := do(ctx, t.DB, t.Dialect); err != nil {
		return err
	}
	p.out.Line("%s: %s", t.Name, done)
	return nil
}

func (p *program) migrateStatus() *cobra.Command {
	return p.listed(&cobra.Command{
		Use:   "status",
		Short: "Compare the tables with this program",
		Long:  long("Compare the tables' version with the one that this program needs."),
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return p.status(c.Context()) },
	})
}

func (p *program) status(ctx context.Context) error {
	t, _, end, err := p.table(ctx)
	state := "up to date"
	if err == nil {
		defer end()
	}
	var unreachable *target.UnreachableError
	switch {
	case errors.As(err, &unreachable) || errors.Is(err, lease.ErrConfig):
		return err
	case err != nil:
		state = keytext.Error(err)
	}
	if p.out.IsJSON() {
		printed := p.out.JSON(struct {
			Wants int    `json:"wants_version"`
			OK    bool   `json:"ok"`
			State string `json:"state"`
		}{schema.Version, err == nil, state})
		if err == nil {
			return printed
		}
		return &exitError{code: exitCode(err)} // it was printed already
	}
	if err != nil {
		return err
	}
	p.out.Line("%s: %s, version %d", t.Name, state, schema.Version)
	return nil
}

func (p *program) version() *cobra.Command {
	return p.listed(&cobra.Command{
		Use:   "version",
		Short: "Print the versions of this program and of its tables",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v, goVersion := "(devel)", ""
			if info, ok := debug.ReadBuildInfo(); ok {
				v, goVersion = info.Main.Version, info.GoVersion
			}
			if p.out.IsJSON() {
				return p.out.JSON(map[string]any{
					"version": v, "go": goVersion, "schema_version": schema.Version,
				})
			}
			p.out.Line("rowlock %s, tables of version %d, %s", v, schema.Version, goVersion)
			return nil
		},
	})
}
