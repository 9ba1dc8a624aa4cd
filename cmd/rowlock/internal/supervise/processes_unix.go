//go:build unix && !linux

package supervise

import "os"

func adopt() {}

// ReapOrphans does nothing: no container has such a keeper as process 1.
func ReapOrphans() {}

func stillIgnored(os.Signal) bool { return false }

// corpses knows of no zombies.
type corpses struct{}

func (*corpses) only(int) bool { return false }
