// Package supervise runs a command in a process group that ends at a deadline, whatever becomes of
// the process that sets the deadline.
//
// Three processes take part. The keeper holds the lock and renews it. The warden is a small process
// between it and the command: it gets each new deadline through a pipe, and ends the command's
// group when the last one comes near. The command is the warden's child.
//
//   - If the keeper is killed, the pipe ends, and the warden ends the group at once.
//   - If the keeper is stopped (SIGSTOP), no new deadline comes, and the warden ends the group at
//     the last one.
//   - If the warden is killed, the keeper kills the group. On Linux the kernel kills the
//     command itself, even if the keeper was killed in the same moment.
//
// To end a group is SIGTERM, and SIGKILL after a grace, at the deadline at the latest. A process
// that has left the group (setsid) is not ended.
//
// On Linux the warden inherits the orphans of the command and asks for them, because process 1 of a
// container may not. A zombie of the group whose parent does not ask for it is no reason to wait.
package supervise
