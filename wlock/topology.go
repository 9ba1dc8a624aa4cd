package wlock

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"

	"github.com/rowlockdb/rowlock/wlock/internal/frame"
)

// topology is what the registry says of a cluster.
type topology struct {
	Version int64           `json:"version"`
	Nodes   map[string]node `json:"allNodeMap"`
	Groups  []struct {
		ID     int32 `json:"groupId"`
		Master int   `json:"masterNode"`
		Nodes  []int `json:"nodeList"`
	} `json:"groupNodeList"`
}

type node struct {
	IP   string `json:"ip"`
	Port int    `json:"port"`
	Seq  int    `json:"sequence"`
}

func (n node) address() string { return net.JoinHostPort(n.IP, strconv.Itoa(n.Port)) }

// parse reads the registry's text. It is JSON but for object keys that are bare numbers.
func parse(text []byte) (*topology, error) {
	t := new(topology)
	if err := json.Unmarshal(frame.Quoted(text), t); err != nil {
		return nil, fmt.Errorf("%w: the registry's topology: %w", ErrCorrupt, err)
	}
	return t, nil
}

// order returns the groups in the order that routing counts them, as the Java client does. It
// refuses ids that fall on one place, whose order would be that of a Java HashMap.
func (t *topology) order(want int) ([]int32, error) {
	n := int32(len(t.Groups))
	if int(n) != want {
		return nil, fmt.Errorf("%w: %d of %d", ErrIncomplete, n, want)
	}
	ids := make([]int32, n)
	for i, g := range t.Groups {
		ids[i] = g.ID
	}
	slices.SortFunc(ids, func(a, b int32) int { return cmp.Compare(a%n, b%n) })
	for i := range ids {
		if i > 0 && ids[i]%n == ids[i-1]%n || ids[i] < 0 {
			return nil, fmt.Errorf("%w: the ids %v fall on one place", ErrIncomplete, ids)
		}
	}
	return ids, nil
}

// place is the index of a wire key's group among the ordered ones.
func place(key string, n int) int {
	var h int32
	for _, c := range []byte(key) { // ASCII, so that a byte is a UTF-16 unit
		h = 31*h + int32(c)
	}
	return int(max(h%int32(n), -(h % int32(n))))
}
