package adapter

import (
	"fmt"

	"github.com/rowlockdb/rowlock/lease"
)

// Claim is what a bridge writes into its cluster to name its table and the table's number for the
// cluster, or "" for a table that does not know its instance.
func Claim(table lease.Store, placement int) string {
	t, ok := As[interface{ Instance() string }](table)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d %s", placement, t.Instance())
}

// CheckClaim compares the claim of a cluster with the table that wants it. Its error wraps
// lease.ErrConfig.
func CheckClaim(first, owner string) error {
	if first == owner {
		return nil
	}
	return fmt.Errorf("%w: bridge: the cluster belongs to the tables %q, and these are %q (placement, "+
		"instance, prefix): give each application a cluster or an etcd.Prefix of its own; if these tables "+
		"replace those, which are lost, delete the cluster's claim: docs/hot-keys.md", lease.ErrConfig,
		first, owner)
}
