package cli

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/listing"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/schema"
	"github.com/spf13/cobra"
)

func (p *program) protect() *cobra.Command {
	var to schema.Protection
	var sql bool
	c := &cobra.Command{
		Use:   "protect TABLE --key KEY",
		Short: "Have a table refuse writers without a fence",
		Long: long(`
Have the database refuse what is written to a table in a transaction that has not fenced the lock of
each row: --key account/{id} is the lock with the row's id in its key. A key without a column is
that of the whole table, and account/* any that begins so. On MySQL and MariaDB it is sound for
transactions of DoTx, and advisory for a Fence by hand. See docs/protect.md.

Begin with --warn-only, and look at who writes without a fence: rowlock protect ls.`),
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			to.Table = args[0]
			if to.Key == "" {
				return usage("protect %s: say which lock a row needs: --key account/{id}", to.Table)
			}
			if sql {
				return p.printProtection(to)
			}
			return p.migrated(c.Context(), func(ctx context.Context, db schema.DB, d dialect.Dialect) error {
				return schema.Protect(ctx, db, d, to)
			}, to.Table+" is protected by "+listing.Plain(to.Key))
		},
	}
	flags := c.Flags()
	flags.StringVar(&to.Key, "key", "", "the key of a row's lock, with columns in braces")
	flags.StringSliceVar(&to.Exempt, "exempt", nil, "roles that write without a fence when they have logged in")
	flags.BoolVar(&to.WarnOnly, "warn-only", false, "refuse nothing, and count who writes without a fence")
	flags.BoolVar(&sql, "sql", false, "print the SQL for your migration tool instead: protect, and unprotect after it")
	c.AddCommand(p.protected())
	return c
}

func (p *program) printProtection(to schema.Protection) error {
	d, _, err := p.settings.Dialect()
	if err != nil {
		return err
	}
	up, down, err := schema.ProtectSQL(d, to)
	if err == nil {
		p.out.Line("-- +goose Up\n%s\n-- +goose Down\n%s", up, strings.TrimSuffix(down, "\n"))
	}
	return err
}

func (p *program) unprotect() *cobra.Command {
	return &cobra.Command{
		Use:   "unprotect TABLE",
		Short: "Have a table written as before",
		Long:  long("Remove what protect has made for a table, and what it has counted."),
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return p.migrated(c.Context(), func(ctx context.Context, db schema.DB, d dialect.Dialect) error {
				return schema.Unprotect(ctx, db, d, args[0])
			}, args[0]+" is not protected any more")
		},
	}
}

func (p *program) protected() *cobra.Command {
	return p.listed(&cobra.Command{
		Use:   "ls",
		Short: "List protected tables, and who writes without a fence",
		Long: long(`
List the tables that are protected, and of those with --warn-only how many statements were without a
fence, and whose.`),
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			t, end, err := p.connect(c.Context())
			if err != nil {
				return err
			}
			defer end()
			all, err := schema.Protected(c.Context(), t.DB, t.Dialect)
			if err != nil {
				return err
			}
			return p.printProtected(all)
		},
	})
}

type protectedTable struct {
	Table    string           `json:"table"`
	Key      string           `json:"key"`
	State    string           `json:"state"`
	Exempt   []string         `json:"exempt,omitempty"`
	Unfenced int64            `json:"unfenced"`
	Writers  []unfencedWriter `json:"writers,omitempty"`
}

type unfencedWriter struct {
	Role        string    `json:"role"`
	Application string    `json:"application"`
	Key         string    `json:"key"`
	Query       string    `json:"query"`
	Seen        int64     `json:"seen"`
	Last        time.Time `json:"last"`
}

func (p *program) printProtected(all []schema.ProtectedTable) error {
	tables := make([]protectedTable, len(all))
	var rows [][]string
	for i, t := range all {
		state := "refuses"
		switch {
		case len(t.Missing) > 0:
			state = "OFF for " + strings.Join(t.Missing, ", ")
		case t.WarnOnly:
			state = "counts"
		}
		tables[i] = protectedTable{Table: t.Table, Key: t.Key, State: state, Exempt: t.Exempt, Unfenced: t.Unfenced}
		rows = append(rows, []string{t.Table, t.Key, state, strconv.FormatInt(t.Unfenced, 10), "", "", ""})
		for _, w := range t.Writers {
			tables[i].Writers = append(tables[i].Writers, unfencedWriter(w))
			rows = append(rows, []string{
				"", "", "", "", listing.Plain(w.Role + " " + w.Application), listing.Plain(w.Key),
				listing.Plain(strings.Join(strings.Fields(w.Query), " ")),
			})
		}
	}
	if p.out.IsJSON() {
		return p.out.JSON(map[string]any{"tables": tables})
	}
	return p.out.Table([]listing.Column{
		{Name: "TABLE"},
		{Name: "KEY", Least: 24},
		{Name: "STATE"},
		{Name: "UNFENCED", Right: true},
		{Name: "WRITER", Rank: 1, Least: 10},
		{Name: "ROW", Rank: 2, Least: 8},
		{Name: "STATEMENT", Rank: 3, Least: 10},
	}, rows)
}
