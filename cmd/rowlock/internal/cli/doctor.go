package cli

import (
	"context"
	"fmt"
	"image/color"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/listing"
	"github.com/rowlockdb/rowlock/doctor"
	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/spf13/cobra"
)

func (p *program) doctor() *cobra.Command {
	var o doctor.Options
	var all bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Say what is wrong with the database, and the cure",
		Long: strings.TrimSpace(`
Examine the server, its settings and replicas, the user's rights, the tables and what was left in
them. It only reads, but for the check open. Each finding has what was read, and a statement or a
setting to copy. Connect as the application does: settings and rights are those of the user.
docs/operations/doctor.md has each check by its id: `+strings.Join(doctor.IDs(), ", ")+`.`) + "\n" + exitCodes +
			"\nA warning was found: 8. Something critical was found: 9.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.examine(c.Context(), &o, all)
		},
	}
	flags := c.Flags()
	flags.StringSliceVar(&o.Only, "only", nil, "make only these checks")
	flags.StringSliceVar(&o.Skip, "skip", nil, "leave these checks out")
	flags.BoolVar(&all, "all", false, "list also what is in order")
	flags.DurationVar(&o.Limit, "limit", 5*time.Second, "time for each check")
	flags.DurationVar(&o.TTL, "ttl", 0, "TTL of the application's clients (default 30s)")
	flags.IntVar(&o.Connections, "connections", 0, "pinned connections of the application's clients (default 3; SQLite: 1)")
	for _, name := range []string{"only", "skip"} {
		_ = c.RegisterFlagCompletionFunc(name,
			cobra.FixedCompletions(doctor.IDs(), cobra.ShellCompDirectiveNoFileComp))
	}
	return p.listed(c)
}

// examine prints what was found, also if the database is gone before the end.
func (p *program) examine(ctx context.Context, o *doctor.Options, all bool) error {
	t, end, err := p.connect(adapter.Reading(ctx))
	if err != nil {
		return err
	}
	defer end()
	r, err := doctor.Examine(ctx, t.DB, t.Dialect, o)
	if err != nil && (r == nil || len(r.Findings) == 0) {
		return err
	}
	if printed := p.printReport(r, all); printed != nil {
		return printed
	}
	switch {
	case err != nil:
		return err
	case r.Worst == doctor.Critical:
		return &exitError{code: exitCritical}
	case r.Worst == doctor.Warning:
		return &exitError{code: exitWarning}
	}
	return nil
}

func (p *program) printReport(r *doctor.Report, all bool) error {
	if p.out.IsJSON() {
		return p.out.JSON(r)
	}
	count := make(map[doctor.Severity]int)
	for _, f := range r.Findings {
		count[f.Severity]++
	}
	p.out.Paragraph(0, fmt.Sprintf("%s: %d critical, %d warning, %d info, %d ok", listing.Plain(r.Server),
		count[doctor.Critical], count[doctor.Warning], count[doctor.Info], count[doctor.OK]))
	group := doctor.Severity(-1)
	for _, f := range r.Findings {
		if f.Severity == doctor.OK && !all {
			continue
		}
		if f.Severity != group {
			group = f.Severity
			p.out.Line("")
			p.out.Colored(colors[group], strings.ToUpper(group.String()))
		}
		p.printFinding(f)
	}
	return nil
}

var colors = map[doctor.Severity]color.Color{
	doctor.OK: lipgloss.Green, doctor.Info: lipgloss.Cyan, doctor.Warning: lipgloss.Yellow,
	doctor.Critical: lipgloss.Red,
}

func (p *program) printFinding(f doctor.Finding) {
	p.out.Paragraph(2, f.ID+": "+listing.Plain(f.Summary))
	for _, e := range f.Evidence {
		p.out.Paragraph(4, listing.Plain(fmt.Sprintf("%s = %s (%s)", e.Name, e.Value, e.From)))
	}
	for _, cure := range f.Cure {
		p.out.Paragraph(4, "cure: "+listing.Plain(cure))
	}
}
