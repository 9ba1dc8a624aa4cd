//go:build unix

package main

import "syscall"

// ownGroup makes a process the first of a group, as a shell does.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// interruptGroup is Ctrl-C: the terminal tells all of them.
func interruptGroup(pid int) error { return syscall.Kill(-pid, syscall.SIGINT) }
