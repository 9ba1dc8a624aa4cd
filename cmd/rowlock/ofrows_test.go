package main

// locked is said of an expired key whose row a session has locked.
var locked = []saying{
	{"ls --all", "(expired)", "(free)", ""},
	{"show k", "its row is still locked by session |(client |release --prefix {prefix} 'k' --force --evict", "held|free", servers},
	{"show k", "free, unless a transaction still has its row locked", "held|next caller", "sqlite"},
	{"console key?k=k", "its row is still locked by session |(client |release --prefix {prefix} &#39;k&#39; --force --evict", "<dd>held|free", servers},
	{"console key?k=k", "free, unless a transaction still has its row locked", "<dd>held|next caller", "sqlite"},
}

// ofRows are of the key's row.
var ofRows = []situation{
	{"a holder is stopped in a fenced transaction, and its lease has expired", (*stage).stopped, "", join(locked, []saying{
		{"ls --all", "{process}", "", ""},
		{"doctor", "could not renew", "", ""},
	}, noWaiter, noCycle)},
	{"a holder is cut off in a fenced transaction, and its lease has expired", (*stage).cutOffInside, servers, join(locked, noWaiter, noCycle)},
	{"such a key is waited for", (*stage).stoppedAndWaitedFor, servers, join([]saying{
		{"show k", "its row is still locked by session |(client |web-2", "held|free", ""},
		{"waiters", "k ", "(free)", ""},
		{"waiters k", "process  web-2", "(free)", ""},
		{"console waits", ">k<", "(free)", ""},
		{"console key?k=k", "its row is still locked by session |(client |web-2", "<dd>held|free", ""},
	}, noCycle)},
	{"a call has ended the session that had such a row", (*stage).evicted, servers, join([]saying{
		{"ls", "web-2", "{process}|(expired)", ""},
		{"show k", "state    held|web-2", "free|expired|locked", ""},
		{"console key?k=k", "<dd>held</dd>|web-2", "free|expired", ""},
		{"doctor", "", "have run out", ""},
		{"metrics", "rowlock_session_evicted_total 1|rowlock_session_eviction_failed_total 0", "", ""},
	}, noCycle)}, // a process counts as a waiter for a while after its last call
	{"a transaction that is not rowlock's has an expired key's row", (*stage).lockedByAnother, "", join(locked, noWaiter, noCycle)},
	{"a prepared transaction has an expired key's row", (*stage).prepared, servers, join([]saying{
		{"ls --all", "(expired)", "(free)", ""},
		{"show k", "its row is still locked by a prepared transaction, which no session has|{process}", "held|free|--evict", ""},
		{"console key?k=k", "its row is still locked by a prepared transaction, which no session has", "<dd>held|free|--evict", ""},
	}, noWaiter, noCycle)},
	{"a transaction has unlocked the key, and is not committed", (*stage).unlocking, "", join([]saying{
		{"ls", "web-1", "(free)|(expired)", ""},
		{"show k", "state    held|web-1", "free|expired", ""},
		{"console key?k=k", "<dd>held</dd>|web-1", "free|expired", ""},
		{"doctor", "", "have run out", ""},
	}, noWaiter, noCycle)},
	{"a commit has handed the key over", (*stage).handedOver, "", join([]saying{
		{"ls", "the second", "the first|(free)|(expired)", ""},
		{"show k", "state    held|the second", "the first|free|expired", ""},
		{"console key?k=k", "<dd>held</dd>|the second", "the first|free|expired", ""},
		{"metrics", "rowlock_lock_held 1|rowlock_lock_acquired_total 2|rowlock_call_waiting 0", "", ""},
	}, noCycle)},
	{"a row is corrupt", (*stage).corrupt, "", join([]saying{
		{"ls --all", "(corrupt)", "(free)|(expired)", ""},
		{"show k", "corrupt: |rowlock release", "state    held|free|expired", ""},
		{"console key?k=k", "corrupt: ", "<dd>held|<dd>free|expired", ""},
		{"doctor", "have values that rowlock does not write", "", ""},
	}, noCycle)},
}
