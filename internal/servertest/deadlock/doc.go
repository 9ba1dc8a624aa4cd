// Package deadlock has the tests of calls that wait for each other: several processes on all
// databases, of which some are stopped or killed.
package deadlock
