//go:build linux

// Chaos breaks what rowlock stands on, one fault at a time and several together, while worker
// processes use it, and checks what each process was told and what the data say.
// See docs/contributing/chaos.md.
//
//	go run ./internal/attack/chaos -on postgres -for 2m -faults reply,kill-server
//
// It is beside make attack because its workers, histories and checks are that program's. Unlike it,
// it starts servers of its own, kills them and sets their clocks. It needs no variables of
// scripts/with-servers, only the programs that those install.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/rowlockdb/rowlock/internal/attack/fight"
)

// settings are the flags.
type settings struct {
	on, faults string
	length     time.Duration
	round      time.Duration
	seed       uint64
	workers    int
	times      int
	report     string
	out        string
	keep       bool
	first      bool
	list       bool
	server     string
}

// errViolated is the end of a run that found something.
var errViolated = errors.New("the guarantees of rowlock were violated")

func main() {
	if job := os.Getenv(fight.JobVariable); job != "" {
		exit(fight.Work(job))
	}
	var s settings
	flag.StringVar(&s.on, "on", "postgres", "databases, with spaces or commas between: postgres, mariadb, mysql")
	flag.StringVar(&s.faults, "faults", "all", "faults, with spaces or commas between; all are those that rowlock must survive")
	flag.DurationVar(&s.length, "for", 2*time.Minute, "for how long on each database; each fault has one round at least")
	flag.DurationVar(&s.round, "round", 10*time.Second, "how long a round is")
	flag.Uint64Var(&s.seed, "seed", 0, "the first round's plan; 0 draws one and prints it")
	flag.IntVar(&s.workers, "workers", 3, "how many client processes")
	flag.IntVar(&s.times, "times", 1, "how many failovers each fault of them has at least on each database")
	flag.StringVar(&s.report, "report", "", "write the report to this file, as Markdown")
	flag.StringVar(&s.out, "out", "", "write what was found to this file, as JSON")
	flag.BoolVar(&s.keep, "keep", false, "keep the records of rounds that found nothing")
	flag.BoolVar(&s.first, "first", false, "stop after the first round with a violation")
	flag.BoolVar(&s.list, "list", false, "list the faults")
	flag.StringVar(&s.server, "server", "", "settings for the server's command line, with spaces between, as a control that must fail")
	flag.Parse()
	if s.list {
		describe()
		return
	}
	if flag.NArg() > 0 || s.workers < 2 || s.round < 6*time.Second {
		flag.Usage()
		os.Exit(2)
	}
	if s.seed == 0 {
		s.seed = uint64(time.Now().UnixNano())%1e9 + 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := chaos(ctx, s)
	stop()
	exit(err)
}

// exit ends with 1 for a violation, and with 2 if the program itself did not work.
func exit(err error) {
	if err == nil {
		os.Exit(0)
	}
	fmt.Fprintln(os.Stderr, "chaos:", err)
	if errors.Is(err, errViolated) {
		os.Exit(1)
	}
	os.Exit(2)
}

func words(list string) []string {
	return strings.FieldsFunc(list, func(c rune) bool { return c == ',' || c == ' ' })
}
