package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// fixed are mutants that the narrowest tests kill within seconds.
var fixed = []string{
	"sqlite dialect/sqlite/statements.sql:hand-over: owner = ?",
	"sqlite dialect/sqlite/statements.sql:renew: expires_at > now",
	"sqlite dialect/sqlite/statements.sql:acquire-update: @era) + 1",
}

// short60 shows within a minute that the program works: every guard is found, three mutants are
// killed, and a change that harms nothing survives.
func short60(ctx context.Context, root string) error {
	why, err := parse(explanations)
	if err != nil {
		return err
	}
	c := choice{databases: databases, match: regexp.MustCompile(""), shard: 1, shards: 1}
	all, err := c.mutants(root, why)
	if err != nil {
		return err
	}
	fmt.Println(len(all), "mutants on", strings.Join(databases, ", "))
	folder, err := os.MkdirTemp("", "rowlock-mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	r, err := newRunner(root, folder)
	if err != nil {
		return err
	}
	for n, name := range fixed {
		at := slices.IndexFunc(all, func(m mutant) bool { return m.name() == name })
		if at < 0 {
			return fmt.Errorf("there is no mutant %q any more: fix another in short.go", name)
		}
		if err := r.narrowest(ctx, n, all[at], killed); err != nil {
			return err
		}
	}
	harmless := all[slices.IndexFunc(all, func(m mutant) bool { return m.name() == fixed[0] })]
	harmless.guard, harmless.now = "nothing", harmless.was+"\n"
	return r.narrowest(ctx, len(fixed), harmless, passed)
}

// narrowest runs the first step of a mutant alone.
func (r *runner) narrowest(ctx context.Context, n int, m mutant, want string) error {
	m.only = 1
	o, err := r.try(ctx, n, &m)
	if err != nil {
		return err
	}
	fmt.Printf("%s %.1fs %s | %s\n", o.kind, o.took.Seconds(), m.name(), o.by)
	if o.kind != want {
		return fmt.Errorf("%s: %s, want %s", m.name(), o.kind, want)
	}
	return nil
}
