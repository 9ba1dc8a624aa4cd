package schema_test

import (
	"bufio"
	"errors"
	"os"
	osexec "os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/servertest"
)

// process is a copy of the test program that acts on a database: see asProcess.
func process(what string, s server, driver, dsn string) *osexec.Cmd {
	cmd := osexec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asProcess+"="+strings.Join([]string{what, s.name, driver, dsn}, "\n"))
	return cmd
}

// Replicas of a service that start at once all migrate. ROWLOCK_TEST_MIGRATIONS has it done so many
// times.
func TestManyProcessesMigrateAtOnce(t *testing.T) {
	rounds, _ := strconv.Atoi(os.Getenv("ROWLOCK_TEST_MIGRATIONS"))
	onEach(t, func(t *testing.T, s server) {
		for range max(rounds, 1) {
			driver, dsn := s.fresh(t, s)
			together(t, 5, func() error {
				if out, err := process("migrate", s, driver, dsn).CombinedOutput(); err != nil {
					return errors.New(string(out))
				}
				return nil
			})
			complete(t, s, open(t, driver, dsn))
		}
	})
}

// begun starts a process that begins something and goes no further.
func begun(t *testing.T, what string, s server, driver, dsn string) *os.Process {
	t.Helper()
	cmd := process(what, s, driver, dsn)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "begun\n" {
		t.Fatalf("got %q (%v)", line, err)
	}
	return cmd.Process
}

func TestAKilledMigratorBlocksNoOther(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		const limit = 9 * time.Second // the server's is 10 s
		servertest.AtOnce(t, limit, "a migration", func() time.Duration {
			driver, dsn := s.fresh(t, s)
			other, db := begun(t, "idle", s, driver, dsn), open(t, driver, dsn)
			began := time.Now()
			if err := other.Kill(); err != nil {
				t.Fatal(err)
			}
			migrate(t, s, db)
			took := time.Since(began)
			complete(t, s, db)
			return took
		})
	})
}

// A process that is stopped keeps its connection, as does one whose machine has lost its network:
// the server ends the session. A file's lock goes with the process alone.
func TestAStoppedMigratorIsPassedBy(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		if s.name == "sqlite" {
			return
		}
		servertest.AtOnce(t, 30*time.Second, "a migration", func() time.Duration {
			driver, dsn := s.fresh(t, s)
			begun(t, "idle", s, driver, dsn)
			db, began := open(t, driver, dsn), time.Now()
			migrate(t, s, db)
			took := time.Since(began)
			complete(t, s, db)
			return took
		})
	})
}
