package memstore_test

import (
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/memstore"
)

func TestExpireLeavesDeadRowsAlone(t *testing.T) {
	s := memstore.New()
	s.Expire("no such key")
	if s.Rows() != 0 {
		t.Error("Expire made a row")
	}
	l, _ := take(t, s, "k", time.Hour)
	s.Expire("k")
	if next, granted := take(t, s, "k", time.Hour); !granted || next.Token != l.Token+1 {
		t.Errorf("after Expire: granted %t with token %d after %d", granted, next.Token, l.Token)
	}
}

func TestSetTokenMakesARow(t *testing.T) {
	s := memstore.New()
	s.SetToken("k", 41)
	if l, granted := take(t, s, "k", time.Hour); !granted || l.Token != 42 || s.Rows() != 1 {
		t.Errorf("after SetToken(41): granted %t with token %d", granted, l.Token)
	}
}
