// Package ports finds ports for servers that tests and examples start as processes of their own.
package ports

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// Free returns n addresses of this machine that were free a moment ago. It holds all of them before
// it lets any go, so that no two are the same. They are below those that systems give to
// outgoing connections, or one of these could be taken before the server has it.
func Free(n int) (addresses []string, err error) {
	for tries := 0; len(addresses) < n; tries++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(22_000)))
		if err == nil {
			defer l.Close()
			addresses = append(addresses, l.Addr().String())
		} else if tries > 100 {
			return nil, err
		}
	}
	return addresses, nil
}
