package shedlock_test

import (
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/adaptertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// A Java process runs ShedLock itself. Either is killed while it holds the lock, and while it waits.
func TestProcessesThatAreKilledLockBesideShedLock(t *testing.T) {
	testdb.EachOf(t, testdb.Servers, func(t *testing.T, e *testdb.Env) {
		testdb.Installed(t, "java")
		name := table(t, e, columns(e))
		clock := map[string]string{"postgres": "db", "mysql": "db", "mariadb": "0"}[e.Name]
		adaptertest.Contest{
			Rounds: adaptertest.Rounds(20), Turns: 10 * time.Second, Freed: func() { expire(t, e, name) },
		}.Run(t, e, adaptertest.Go(name), java(name, clock))
	})
}

// Each waits for what the other has left: nothing expires sooner.
func TestALockThatAKilledProcessHasLeftEndsByItself(t *testing.T) {
	if !testdb.Whole() {
		t.Skip("it waits for twenty seconds: make soak has it")
	}
	testdb.EachOf(t, testdb.Servers, func(t *testing.T, e *testdb.Env) {
		testdb.Installed(t, "java")
		name := table(t, e, columns(e))
		adaptertest.Contest{Rounds: adaptertest.Rounds(20), Turns: 10 * time.Second}.Run(t, e, adaptertest.Go(name), java(name, "db"))
	})
}
