package main

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	_ "github.com/rowlockdb/rowlock/dialect/sqlite" // and its driver
)

// build compiles the suites into a folder, without the race detector: it watches Go code, which is
// the same on every server.
func build(ctx context.Context, folder string) error {
	for _, s := range suites {
		if err := command(ctx, os.Stderr, "go", "test", "-vet=off", "-c", "-o", s.binary(folder), "./"+s.pkg); err != nil {
			return err
		}
	}
	return nil
}

func (s *suite) binary(folder string) string {
	return filepath.Join(folder, strings.ReplaceAll(s.pkg, "/", "_")+".test")
}

func command(ctx context.Context, said io.Writer, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = said, said
	// with-servers stops its servers when it is asked to end.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	return cmd.Run()
}

// run starts the servers once for all suites. A suite that fails does not keep the next from
// running, because the run is there to learn what fails.
func (s *start) run(ctx context.Context, built string) ([]row, error) {
	began := time.Now()
	var said bytes.Buffer
	args := append([]string{"scripts/with-servers", "--no-sync"}, s.servers...)
	args = append(args, "--", "sh", "-c", s.script(built))
	if s.base != "" {
		base, err := exec.CommandContext(ctx, "scripts/version", s.base, s.version).Output()
		if err != nil {
			return nil, fmt.Errorf("scripts/version %s %s: %w", s.base, s.version, err)
		}
		args = append([]string{"env", "ROWLOCK_" + strings.ToUpper(s.base) + "_BASE=" + strings.TrimSpace(string(base))}, args...)
	}
	if err := command(ctx, &said, args[0], args[1:]...); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, said.Bytes())
	}
	rows, err := s.read(said.String())
	fmt.Printf("%-28s %4.0f s\n", s.rows[0].name, time.Since(began).Seconds())
	return rows, err
}

// script runs each suite in its own folder, whose testdata it reads, and says where the next begins.
func (s *start) script(built string) string {
	var b strings.Builder
	skip := ""
	if !s.has("sqlite") {
		skip = ` -test.skip '/^sqlite$|//^sqlite$'`
	}
	b.WriteString("unset ROWLOCK_TEST_REQUIRE\n")
	for _, one := range suites {
		fmt.Fprintf(&b, "echo '%s%s'\n(cd %s && %s -test.v -test.timeout 20m%s) || echo '%s'\n",
			begins, one.pkg, one.pkg, one.binary(built), skip, ended)
	}
	return b.String()
}

const (
	begins = "matrix begins "
	ended  = "matrix: the suite failed"
)

var (
	ready = regexp.MustCompile(`(?m)^with-servers: (\w+) (\S+) ready`)
	told  = regexp.MustCompile(`(?m)^ *--- (PASS|FAIL): (\S+)`)
)

// read counts what the tests of each kind have said.
func (s *start) read(said string) (rows []row, err error) {
	head, rest, _ := strings.Cut(said, begins)
	versions := make(map[string]string)
	for _, m := range ready.FindAllStringSubmatch(head, -1) {
		versions[m[1]] = m[2]
	}
	if versions["sqlite"], err = sqliteVersion(); err != nil {
		return nil, err
	}
	parts := strings.Split(rest, begins)
	if len(parts) != len(suites) {
		return nil, fmt.Errorf("%d suites of %d have run:\n%s", len(parts), len(suites), said)
	}
	for _, k := range s.rows {
		r := row{Name: k.name, Version: versions[k.kind], Passed: make(map[string]int)}
		for i, part := range parts {
			r.count(suites[i], k.kind, part)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func (r *row) count(s suite, kindOf, said string) {
	found := 0
	for _, m := range told.FindAllStringSubmatch(said, -1) {
		switch {
		case !strings.Contains(strings.ToLower(m[2]), kindOf):
		case m[1] == "FAIL":
			found++
			r.Failed = append(r.Failed, s.pkg+" "+m[2])
		default:
			r.Passed[s.what]++
		}
	}
	// A panic, a leak or a test of no kind of database fails the suite on each.
	if strings.Contains(said, ended) && found == 0 {
		r.Failed = append(r.Failed, s.pkg)
	}
}

func sqliteVersion() (v string, err error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return "", err
	}
	defer db.Close()
	return v, db.QueryRow(`SELECT sqlite_version()`).Scan(&v)
}
