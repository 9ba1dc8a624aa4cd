package cluster

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

func TestEndpointsThatAreNotWhatTheyLookAreRefused(t *testing.T) {
	for _, c := range []struct {
		etcd    Etcd
		refused bool
	}{
		{Etcd{Endpoints: []string{"http://db:2379"}}, false},
		{Etcd{Endpoints: []string{"http://db:2379"}, CACert: "ca.pem"}, true},
		{Etcd{Endpoints: []string{"HTTP://db:2379"}, Cert: "a.pem", Key: "a.key"}, true},
		{Etcd{Endpoints: []string{"https://a:2379", "http://b:2379"}}, true},
		{Etcd{Endpoints: []string{"https://a:2379", "b:2379"}, CACert: "ca.pem"}, false},
		{Etcd{Endpoints: []string{"https://root:hunter2@a:2379"}}, true},
		{Etcd{Endpoints: []string{"root:hunter2@a:2379"}}, true},
		{Etcd{Endpoints: []string{"http://10.0.0.1:2379"}, RequireTLS: true}, true},
		{Etcd{Endpoints: []string{"127.0.0.1:2379", "db:2379"}, RequireTLS: true}, true},
		{Etcd{Endpoints: []string{"127.0.0.1:2379", "http://localhost:2379"}, RequireTLS: true}, false},
		{Etcd{Endpoints: []string{"https://db:2379"}, RequireTLS: true}, false},
	} {
		c.etcd.Prefix, c.etcd.Timeout = "p/", time.Second
		err := c.etcd.Check()
		if errors.Is(err, lease.ErrConfig) != c.refused || err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%+v: %v, want refused: %t", c.etcd, err, c.refused)
		}
	}
}
