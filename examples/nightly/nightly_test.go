package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/examples/internal/program"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

var binary string

func TestMain(m *testing.M) { program.Main(m, &binary) }

func TestAfterAKillAnotherReplicaRunsTheJob(t *testing.T) {
	for _, by := range []string{"gocron", "robfig"} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			args := []string{"-by", by}
			if source := program.Fresh(t, testdb.Kinds[0]); source != "" {
				args = append(args, "-db", source)
			}
			out, err := exec.CommandContext(t.Context(), binary, args...).CombinedOutput()
			if err != nil || !strings.Contains(string(out), "runs it after") {
				t.Errorf("%v:\n%s", err, out)
			}
			t.Logf("%s", out)
		})
	}
}
