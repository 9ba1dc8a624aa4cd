// Probe takes locks on a PostgreSQL server and writes which blocks of rowlock's code they enter,
// and the calls above the socket. Package lockpath builds it with counters and runs it:
//
//	probe DSN FOLDER
//
// Each folder below FOLDER/alone is one Lock and Unlock of a free key, and each below FOLDER/passed
// one pass of a key between two clients. Each line of FOLDER/stack is a call of rowlock above the
// socket, when Lock has its statement written.
package main

import (
	"context"
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: probe DSN FOLDER")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}
