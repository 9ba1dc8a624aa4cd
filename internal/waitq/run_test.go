package waitq_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/waitq"
)

func TestARunIsOverAfterSoManyGrantsAndSoLong(t *testing.T) {
	r := waitq.Runs{Most: 3, For: time.Second}
	now := time.Now()
	for token := range int64(3) {
		if r.Over("k", now.Add(time.Hour)) {
			t.Errorf("over after %d grants", token)
		}
		r.Granted("k", token+1, now, 0)
	}
	if r.Over("k", now.Add(time.Second-1)) {
		t.Error("over too soon")
	}
	if !r.Over("k", now.Add(time.Second)) {
		t.Error("not over")
	}
	if r.Over("k", now.Add(time.Hour)) {
		t.Error("over twice")
	}
}

// A token that is not the next one is another process's grant between ours.
func TestAnothersGrantEndsARun(t *testing.T) {
	r := waitq.Runs{Most: 3, For: time.Second}
	now := time.Now()
	for _, token := range []int64{1, 2, 4, 5} {
		r.Granted("k", token, now, 0)
	}
	if r.Over("k", now.Add(time.Hour)) {
		t.Error("counted over another's grant")
	}
	r.Granted("k", 6, now, 0)
	if !r.Over("k", now.Add(time.Hour)) {
		t.Error("not over")
	}
}

// Keys that are used once are forgotten; one that is used again and again is not.
func TestRunsForgetKeysUsedOnce(t *testing.T) {
	r := waitq.Runs{Most: 100, For: 0}
	now := time.Now()
	for i := range 100_000 {
		r.Granted(fmt.Sprint("once", i), 1, now, 0)
		if i%1000 == 0 {
			r.Granted("hot", int64(1+i/1000), now, 0)
		}
	}
	if !r.Over("hot", now) {
		t.Error("a key in use was forgotten")
	}
	if r.Over("once0", now) {
		t.Error("a key used once is remembered")
	}
}
