// Package cronrowlock has one of several processes run each tick of a schedule of robfig/cron 3
// (github.com/robfig/cron/v3), on the locks of rowlock.
//
//	hourly, err := cron.ParseStandard("CRON_TZ=Europe/Berlin 0 * * * *")
//	…
//	job, err := cronrowlock.New(locks, "report", report, cronrowlock.Config{Schedule: hourly})
//	…
//	c := cron.New()
//	c.Schedule(hourly, job)
//	c.Start()
//
// The ctx of report ends with the lock, and rowlock.FromContext returns the lock, to fence what the
// job writes. Wrapper is for jobs that have no ctx: a cron.JobWrapper.
//
// # What is guaranteed
//
// The first process to come to a tick runs it, and the others skip it. That is decided by the key's
// row: a tick costs its process two statements, and the others one, or two on MySQL and MariaDB.
// After a run the key stays locked for 3/4 of the time to the next tick, at most 24 h, by the
// database's clock, so that a process whose clock is late does not run the tick again. A run that
// fails counts as one.
//
// When the ticks are is cron's business: time zones, and days with 23 or 25 hours. With
// cron.WithLocation set Config.Location to the same. A tick is skipped while any process still runs
// the one before, without cron.SkipIfStillRunning.
//
// After kill -9 of the process that runs a tick, another process runs the first tick after
// Config.TTL. The killed tick is not repeated. A process that was stopped in a run, and wakes after
// its lease has passed on, is refused by its fences, and Config.Failed is told that its lock was
// lost.
package cronrowlock
