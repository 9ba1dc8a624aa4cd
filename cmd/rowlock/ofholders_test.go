package main

// ofHolders are of processes that have the key, or had it.
var ofHolders = []situation{
	{"no process has ever locked the key", func(*stage) {}, "", join([]saying{
		{"ls --all", "no such keys", "k ", ""},
		{"show k", "key k has no row: it is free", "held|expired|holder", ""},
		{"history k", "no such records", "k ", ""},
		{"console", "No key is held", ">k<", ""},
		{"console key?k=k", "free: no row|No waiters", "<dd>held|expired", ""},
	}, noWaiter, noCycle)},
	{"a holder is alive", (*stage).alive, "", join([]saying{
		{"ls", "web-1/4711/orders", "(free)|(expired)|corrupt", ""},
		{"show k", "state    held|web-1/4711/orders|unless renewed", "free|expired|locked", ""},
		{"console", "web-1/4711/orders", "(free)|expired|corrupt", ""},
		{"console key?k=k", "<dd>held</dd>|web-1/4711/orders", "free|expired", ""},
		{"console process?k=web-1/4711/orders", "Holds: 1 key|>k<|Waits for no key", "Holds no", ""},
		{"doctor", "", "have run out", ""},
		{"metrics", "rowlock_lock_held 1|rowlock_call_waiting 0|rowlock_lock_released_total 0", "", ""},
	}, noWaiter, noCycle)},
	{"a holder has unlocked the key", (*stage).unlocked, "", join([]saying{
		{"ls", "no such keys", "web-1", ""},
		{"ls --all", "(free)", "web-1|(expired)", ""},
		{"show k", "state    free", "held|expired|web-1", ""},
		{"console", "No key is held", "web-1", ""},
		{"console key?k=k", "<dd>free</dd>", "<dd>held|expired|web-1", ""},
		{"doctor", "", "have run out", ""},
		{"metrics", "rowlock_lock_held 0|rowlock_lock_released_total 1", "", ""},
	}, noWaiter, noCycle)},
	{"a holder was killed, and its lease goes on", (*stage).killed, "", heldByProcess},
	{"a holder is stopped, and its lease goes on", (*stage).stands, "", heldByProcess},
	{"a holder was killed, and its lease has expired", (*stage).expired, "", expiredAndFree},
	{"a holder is stopped, and its lease has expired", (*stage).standsLate, "", expiredAndFree},
	{"a holder is cut off, and its lease goes on", (*stage).cutOff, servers, heldByProcess},
	{"a holder is cut off, and its lease has expired", (*stage).cutOffLate, servers, expiredAndFree},
	{"MinHold keeps a key after its holder has gone", (*stage).kept, "", join([]saying{
		{"ls", "cron-1", "(free)|(expired)", ""},
		{"show k", "state    held|cron-1", "free|expired", ""},
		{"console key?k=k", "<dd>held</dd>|cron-1", "free|expired", ""},
		{"doctor", "", "have run out", ""},
	}, noWaiter, noCycle)},
	{"MinHold has ended", (*stage).keptLongEnough, "", join([]saying{
		{"ls", "no such keys", "cron-1", ""},
		{"show k", "ago: free for the next caller", "held|locked", servers},
		{"console", "No key is held", "cron-1", ""},
		{"doctor", "", "have run out", ""},
	}, noWaiter, noCycle)},
	{"readers share the key", (*stage).shared, "", join([]saying{
		{"ls", "+1", "(free)|(expired)", ""},
		{"show k", "state    shared by 2", "free|expired", ""},
		{"console", "2 readers", "expired|corrupt", ""},
		{"console key?k=k", "shared by 2|web-1|web-2", "free|expired", ""},
		{"doctor", "", "have run out", ""},
		{"metrics", "rowlock_lock_held 1", "", ""},
	}, noWaiter, noCycle)},
	{"a lock has lasted for longer than MaxHold, and its lease goes on", (*stage).tooLong, "", join([]saying{
		{"ls", "web-1", "(free)|(expired)", ""},
		{"show k", "state    held|web-1|unless renewed", "free|expired", ""},
		{"console key?k=k", "<dd>held</dd>|web-1", "free|expired", ""},
		{"doctor", "", "have run out", ""},
		{"metrics", `rowlock_lock_held 0|rowlock_lock_lost_total{error_type="max_hold"} 1`, "", ""},
	}, noWaiter, noCycle)},
	{"an operator has taken the key", (*stage).forced, "", join([]saying{
		{"ls", "no such keys", "web-1", ""},
		{"show k", "state    free", "held|expired|web-1", ""},
		{"history", "ada|hangs|web-1/4711/orders", "", ""},
		{"console", "No key is held", "web-1", ""},
		{"console key?k=k", "<dd>free</dd>|ada|hangs", "<dd>held|expired", ""},
		{"console records", "ada|hangs|web-1/4711/orders", "No forced release", ""},
		{"doctor", "", "have run out", ""},
		{"metrics", "rowlock_lock_held 0|rowlock_lock_forced_total 1|rowlock_lock_released_total 0", "", ""},
	}, noWaiter, noCycle)},
}

// heldByProcess is said of a holder that does nothing any more, as long as its lease goes on.
var heldByProcess = join([]saying{
	{"ls", "{process}", "(free)|(expired)", ""},
	{"show k", "state    held|{process}|unless renewed", "free|expired", ""},
	{"console key?k=k", "<dd>held</dd>|{process}", "free|expired", ""},
	{"doctor", "", "have run out", ""},
}, noWaiter, noCycle)

// expiredAndFree is said of a holder whose lease has expired, and which has no transaction.
var expiredAndFree = join([]saying{
	{"ls", "no such keys", "{process}", ""},
	{"ls --all", "(expired)|{process}", "(free)", ""},
	{"show k", "expired |ago: free for the next caller", "held|locked", servers},
	{"show k", "expired |ago: free, unless a transaction still has its row locked", "held", "sqlite"},
	{"console", "No key is held", "{process}", ""},
	{"console key?k=k", "expired |ago: free for the next caller", "<dd>held|locked", servers},
	{"console key?k=k", "expired |ago: free, unless a transaction still has its row locked", "<dd>held", "sqlite"},
	{"doctor", "the leases of 1 keys have run out", "", ""},
}, noWaiter, noCycle)
