// Package latch has parties in any process wait for each other: a [Latch] opens when all have
// counted down, and a [Barrier] lets all in together and out together.
//
//	l, err := latches.Open(ctx, "import-7", 3) // by every process, with the same number
//	err = l.CountDown(ctx, "shard-1")          // by each party, as often as it likes
//	err = l.Await(ctx)                         // returns once three parties have counted down
//
// A party is a name of the application's choice. It counts once, however often it counts down: from
// several processes at once, after a crash, or because the answer was lost. Each party has a row of
// its own, so that a thousand parties do not wait for each other. [Latch.CountDownTx] counts within
// the caller's transaction: the party has counted down exactly if that is committed.
//
// A latch rests on the database's transactions alone. No lease can expire and open it, and no clock
// is compared. Await tells that a latch is open after a commit of its own was acknowledged, so that
// a failover does not forget what it was told of.
//
// Latch does not say that a party is still alive. If one dies before it counts down, Await waits
// until its ctx ends. A Barrier notices: its parties have a heartbeat.
//
// A latch and its parties are removed once it was not opened, reset or awaited for Config.Keep.
package latch
