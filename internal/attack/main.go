//go:build linux

// Attack makes several processes of many goroutines fight over few keys on real servers whose
// threads it slows and stops at random, and checks what each process was told.
// See docs/contributing/attack.md.
//
//	go run ./internal/attack -db mariadb -for 60s
//
// It uses rowlock's public API alone, so that a copy of this folder runs in an older checkout,
// without its go.mod and go.sum if that checkout is a single module, and without chaos and
// fight/family.go if that one has no shared locks.
package main

import "github.com/rowlockdb/rowlock/internal/attack/fight"

func main() { fight.Main() }
