// Package hazard tests what a lock guarantees when databases and processes behave at their worst:
// stalled statements, killed and paused processes, odd settings, crowds.
package hazard
