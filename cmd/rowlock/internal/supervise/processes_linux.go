package supervise

import (
	"bytes"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// adopt has the kernel give the orphans of the command to the warden, and not to process 1.
func adopt() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// ReapOrphans asks for the processes that the kernel gives to a keeper that is process 1 of a
// container: those that the warden has not inherited, as a health check's. Their zombies would use
// up the container's process numbers.
func ReapOrphans() {
	if os.Getpid() != 1 {
		return
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	go func() {
		for range ended {
			for pid := 1; pid > 0; {
				pid, _ = syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			}
		}
	}()
}

// stillIgnored reports whether the kernel ignores s: Go leaves those alone that stop a process.
func stillIgnored(s os.Signal) bool {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false
	}
	_, rest, _ := bytes.Cut(text, []byte("\nSigIgn:"))
	line, _, _ := strings.Cut(string(rest), "\n")
	mask, err := strconv.ParseUint(strings.TrimSpace(line), 16, 64)
	number, ok := s.(syscall.Signal)
	return err == nil && ok && mask&(1<<(number-1)) != 0
}

// corpses looks for groups of which only zombies are left.
type corpses struct {
	next  time.Time // when to look again
	found bool
}

// only reports whether the group has zombies and nothing else. It reads about all processes of the
// machine, and then not for a while that is long beside what it took.
func (c *corpses) only(group int) bool {
	began := time.Now()
	if began.Before(c.next) {
		return c.found
	}
	states := statesOf(group)
	c.found = len(states) > 0 && !slices.Contains(states, true)
	c.next = time.Now().Add(20 * time.Since(began))
	return c.found
}

// statesOf returns for each process of a group whether it runs.
func statesOf(group int) (running []bool) {
	names, _ := os.ReadDir("/proc")
	for _, name := range names {
		if pid, err := strconv.Atoi(name.Name()); err == nil {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			if its, alive := parse(stat); err == nil && its == group {
				running = append(running, alive)
			}
		}
	}
	return running
}

// parse reads the group and the state in /proc/PID/stat. A process whose first thread has ended
// looks like a zombie while others run: a zombie has no threads.
func parse(stat []byte) (group int, alive bool) {
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 18 {
		return 0, false
	}
	group, _ = strconv.Atoi(fields[2])
	threads, _ := strconv.Atoi(fields[17])
	return group, threads > 1 || !strings.ContainsAny(fields[0], "ZXx")
}
