// Package gocronrowlock has gocron run each job in one process at a time, or all jobs in one
// process: a Locker and an Elector of gocron 2.21 (github.com/go-co-op/gocron/v2) on the locks of
// rowlock.
//
//	locker := gocronrowlock.NewLocker(locks, rowlock.MinHold(50*time.Minute))
//	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
//	…
//	_, err = s.NewJob(gocron.CronJob("0 * * * *", false), locker.Task(report), gocron.WithName("report"))
//
// gocron gives a job no access to its lock. So the function is wrapped by Task: its ctx ends with
// the lock, and rowlock.FromContext returns the lock, to fence what the job writes:
//
//	func report(ctx context.Context) error {
//		l, _ := rowlock.FromContext(ctx)
//		return l.DoTx(ctx, func(ctx context.Context, tx *sql.Tx) error { … })
//	}
//
// A job without Task is locked too, but is not told of a lost lock and cannot fence.
//
// # What is guaranteed
//
// The first process to come to a tick runs it, and the others skip it: two statements on a server.
// MinHold keeps the key locked after a short job, for processes whose clocks differ: make it longer
// than that, and shorter than the time between two ticks. It costs no statement more. After kill -9
// of the process that runs a job, another process runs it at the first tick after Config.TTL. The
// killed tick is not repeated.
//
// A process that was stopped in a job, and wakes after its lease has passed on, is refused by its
// fences. The error of a job says if its lock ended before it.
//
// The key is the job's name, in the namespace of the client: two programs on the same tables give
// their jobs different names, or use Client.Namespace.
package gocronrowlock
