package supervise

import "syscall"

// child makes the command the leader of a group, and has the kernel kill it with the warden.
func child() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
