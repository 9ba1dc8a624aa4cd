//go:build linux

package fight

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// settings are the flags.
type settings struct {
	db      string
	bridge  bool
	length  time.Duration
	seed    uint64
	workers int
	phase   string
	first   bool
	out     string
	keep    bool
}

// errViolated is the end of a run that found something.
var errViolated = errors.New("the guarantees of rowlock were violated")

// Main is the program: an attack, or one of its worker processes.
func Main() {
	if job := os.Getenv(JobVariable); job != "" {
		exit(Work(job))
	}
	var s settings
	flag.StringVar(&s.db, "db", "sqlite", "sqlite, postgres, pgbouncer (a postgres behind it), mariadb or mysql")
	flag.BoolVar(&s.bridge, "bridge", false, "go through a bridge from that database to etcd")
	flag.DurationVar(&s.length, "for", time.Minute, "how long to attack; at least 10s")
	flag.Uint64Var(&s.seed, "seed", 0, "the plan to run; 0 draws one and prints it")
	flag.IntVar(&s.workers, "workers", 4, "how many client processes")
	flag.StringVar(&s.phase, "phase", "", "run this phase alone: storm, mixed, sections, calm or corrupt")
	flag.BoolVar(&s.first, "first", false, "stop at the first violation")
	flag.StringVar(&s.out, "out", "", "write the report to this file too, as JSON")
	flag.BoolVar(&s.keep, "keep", false, "keep the records of a run that found nothing")
	flag.Parse()
	if flag.NArg() > 0 || s.length < 10*time.Second || s.workers < 2 {
		flag.Usage()
		os.Exit(2)
	}
	if s.seed == 0 {
		s.seed = uint64(time.Now().UnixNano())%1e9 + 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := attack(ctx, s)
	stop()
	exit(err)
}

// exit ends with 1 for a violation, and with 2 if the attack itself did not work.
func exit(err error) {
	if err == nil {
		os.Exit(0)
	}
	fmt.Fprintln(os.Stderr, "attack:", err)
	if errors.Is(err, errViolated) {
		os.Exit(1)
	}
	os.Exit(2)
}
