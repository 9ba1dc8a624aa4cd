package cli

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/user"
	"strconv"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/listing"
	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/rowlockdb/rowlock/internal/shown"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/spf13/cobra"
)

func (p *program) release() *cobra.Command {
	var force bool
	var f rowlock.Force
	c := &cobra.Command{
		Use:   "release KEY --force --reason TEXT",
		Short: "Take a key from its holder",
		Long: long(`
Free a key that its holder does not: one transaction raises the token and writes who did it, when,
why and from whom. The holder is not stopped. It is refused at its next fence, and told within one
renewal that its lock is lost; what it does besides fenced transactions may overlap with the next
holder's work. A fenced transaction of its own that is under way comes first: after some seconds
the error names its session, and --evict ends it.

Look with rowlock show KEY before, and give the token that you have seen: another holder then keeps
its lock. The exit code is 1 if the key is free, or held with another token.`),
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case !force:
				return usage("release takes %s from its holder, who may be at work: add --force and --reason",
					shown.Quote(args[0]))
			case f.Reason == "":
				return usage("--force without --reason: the record keeps it")
			case c.Flags().Changed("token") && f.Token < 1:
				return usage("--token %d: tokens begin at 1", f.Token)
			}
			return p.forceRelease(c.Context(), args[0], f)
		},
	}
	flags := c.Flags()
	flags.BoolVar(&force, "force", false, "yes: take it from its holder")
	flags.StringVar(&f.Reason, "reason", "", "why, for the record")
	flags.StringVar(&f.By, "by", "", "who, for the record (default USER@HOST)")
	flags.BoolVar(&f.Evict, "evict", false,
		"end the session of a fenced transaction that is under way: it is rolled back")
	flags.TextVar(&f.Token, "token", f.Token, "only if the key is still held with this `token`")
	return p.listed(c)
}

// forced is a record in JSON.
type forced struct {
	Time   time.Time   `json:"time"`
	Key    string      `json:"key"`
	By     string      `json:"by"`
	User   string      `json:"database_user,omitempty"`
	Reason string      `json:"reason"`
	Holder string      `json:"holder,omitempty"`
	Note   string      `json:"note,omitempty"`
	Token  lease.Token `json:"token"`
	Raised lease.Token `json:"raised_to"`
}

func forcedOf(f lease.Forced) forced {
	identity, note := lease.SplitNote(f.Note)
	return forced{
		Time: f.At, Key: keytext.Show(f.Key), By: f.By, User: f.Session, Reason: f.Reason, Holder: identity, Note: note,
		Token: f.Lease.Token, Raised: f.Raised,
	}
}

func (p *program) forceRelease(ctx context.Context, text string, f rowlock.Force) error {
	key, err := keytext.Read(text)
	if err != nil {
		return err
	}
	f.By = cmp.Or(f.By, operator())
	_, client, end, err := p.client(ctx, func(cfg *rowlock.Config) { cfg.Reaper.Off = true })
	if err != nil {
		return err
	}
	defer end()
	done, err := client.ForceRelease(ctx, key, f)
	if errors.Is(err, rowlock.ErrNotHeld) {
		return &exitError{exitMissing, err}
	}
	if err != nil {
		return err
	}
	if p.out.IsJSON() {
		return p.out.JSON(forcedOf(done))
	}
	identity, note := lease.SplitNote(done.Note)
	p.out.Line("%s is free. Its holder was %s, with token %d.", keytext.Show(key),
		cmp.Or(listing.Plain(lease.Describe(identity, note)), "a client without a name"), done.Lease.Token)
	return nil
}

// operator is USER@HOST.
func operator() string {
	name := os.Getenv("USER")
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, _ := os.Hostname()
	who := cmp.Or(name, "uid "+strconv.Itoa(os.Getuid())) + "@" + cmp.Or(host, "unknown")
	return who[:min(len(who), lease.MaxIdentity)]
}
