package tenant_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/tenant"
)

// A client that serves one tenant after the other for years must not remember each of them.
func TestASpaceThatNothingRefersToIsForgotten(t *testing.T) {
	var s tenant.Spaces
	kept, err := s.In(nil, "kept", tenant.Quota{Held: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := kept.Hold(1); err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		outer, err := s.In(nil, fmt.Sprint(i), tenant.Quota{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.In(outer, "inner", tenant.Quota{}); err != nil {
			t.Fatal(err)
		}
	}
	for began := time.Now(); s.Len() > 1; runtime.GC() {
		if time.Since(began) > time.Minute {
			t.Fatalf("%d spaces are remembered, and one is in use", s.Len())
		}
	}
	again, err := s.In(nil, "kept", tenant.Quota{Held: 1})
	if err != nil || again != kept || again.Hold(1) == nil {
		t.Errorf("a space in use was forgotten, or its numbers: %v", err)
	}
	if _, err := s.In(nil, "kept", tenant.Quota{Held: 2}); err == nil {
		t.Error("a space in use has got another quota")
	}
	if _, err := s.In(nil, "1", tenant.Quota{Held: 2}); err != nil {
		t.Errorf("a space that was forgotten has kept its quota: %v", err)
	}
	runtime.KeepAlive(kept)
}
