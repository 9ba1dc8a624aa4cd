package main

// refuses is what no tool may say where it cannot read.
const refuses = "free|no such keys|No key is held|No waiters|no key is waited for"

// ofPlaces are of where the tools look: another database, a replica, a pooler, as another user.
var ofPlaces = []situation{
	{"a bridge has moved the key", (*stage).moved, servers, join([]saying{
		{"ls --all", "(cluster 1)", "(free)|(expired)|table", ""},
		{"show k", "moved to the cluster 1", "state    held|free|expired", ""},
		{"console key?k=k", "moved to the cluster 1|Locked in", "<dd>held|<dd>free|expired", ""},
		{"doctor", "", "have run out", ""},
	}, noWaiter, noCycle)},
	{"a bridge has moved the key and back", (*stage).movedBack, servers, join([]saying{
		{"ls", "web-1", "(cluster|(free)|(expired)", ""},
		{"show k", "state    held|web-1", "moved|free|expired", ""},
		{"console key?k=k", "<dd>held</dd>|web-1", "moved|free|expired", ""},
	}, noWaiter, noCycle)},
	{"the tables are of a later version", (*stage).later, "", []saying{
		{"ls", "99", refuses, ""},
		{"show k", "99", refuses, ""},
		{"waiters", "99", refuses, ""},
	}},
	{"the user may only read", (*stage).mayRead, servers, []saying{
		{"ls", "GRANT", refuses, ""},
		{"show k", "GRANT", refuses, ""},
		{"waiters k", "GRANT", refuses, ""},
		{"history", "GRANT", refuses, ""},
	}},
	{"the user has no rights", (*stage).mayNothing, servers, []saying{
		{"ls", "{process}", refuses, ""},
		{"show k", "{process}", refuses, ""},
		{"waiters k", "{process}", refuses, ""},
		{"history", "{process}", refuses, ""},
	}},
	{"the session may only read", (*stage).readsOnly, "postgres", []saying{
		{"ls", "read-only", refuses, ""},
		{"show k", "read-only", refuses, ""},
		{"waiters", "read-only", refuses, ""},
	}},
	{"the server is a replica", (*stage).replica, servers, []saying{
		{"ls", "{process}", refuses, ""},
		{"show k", "{process}", refuses, ""},
		{"waiters k", "{process}", refuses, ""},
		{"doctor --only read-only", "{process}", refuses, ""},
	}},
	{"the way leads through a pooler", (*stage).pooled, "postgres", join([]saying{
		{"ls", "web-1", "(free)|(expired)", ""},
		{"show k", "state    held|web-1", "free|expired", ""},
		{"console key?k=k", "<dd>held</dd>|web-1", "free|expired", ""},
		{"metrics", "rowlock_lock_held 1", "", ""},
	}, noWaiter, noCycle)},
	{
		"the way leads through a pooler, and a transaction has an expired key's row", (*stage).pooledAndLocked, "postgres",
		join(locked, noWaiter, noCycle),
	},
}
