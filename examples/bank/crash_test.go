//go:build linux

package main

import (
	"testing"

	"github.com/rowlockdb/rowlock/examples/internal/program"
	"github.com/rowlockdb/rowlock/internal/standby"
)

// crashEvery is how many answers come before each crash.
const crashEvery = 25

// Clients send each transfer until they have an answer, twice, and the nights go by, while all
// processes of the database server are killed again and again.
func TestNoCentIsLostOrMadeHoweverOftenTheDatabaseIsKilled(t *testing.T) {
	t.Parallel()
	server := standby.StartLone(t)
	var replicas []*program.Server
	for range 2 {
		replicas = append(replicas, program.NewServer(t, binary, server.Source, "-night", "1s", "-ttl", "1s"))
	}
	due := make(chan int64, clients*transfers)
	var accepted int64
	go func() {
		defer close(due)
		accepted = transferAll(t, replicas, func(answers int64) {
			if answers%crashEvery == 0 {
				due <- answers
			}
		})
	}()
	crashes := 0
	for range due { // the clients go on meanwhile
		server.Crash(t)
		crashes++
	}
	if want := clients * transfers / crashEvery; crashes != want {
		t.Errorf("%d crashes, want %d", crashes, want)
	}
	wantBooks(t, server.Source, accepted)
}
