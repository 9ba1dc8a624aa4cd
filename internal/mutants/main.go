package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// choice is which mutants to try, and how.
type choice struct {
	databases []string
	match     *regexp.Regexp
	// shard and shards are i and n of -shard i/n.
	shard, shards int
	list, short   bool
	// explained is whether to try those that may survive, too.
	explained, table bool
	// log is the file of the record, or "".
	log  string
	jobs int
	// steps is how many steps of each mutant's tests to run at most; 0: all.
	steps int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c, err := flags()
	if err == nil {
		err = run(ctx, c)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		stop()
		os.Exit(1)
	}
}

func flags() (c choice, err error) {
	db := flag.String("db", "", "databases, between commas; all that have a server if empty")
	shard := flag.String("shard", "1/1", "the i-th of n parts of the mutants, as i/n")
	match := flag.String("match", "", "mutants whose name matches this regular expression")
	flag.BoolVar(&c.list, "list", false, "name the mutants, and try none")
	flag.BoolVar(&c.short, "short", false, "try the few that show that this program works")
	flag.BoolVar(&c.explained, "explained", false, "try those that explained.txt has, too")
	flag.StringVar(&c.log, "log", "", "a file that is appended to; what it has as killed is not tried again")
	flag.BoolVar(&c.table, "table", false, "count what -log has, and try none")
	flag.IntVar(&c.jobs, "jobs", 3*runtime.NumCPU(), "mutants to try at a time; most tests wait")
	flag.IntVar(&c.steps, "steps", 0, "run the first so many steps of tests only, the narrowest; 0: all")
	flag.Parse()
	if _, err := fmt.Sscanf(*shard, "%d/%d", &c.shard, &c.shards); err != nil ||
		c.shard < 1 || c.shard > c.shards {
		return c, fmt.Errorf("-shard %s: want i/n with 1 ≤ i ≤ n", *shard)
	}
	if c.match, err = regexp.Compile(*match); err != nil {
		return c, fmt.Errorf("-match: %w", err)
	}
	c.databases, err = chosen(*db, c.list || c.table)
	return c, err
}

// chosen are the databases that were named, or those with a server.
func chosen(names string, all bool) (out []string, err error) {
	for _, db := range databases {
		server := db == "sqlite" || os.Getenv("ROWLOCK_TEST_"+strings.ToUpper(db)) != ""
		if names == "" && (server || all) {
			out = append(out, db)
		}
	}
	for name := range strings.SplitSeq(names, ",") {
		switch {
		case slices.Contains(databases, name):
			out = append(out, name)
		case name != "":
			err = errors.Join(err, fmt.Errorf("-db %s: want some of %v", name, databases))
		}
	}
	return out, err
}

func run(ctx context.Context, c choice) error {
	root, err := repository()
	if err != nil {
		return err
	}
	if c.short {
		return short60(ctx, root)
	}
	why, err := parse(explanations)
	if err != nil {
		return err
	}
	mutants, err := c.mutants(root, why)
	if err != nil {
		return err
	}
	rec, err := openRecord(c.log)
	switch {
	case err != nil:
		return err
	case c.list:
		list(mutants)
		return nil
	case c.table:
		table(mutants, rec, why)
		return nil
	}
	t := &tally{why: why, record: rec, count: make(map[string]int), took: make(map[string]time.Duration)}
	err = tryAll(ctx, root, c.left(mutants, rec, why), t, c.jobs)
	table(mutants, rec, why)
	return err
}

func list(mutants []mutant) {
	for i := range mutants {
		fmt.Println(mutants[i].name())
	}
	fmt.Println(len(mutants), "mutants")
}

// mutants returns those that were chosen. An explanation of a mutant that there is not is an error.
func (c *choice) mutants(root string, why []explained) (out []mutant, err error) {
	for _, db := range c.databases {
		all, err := mutantsOf(root, db)
		if err != nil {
			return nil, err
		}
		if old := stale(why, db, all); len(old) > 0 {
			return nil, fmt.Errorf("explained.txt has what is no mutant any more: %s",
				strings.Join(old, "; "))
		}
		for _, m := range all {
			if m.only = c.steps; c.match.MatchString(m.name()) {
				out = append(out, m)
			}
		}
	}
	part := out[:0]
	for i := range out {
		if i%c.shards == c.shard-1 {
			part = append(part, out[i])
		}
	}
	return part, nil
}

// repository returns the root of the repository.
func repository() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}",
		"github.com/rowlockdb/rowlock").Output()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w; run this in it", err)
	}
	return filepath.Clean(strings.TrimSpace(string(out))), nil
}
