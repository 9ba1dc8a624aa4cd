package cli

import (
	"cmp"
	"encoding/hex"
	"os"
	"time"

	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/fencesql"
	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/target"
	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/spf13/cobra"
)

// claim is the lock that a script holds, as text.
type claim struct{ key, owner, token, ttl, kind string }

func (p *program) fence() *cobra.Command {
	var t claim
	c := &cobra.Command{
		Use:   "fence",
		Short: "Print the SQL that a script under run begins a transaction with",
		Long: long(`
Print the SQL that a script runs first in each of its transactions, one statement a line. It fails
in the server if another owner has held the lock since: roll back then. Otherwise the lock cannot
pass to another owner before the transaction has ended.

The lock is that of the environment that run makes, unless flags name another. It connects to
nothing. -o json prints {"statements": […]}.`),
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return p.printFence(t) },
	}
	flags := c.Flags()
	flags.StringVar(&t.key, "key", os.Getenv("ROWLOCK_KEY"), "the key (ROWLOCK_KEY)")
	flags.StringVar(&t.owner, "owner", os.Getenv("ROWLOCK_OWNER"), "the owner (ROWLOCK_OWNER)")
	flags.StringVar(&t.token, "token", os.Getenv("ROWLOCK_TOKEN"), "the token (ROWLOCK_TOKEN)")
	flags.StringVar(&t.ttl, "ttl", cmp.Or(os.Getenv("ROWLOCK_TTL"), "30s"),
		"by how much it extends the lease (ROWLOCK_TTL)")
	flags.StringVar(&t.kind, "dialect", os.Getenv("ROWLOCK_DIALECT"),
		"postgres, mysql or sqlite (ROWLOCK_DIALECT); default: that of --dsn")
	return p.listed(c)
}

func (p *program) printFence(t claim) error {
	l, ttl, err := t.lease()
	if err != nil {
		return err
	}
	if t.kind == "" {
		if t.kind, err = target.Kind(p.settings.DSN); err != nil {
			return err
		}
	}
	names := sqlstore.Names{Prefix: p.settings.Prefix, Schema: p.settings.Schema}
	if t.kind == "sqlite" {
		names.Schema = "main" // or a temporary table of the session would come first
	}
	statements, err := fencesql.Statements(t.kind, names, l, ttl)
	if err != nil {
		return err
	}
	if p.out.IsJSON() {
		return p.out.JSON(map[string]any{"statements": statements})
	}
	for _, s := range statements {
		p.out.Line("%s;", s)
	}
	return nil
}

func (t claim) lease() (l lease.Lease, ttl time.Duration, err error) {
	const cure = "run the script under `rowlock run`, or give the flag"
	switch {
	case t.key == "":
		return l, 0, usage("fence: no key: ROWLOCK_KEY is not set: %s --key", cure)
	case t.owner == "":
		return l, 0, usage("fence: no owner: ROWLOCK_OWNER is not set: %s --owner", cure)
	case t.token == "":
		return l, 0, usage("fence: no token: ROWLOCK_TOKEN is not set: %s --token", cure)
	}
	if l.Key, err = keytext.Read(t.key); err != nil {
		return l, 0, err
	}
	if n, err := hex.Decode(l.Owner[:], []byte(t.owner[:min(len(t.owner), 32)])); err != nil ||
		n != len(l.Owner) || len(t.owner) != 32 {
		return l, 0, usage("fence: owner %.40q must be 32 hexadecimal digits", t.owner)
	}
	if err = l.Token.UnmarshalText([]byte(t.token)); err != nil || l.Token < 1 {
		return l, 0, usage("fence: token %q must be a number above 0", t.token)
	}
	if ttl, err = time.ParseDuration(t.ttl); err != nil || ttl <= 0 {
		return l, 0, usage("fence: --ttl %q must be a duration such as 30s", t.ttl)
	}
	return l, ttl, nil
}
