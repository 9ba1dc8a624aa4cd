//go:build linux

package fight

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// servers are the processes that may be stopped: a server with many threads as a whole, each
// backend of PostgreSQL by itself, and the members of etcd.
func (s *slowdown) servers() (list []int) {
	for _, name := range s.names() {
		for _, text := range pids(name) {
			pid, err := strconv.Atoi(text)
			if err != nil {
				continue
			}
			list = append(append(list, pid), Children(pid)...)
		}
	}
	return list
}

func (s *slowdown) names() []string {
	if s.bridge {
		return []string{s.database, "etcd"}
	}
	return []string{s.database}
}

// threads are those that may be slowed.
func (s *slowdown) threads() (list []int) {
	processes := s.servers()
	if s.database == "sqlite" {
		processes = append(processes, s.team.pids()...)
	}
	for _, pid := range processes {
		list = append(list, tasks(pid)...)
	}
	return list
}

// tasks are the threads of a process. One that has ended has none.
func tasks(pid int) (list []int) {
	entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, e := range entries {
		if id, err := strconv.Atoi(e.Name()); err == nil {
			list = append(list, id)
		}
	}
	return list
}

// Stopped returns when all threads of a process stand still, or it is gone. A signal has been sent
// when kill returns, and a thread in a call of the kernel's comes out of it first.
func Stopped(pid int) {
	for slices.ContainsFunc(tasks(pid), func(id int) bool { return running(pid, id) }) {
		time.Sleep(time.Millisecond)
	}
}

func running(pid, id int) bool {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/stat", pid, id))
	_, state, ok := strings.Cut(string(text), ") ")
	return ok && !strings.ContainsAny(state[:1], "TtZX")
}

// Children are the processes that a process has started.
func Children(pid int) (list []int) {
	for _, task := range tasks(pid) {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, task))
		for _, field := range strings.Fields(string(text)) {
			if id, err := strconv.Atoi(field); err == nil {
				list = append(list, id)
			}
		}
	}
	return list
}
