package main

// ofWaits are of calls that wait.
var ofWaits = []situation{
	{"calls wait with and without Fair", (*stage).waitedFor, "", join([]saying{
		{"show k", "state    held|1  queue    web-3|-  process  web-2", "free|expired|waiters  none", ""},
		{"waiters", "k |web-1/4711/orders", "(free)|no key", ""},
		{"waiters k", "1  queue    web-3|-  process  web-2", "no waiters|web-1", ""},
		{"console waits", ">k<|web-1/4711/orders", "(free)|No key", ""},
		{"console key?k=k", "web-2|web-3|in the queue|process, in no order", "No waiters", ""},
		{"console process?k=web-2", "Holds no key|>k<|in no order|>web-1/4711/orders<", "Waits for no", ""},
		{"console process?k=web-3", "Holds no key|>k<|>web-1/4711/orders<", "Waits for no|in no order", ""},
		{"metrics", "rowlock_lock_held 1|rowlock_call_deadlocked_total 0", "", ""},
	}, noCycle)},
	{"a writer waits for readers", (*stage).writerWaits, "", join([]saying{
		{"show k", "state    shared by 2|process  web-3", "free|expired|waiters  none", ""},
		{"waiters", "k ", "(free)|(not held)", ""},
		{"console waits", ">k<|readers", "(free)|(not held)", ""},
	}, noCycle)},
	{"a call waits for any of two keys", (*stage).waitsForAny, "", join([]saying{
		{"show k", "state    held|process  web-2", "free|waiters  none", ""},
		{"waiters", "k |other ", "(free)|(not held)", ""},
	}, noCycle)},
	{"a client of an older version waits", (*stage).waitsWithoutName, "", join([]saying{
		{"show k", "state    held|process  (no name)", "free|expired|waiters  none", ""},
		{"waiters k", "process  (no name)", "no waiters|web-1", ""},
		{"console key?k=k", "(no name)|process, in no order", "No waiters", ""},
	}, noCycle)},
	{"a leader has candidates", (*stage).leads, "", join([]saying{
		{"show election/k", "state    held", "free|expired|waiters  none", ""},
		{"waiters election/k", "web-", "no waiters", ""},
		{"console key?k=election/k", "<dd>held</dd>", "free|expired|No waiters", ""},
		{"metrics", "rowlock_lock_held 1|rowlock_call_waiting 0|rowlock_call_deadlocked_total 0", "", ""},
	}, noCycle)},
	{"calls wait for each other", (*stage).deadlock, "", []saying{
		{"show k", "state    held|web-1", "free|expired", ""},
		{"waiters k", "web-2", "no waiters", ""},
		{"doctor", "2 calls have waited for each other|rowlock release --force --reason deadlock", "no calls wait", ""},
		{"console cycles", "Cycle of 2|web-1|web-2", "No callers", ""},
	}},
	{"one of such calls was ended", (*stage).deadlockEnded, "", join([]saying{
		{"show k", "state    held", "free|expired", ""},
		{"metrics", "rowlock_call_deadlocked_total 1|rowlock_lock_held 1", "", ""},
	}, noCycle)},
	{"calls of processes may wait for each other, and a candidate is not one of them", (*stage).suspicion, "", []saying{
		{"show k", "state    held", "free|expired", ""},
		{"doctor", "perhaps in a cycle", "have waited for each other|deadlock --|election", ""},
		{"console cycles", "Suspicion among 2 processes|need not be a cycle", "Cycle of|election", ""},
		{"metrics", "rowlock_call_suspected_total 0", "", ""},
	}},
}
