package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// result is what became of tests that ran.
type result struct {
	failed bool
	// by is the test that failed first, or what else ended the tests.
	by string
}

var failure = regexp.MustCompile(`^\s*--- FAIL: (\S+)|^(panic: .*|fatal error: .*)`)

// attempt runs the tests of one step, and ends them at the first that fails.
func attempt(ctx context.Context, program, dir string, s step, db, mutated string, limit time.Duration) (result, error) {
	args := []string{"-test.v", "-test.failfast", "-test.timeout", limit.String(), "-test.run", s.run}
	if s.skip != "" {
		args = append(args, "-test.skip", s.skip)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = dir, environment(db, mutated)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // tests start processes of their own
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	said, err := cmd.StdoutPipe()
	if err != nil {
		return result{}, err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return result{}, err
	}
	by := firstFailure(said)
	if by != "" {
		_ = cmd.Cancel()
	}
	return verdict(ctx, by, cmd.Wait())
}

// firstFailure returns the test that failed first. A test's line comes before those of its
// subtests, and the last of them says what failed.
func firstFailure(said io.Reader) (by string) {
	lines := bufio.NewReader(said)
	for {
		line, err := lines.ReadString('\n')
		if by != "" && !strings.Contains(line, "--- ") {
			return by
		}
		if m := failure.FindStringSubmatch(line); m != nil && strings.HasPrefix(m[1]+m[2], by) {
			by = strings.TrimSpace(m[1] + m[2])
		}
		if err != nil {
			return by
		}
	}
}

func verdict(ctx context.Context, by string, err error) (result, error) {
	var status *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return result{}, ctx.Err()
	case by != "":
		return result{failed: true, by: by}, nil
	case err == nil:
		return result{}, nil
	case errors.As(err, &status):
		return result{failed: true, by: "the end of the tests: " + status.Error()}, nil
	}
	return result{}, err
}

// environment has the server of the mutant's database and no other, so that the tests on others are
// skipped.
func environment(db, mutated string) []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, ok := strings.CutPrefix(v, "ROWLOCK_TEST_")
		return ok && !strings.HasPrefix(name, strings.ToUpper(db)) || strings.HasPrefix(v, "CI=")
	})
	return append(env, variable+"="+mutated, "ROWLOCK_TEST_REQUIRE="+db)
}

// prepare writes what the hook reads.
func (m *mutant) prepare(folder string) error {
	return errors.Join(os.MkdirAll(folder, 0o700),
		os.WriteFile(filepath.Join(folder, "was.sql"), []byte(m.was), 0o600),
		os.WriteFile(filepath.Join(folder, "now.sql"), []byte(m.now), 0o600))
}

// met reports whether the tests have read the mutated file.
func met(folder string) error {
	if _, err := os.Stat(filepath.Join(folder, "met")); err != nil {
		return fmt.Errorf("the tests have not read the mutated statement: %w", err)
	}
	return nil
}
