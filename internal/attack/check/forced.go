package check

import "strings"

// ForcedPrefix is of the keys that an operator takes away from their holders, which lose them then.
const ForcedPrefix = "forced/"

func isForced(key string) bool { return strings.HasPrefix(key, ForcedPrefix) }
