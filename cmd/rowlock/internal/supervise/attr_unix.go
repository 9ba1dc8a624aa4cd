//go:build unix && !linux

package supervise

import "syscall"

// child makes the command the leader of a group.
func child() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
