package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/schema"
)

// `rowlock run … 2>&1 | head` leaves a pipe without a reader: the key, the code and the report are
// those of the command all the same.
func TestARunThatNobodyReadsEndsAsItsCommandDoes(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t))
	for script, want := range map[string]string{
		"sleep 60 & exit 3": `"exited","key":"k","token":`, // says that processes were left
		"kill -9 $PPID":     `"killed","key":"k","token":`, // says so at the end
	} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Close()
		report := filepath.Join(t.TempDir(), "report")
		cmd := b.command("run", "k", "--report", report, "--", "sh", "-c", script)
		cmd.Stderr = w
		_ = cmd.Run()
		_ = w.Close()
		text, err := os.ReadFile(report)
		if code := cmd.ProcessState.ExitCode(); code < 0 || err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %s, and the report is %s (%v), want %s", script, cmd.ProcessState, text, err, want)
		}
	}
}

// printed returns the command between two texts of what the program says.
func printed(t *testing.T, said, after, before string) string {
	t.Helper()
	_, command, found := strings.Cut(said, after)
	if command, _, _ = strings.Cut(command, before); !found || !strings.HasPrefix(command, "rowlock ") {
		t.Fatalf("%q has no command after %q", said, after)
	}
	return command
}

// shell runs a command that the program has printed, as who reads it does, with the DSN alone in
// the environment.
func (b *bed) shell(command string) (out, said string, code int) {
	b.Helper()
	cmd := exec.Command("/bin/sh", "-c", strings.Replace(command, "rowlock ", binary+" ", 1))
	cmd.Env = append(os.Environ(), "ROWLOCK_DSN="+b.dsn)
	return finish(b.T, cmd)
}

// Tables of a prefix beside others, and keys that look like flags.
func TestACommandThatIsPrintedCanBeTyped(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t))
	d := sqlite.New(dialect.Prefix("app_"))
	if err := schema.Migrate(t.Context(), b.DB, d); err != nil {
		t.Fatal(err)
	}
	c, err := rowlock.Open(b.Pool(t), d, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, key := range []string{"-1", "-2", "-3"} {
		if _, err := c.Lock(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range []string{"", " -- -", ` '\x2d'`} {
		_, said, _ := b.shell("rowlock ls --prefix app_ -n 1" + args)
		next := printed(t, said, "there are more keys: ", "\n")
		if out, said, code := b.shell(next); code != 0 || !strings.Contains(out, "-2 ") || strings.Contains(out, "-1 ") || strings.Contains(out, "-3 ") {
			t.Errorf("%s exits with %d and prints %s%s, want the key -2", next, code, out, said)
		}
	}
	if _, err := b.DB.ExecContext(t.Context(), `UPDATE app_rowlock SET owner = x'00' WHERE key = CAST('-1' AS BLOB)`); err != nil {
		t.Fatal(err)
	}
	out, said, _ := b.shell(`rowlock show --prefix app_ '\x2d1'`)
	repair := printed(t, out+said, "repair   ", "TEXT") + "broken"
	if out, said, code := b.shell(repair); code != 0 {
		t.Errorf("%s exits with %d: %s%s", repair, code, out, said)
	}
}

func TestTheCureForAMissingFileMakesTheTablesThatAreAskedFor(t *testing.T) {
	b := &bed{T: t, dsn: "sqlite:" + filepath.Join(t.TempDir(), "a.db")}
	_, said, _ := b.shell("rowlock ls --prefix app_")
	cure := printed(t, said, "create it with `", "`")
	if out, said, code := b.shell(cure); code != 0 {
		t.Fatalf("%s exits with %d: %s%s", cure, code, out, said)
	}
	if out, said, code := b.shell("rowlock ls --prefix app_"); code != 0 {
		t.Errorf("after %s ls exits with %d: %s%s", cure, code, out, said)
	}
}

// A program may be called anything: its name is the note where none is given.
func TestRunTakesAProgramWhoseNameIsNoText(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t))
	for _, name := range []string{"p\xff", strings.Repeat("\xff", 255)} {
		program := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(program, []byte("#!/bin/sh\nexit 7\n"), 0o700); err != nil {
			t.Skip("NOT TESTED: this file system takes no such names: ", err)
		}
		if _, said, code := b.does("run", "k", "--", program); code != 7 {
			t.Errorf("%q: exits with %d: %s", name, code, said)
		}
	}
}

func TestAPrefixCanBePastedIntoTop(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t))
	b.holds("shop/1", "other")
	s := b.screen(100, 12, b.command("top"))
	s.shows("other")
	s.types("/")
	s.shows("prefix: ")
	s.types("\x1b[200~shop/\n\x1b[201~")
	s.shows("prefix: shop/")
	s.types("\r")
	s.shows("keys that begin with shop/")
	s.types("q")
	_, _ = s.ends()
}
