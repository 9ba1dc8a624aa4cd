//go:build linux

package fight

import (
	"fmt"
	"os"
	"strconv"
	"strings"
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
