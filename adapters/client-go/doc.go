// Package leaderrowlock has controllers elect their leader through the database: a
// resourcelock.Interface of client-go 0.37 (k8s.io/client-go/tools/leaderelection) on the locks of
// rowlock, in place of a Lease object. The API server is not asked, so that it works outside a
// cluster too.
//
//	lock, err := leaderrowlock.New(locks, "controller", hostname)
//	…
//	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
//		Lock:            lock,
//		ReleaseOnCancel: true,
//		LeaseDuration:   15 * time.Second,
//		RenewDeadline:   10 * time.Second,
//		RetryPeriod:     2 * time.Second,
//		Callbacks: leaderelection.LeaderCallbacks{
//			OnStartedLeading: lock.Leading(lead),
//			OnStoppedLeading: func() { os.Exit(1) },
//		},
//	})
//
// client-go's Lease cannot fence: its own documentation says that two may lead. Leading gives the
// lock to what leads: the ctx ends with it, and rowlock.FromContext returns it, to fence what the
// leader writes to the database:
//
//	func lead(ctx context.Context) {
//		l, _ := rowlock.FromContext(ctx)
//		err := l.DoTx(ctx, func(ctx context.Context, tx *sql.Tx) error { … })
//
// # What is guaranteed
//
// One candidate holds the key's row at a time, by the database's clock. LeaseDuration, of whole
// seconds, is its TTL. The client renews it, so that a RetryPeriod costs the leader no statement,
// and each other candidate one read. After kill -9 of the leader another candidate leads within
// LeaseDuration and one RetryPeriod, whose jitter can double it.
//
// An elector that hangs is no leader for ever: LeaseDuration is MaxIdle too, and the key is free
// within twice LeaseDuration. It is after an elector without ReleaseOnCancel, too. A candidate that
// has lost the lock does not lead again before its elector has said that it stopped.
//
// If a leader is cut off from the database, only the ctx of Leading has ended for certain before
// another leads. IsLeader and OnStoppedLeading learn of it up to RenewDeadline and RetryPeriod
// after the last Update, at which about half of LeaseDuration was left: if the two are longer than
// that, after another has begun.
//
// A client with a RenewEvery of its own needs one below half of what its TTL leaves beside Margin:
// otherwise an Update before each renewal is refused as late.
//
// client-go does not wait for OnStartedLeading to return. With ReleaseOnCancel the next leader may
// begin while the last one still ends: what that one writes is refused where it fences, and nowhere
// else. package election waits, and costs a program without client-go less.
//
// Each candidate has an identity of its own, as with client-go's. Of two with the same only one
// leads, but both report IsLeader. The record's LeaderTransitions is the token. Coordinated is not
// supported.
package leaderrowlock
