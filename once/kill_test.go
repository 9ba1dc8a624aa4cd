package once_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/once"
)

// A process that is killed before its commit has done nothing, and one that is killed after it has
// done it once.
func TestAKilledProcessHasDoneItOnceOrNotAtAll(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		o := r.open(t, r.DB, eager())
		for round := range 2 {
			for committed, when := range []string{"before", "after"} {
				name := fmt.Sprint(when, round)
				r.kill(t, when, name)
				res := do(t, o, once.Request{Key: name}, r.effect(name, "value"))
				want(t, res, "value", committed == 1)
				r.wantEffects(t, name, 1)
			}
		}
	})
}

// kill runs this program as another process and kills it where it says that it stands.
func (r *rig) kill(tb testing.TB, when, name string) {
	tb.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestChildAtWork$")
	cmd.Env = append(os.Environ(), "ROWLOCK_ONCE_CHILD="+strings.Join([]string{r.Name, r.Dialect.Names().Prefix, r.Source, when, name}, "\n"))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		tb.Fatal(err)
	}
	said := bufio.NewScanner(out)
	for said.Scan() && said.Text() != "child: "+when {
	}
	if err := cmd.Process.Kill(); err != nil || said.Text() != "child: "+when {
		tb.Errorf("the child said %q; %v", said.Text(), err)
	}
	_ = cmd.Wait()
}

// TestChildAtWork is the child.
func TestChildAtWork(t *testing.T) {
	what := strings.Split(os.Getenv("ROWLOCK_ONCE_CHILD"), "\n")
	if len(what) != 5 {
		t.Skip("only for a child process")
	}
	when, name := what[3], what[4]
	kind := testdb.Kinds[slices.IndexFunc(testdb.Kinds, func(k testdb.Kind) bool { return k.Name == what[0] })]
	db, err := sql.Open(kind.Driver, what[2])
	if err != nil {
		t.Fatal(err)
	}
	env := &testdb.Env{Kind: kind, DB: db, Dialect: kind.New(dialect.Prefix(what[1])), Source: what[2]}
	r := &rig{env, what[1] + "effects"}
	o := r.open(t, db, eager())
	stand := func(where string) error {
		if where == when {
			fmt.Println("child:", when)
			select {}
		}
		return nil
	}
	_, err = o.Do(context.Background(), once.Request{Key: name}, then(r.effect(name, "value"), func() error { return stand("before") }))
	fmt.Println("child:", err)
	_ = stand("after")
}
