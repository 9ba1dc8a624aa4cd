package prose_test

import (
	"bytes"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	root    = "../.."
	columns = 100
)

// clean are the folders whose Go comments keep the rules below, without those beneath them. The
// list only grows: rewrite the comments of a folder, then add it.
var clean = []string{
	".",
	"bench/bridge",
	"bench/internal/held",
	"bench/internal/race",
	"bench/internal/raw",
	"bench/shared",
	"bench/slots",
	"bench/ways",
	"cmd/rowlock",
	"cmd/rowlock/internal/cli",
	"cmd/rowlock/internal/cluster",
	"cmd/rowlock/internal/demo",
	"cmd/rowlock/internal/door",
	"cmd/rowlock/internal/fencesql",
	"cmd/rowlock/internal/listing",
	"cmd/rowlock/internal/pace",
	"cmd/rowlock/internal/supervise",
	"cmd/rowlock/internal/target",
	"cmd/rowlock/internal/top",
	"cmd/rowlockvet",
	"cmd/rowlockvet/golangci",
	"cmd/rowlockvet/vet",
	"console",
	"dialect",
	"dialect/internal/pages",
	"dialect/mysql",
	"dialect/postgres",
	"dialect/sqlite",
	"doctor",
	"election",
	"examples/agents",
	"examples/cron",
	"examples/fencetest",
	"examples/first",
	"examples/hotkey",
	"examples/internal/command",
	"examples/internal/program",
	"examples/internal/source",
	"examples/metrics",
	"examples/orders",
	"examples/postgres",
	"examples/quickstart",
	"examples/scheduler",
	"examples/segments",
	"examples/stacks/bun",
	"examples/stacks/entgo",
	"examples/stacks/gorm",
	"examples/stacks/internal/bed",
	"examples/stacks/internal/demo",
	"examples/stacks/pgx",
	"examples/stacks/sqlc",
	"examples/stacks/sqlx",
	"examples/stock",
	"forupdate",
	"internal/adapter",
	"internal/attack",
	"internal/attack/chaos",
	"internal/attack/check",
	"internal/attack/fight",
	"internal/attack/history",
	"internal/attack/mutants",
	"internal/attack/proxy",
	"internal/cleanup",
	"internal/clienttest",
	"internal/conn",
	"internal/counted",
	"internal/cycle",
	"internal/house",
	"internal/house/budgets",
	"internal/house/figures",
	"internal/house/lockpath",
	"internal/house/lockpath/probe",
	"internal/house/release",
	"internal/isnil",
	"internal/keytext",
	"internal/lossy",
	"internal/measure",
	"internal/memcluster",
	"internal/movetest",
	"internal/mutants",
	"internal/notice",
	"internal/observe",
	"internal/oneline",
	"internal/picture",
	"internal/ports",
	"internal/prose",
	"internal/queue",
	"internal/retry",
	"internal/scrape",
	"internal/servertest",
	"internal/servertest/corrupt",
	"internal/servertest/deadlock",
	"internal/servertest/election",
	"internal/servertest/failover",
	"internal/servertest/languages",
	"internal/servertest/refusal",
	"internal/servertest/semaphore",
	"internal/servertest/shared",
	"internal/servertest/wait",
	"internal/shown",
	"internal/sqlstore",
	"internal/standby",
	"internal/table",
	"internal/tenant",
	"internal/trace",
	"internal/upgrade",
	"internal/wire",
	"latch",
	"lease",
	"locktest",
	"memstore",
	"once",
	"once/oncehttp",
	"optimistic",
	"otelrowlock",
	"paxosbridge",
	"paxosbridge/clustertest",
	"paxosbridge/etcd",
	"paxosbridge/groupreplication",
	"paxosbridge/internal/heat",
	"paxosbridge/internal/model",
	"paxosbridge/internal/request",
	"paxosbridge/internal/unknown",
	"promrowlock",
	"quorum",
	"reaper",
	"schema",
	"semaphore",
	"striped",
	"tokenfence",
	"watchdog",
	"wlock",
	"wlock/internal/frame",
	"wlock/internal/wlocktest",
}

// unclean are the Markdown files and folders that do not keep the rules yet. The list only shrinks.
var unclean = []string{}

// roles are words for a role that has a name: holder, waiter, caller, client, process.
var roles = regexp.MustCompile(`(?i)\b(nobody|somebody|whoever|everybody|anybody)\b`)

// code are parts of a Markdown line that are no prose.
var code = regexp.MustCompile("`[^`]*`")

// misprinted is what fmt prints for a verb that its values do not fit. go vet passes over some of
// them, as %[1].1f, and a page that a program writes is read by no compiler.
var misprinted = regexp.MustCompile(`%![a-zA-Z(]`)

func TestNoPageHasAMisprint(t *testing.T) {
	for _, extension := range []string{".md", ".svg"} {
		for _, file := range files(t, extension) {
			for n, line := range lines(t, file) {
				if misprint := misprinted.FindString(code.ReplaceAllString(line, "")); misprint != "" {
					t.Errorf("%s:%d has the misprint %q: mend the program that writes it", file, n+1, misprint)
				}
			}
		}
	}
}

func TestMarkdownIsWithinItsColumns(t *testing.T) {
	for _, file := range files(t, ".md") {
		if slices.ContainsFunc(unclean, func(u string) bool { return file == u || strings.HasPrefix(file, u+"/") }) {
			continue
		}
		block := false
		for n, line := range lines(t, file) {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				block = !block
			}
			if block || strings.HasPrefix(line, "|") {
				continue // code and tables cannot be wrapped
			}
			if utf8.RuneCountInString(line) > columns && strings.Contains(strings.TrimSpace(line), " ") && !literal(line) {
				t.Errorf("%s:%d has more than %d columns: wrap it", file, n+1, columns)
			}
			if word := roles.FindString(code.ReplaceAllString(line, "")); word != "" {
				t.Errorf("%s:%d says %q: name the role (holder, waiter, caller, client, process)", file, n+1, word)
			}
		}
	}
}

// literal reports whether a line is code by its indentation, or a heading.
func literal(line string) bool {
	return strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "#")
}

func TestCommentsAreWithinTheirColumns(t *testing.T) {
	for _, folder := range clean {
		found, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s has no Go files: take it off the list (%v)", folder, err)
		}
		for _, file := range found {
			comments(t, file, func(line int, text, whole string) {
				if utf8.RuneCountInString(whole) > columns && strings.Contains(strings.TrimSpace(text), " ") {
					t.Errorf("%s:%d has more than %d columns: wrap it", file, line, columns)
				}
				if word := roles.FindString(text); word != "" {
					t.Errorf("%s:%d says %q: name the role (holder, waiter, caller, client, process)", file, line, word)
				}
			})
		}
	}
}

func TestTheListOfCleanFoldersIsInOrder(t *testing.T) {
	if !slices.IsSorted(clean) {
		t.Error("sort it, so that branches that add to it meet in few places")
	}
}

// comments calls f with each line of each comment of a Go file, and with the whole line of the
// file.
func comments(t *testing.T, file string, f func(line int, text, whole string)) {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	whole := strings.Split(string(source), "\n")
	set := token.NewFileSet()
	at := set.AddFile(file, -1, len(source))
	var s scanner.Scanner
	s.Init(at, source, nil, scanner.ScanComments)
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return
		}
		if tok == token.COMMENT && !strings.HasPrefix(text, "//go:") {
			first := set.Position(pos).Line
			for i, line := range strings.Split(text, "\n") {
				f(first+i, line, whole[first+i-1])
			}
		}
	}
}

func lines(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(bytes.TrimSpace(text)), "\n")
}

// files are those of the repository that end so, from its root.
func files(t *testing.T, extension string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != root && strings.HasPrefix(d.Name(), ".") && d.Name() != ".github" {
			return fs.SkipDir
		}
		if err == nil && !d.IsDir() && strings.HasSuffix(path, extension) {
			name, _ := filepath.Rel(root, path)
			found = append(found, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil || len(found) == 0 {
		t.Fatal(found, err)
	}
	return found
}
