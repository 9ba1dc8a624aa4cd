// Package doctor examines a database that has rowlock's tables, and says what is wrong with it for
// locks: its settings, its replicas, its clock, the user's rights, the tables, and what has been
// left in them. Each finding has its severity, what was read and from where, and the cure.
//
// [Examine] only reads, but for the check "open". Each check has a time limit of its own. A check
// that cannot be made, for want of a right or of time, is a finding too and ends nothing.
// docs/operations/doctor.md has each check by its id.
//
// What was read is of one moment and of the sessions that the pool gives: examine with the DSN and
// the user of the application. A check that finds nothing proves nothing about other users, about
// replicas that no right lets it see, or about what happens later.
package doctor
