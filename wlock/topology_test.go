package wlock_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/rowlockdb/rowlock/wlock"
	"github.com/rowlockdb/rowlock/wlock/internal/wlocktest"
)

// The numbers are those of Java's String.hashCode.
func TestKeysAreRoutedAsByTheJavaClient(t *testing.T) {
	tenant := wlocktest.Tenant("default_key")
	if tenant != "D484FEEF4F6E564920FABD0DE3C58D77" {
		t.Fatal(tenant)
	}
	sizes := []int{1, 4, 7, 15}
	for key, want := range map[string][]int{
		"my_test_lock": {0, 2, 4, 0}, "order:1001": {0, 1, 2, 12}, "a": {0, 0, 2, 9},
		"hot-row-42": {0, 2, 3, 12}, "user/9999/balance": {0, 0, 0, 11}, "inventory_sku_000123": {0, 0, 1, 1},
	} {
		var got []int
		for _, n := range sizes {
			got = append(got, wlock.Place(tenant+"_"+key, n))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", key, got, want)
		}
	}
	if got := wlock.Place("polygenelubricants", 15); got != 8 { // its hash is the smallest integer
		t.Errorf("%d", got)
	}
}

func TestGroupsAreOrderedAsByTheJavaClient(t *testing.T) {
	text := `{"groupNodeList":[{"groupId":4},{"groupId":6},{"groupId":0},{"groupId":2},{"groupId":3}]}`
	if got, err := wlock.Order(text, 5); err != nil || !slices.Equal(got, []int32{0, 6, 2, 3, 4}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, c := range []struct {
		text string
		want int
	}{{text, 6}, {`{"groupNodeList":[{"groupId":0},{"groupId":2}]}`, 2}, {`{}`, 1}} {
		if got, err := wlock.Order(c.text, c.want); !errors.Is(err, wlock.ErrIncomplete) {
			t.Errorf("%s: %v, %v", c.text, got, err)
		}
	}
}
