package cli

import (
	"io"
	"os"
	"strings"

	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/listing"
	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/target"
	"github.com/spf13/cobra"
)

// program is what the commands share.
type program struct {
	settings target.Settings
	format   string
	verbose  bool
	out      *listing.Output
	stderr   io.Writer
	heeded   []os.Signal // those of supervise.Passed that were not ignored at the start
	began    bool        // a command has begun: what fails now is no wrong usage
}

// listed gives a command the flag of listings.
func (p *program) listed(c *cobra.Command) *cobra.Command {
	c.Flags().StringVarP(&p.format, "output", "o", "table", "table or json")
	_ = c.RegisterFlagCompletionFunc("output",
		cobra.FixedCompletions([]string{"table", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// atMostOne is the optional argument of a command.
func atMostOne(args []string) string {
	return append(args, "")[0]
}

const exitCodes = `
Exit codes: 0 done · 1 no such key · 2 wrong usage · 3 the database does not answer · 4 no tables,
or of another version · 5 a privilege is missing, or the server is read-only · 6 rowlock trusts no
locks to this server · 7 anything else.`

func long(text string) string { return strings.TrimSpace(text) + "\n" + exitCodes }
