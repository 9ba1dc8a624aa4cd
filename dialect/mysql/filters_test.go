package mysql

import (
	"errors"
	"testing"

	"github.com/rowlockdb/rowlock/lease"
)

func TestADatabaseThatTheBinaryLogLeavesOutIsNotSynchronous(t *testing.T) {
	for _, c := range []struct {
		do, ignore []string
		ok         bool
	}{
		{nil, nil, true},
		{[]string{"app"}, nil, true},
		{[]string{"other", "app"}, []string{"third"}, true},
		{[]string{"other"}, nil, false},
		{[]string{"App"}, nil, false}, // the server compares so
		{nil, []string{"app"}, false},
		{nil, []string{"apps"}, true},
	} {
		if err := logged("app", c.do, c.ignore); c.ok != (err == nil) || !c.ok && !errors.Is(err, lease.ErrNotSynchronous) {
			t.Errorf("do %q, ignore %q: %v", c.do, c.ignore, err)
		}
	}
}
