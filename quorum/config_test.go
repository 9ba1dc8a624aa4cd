package quorum

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// roaming is a store that says it is a bridge.
type roaming struct{ *memstore.Store }

func (roaming) Reaches(int) bool { return true }

// bare is a store without abilities.
type bare struct{ lease.Store }

// wrapped is the same store behind a wrapper.
type wrapped struct{ lease.Store }

func (w wrapped) Unwrap() lease.Store { return w.Store }

func TestWhatIsNoQuorumIsRefused(t *testing.T) {
	a, b, c := memstore.New(), memstore.New(), memstore.New()
	inner, err := New(a, b, c)
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]struct {
		cfg    Config
		stores []lease.Store
		says   []string // the value and the cure
	}{
		"none":           {stores: nil, says: []string{"no stores", "give 3 or 5"}},
		"one":            {stores: []lease.Store{a}, says: []string{"1 store", "rowlock.New"}},
		"two":            {stores: []lease.Store{a, b}, says: []string{"2 stores", "leave one out or add one"}},
		"four":           {stores: []lease.Store{a, b, c, memstore.New()}, says: []string{"4 stores", "than 3"}},
		"nil":            {stores: []lease.Store{a, nil, c}, says: []string{"store 2 is nil", "leave it out"}},
		"a nil pointer":  {stores: []lease.Store{a, b, (*memstore.Store)(nil)}, says: []string{"store 3 is nil (*memstore.Store)"}},
		"a store twice":  {stores: []lease.Store{a, b, a}, says: []string{"stores 1 and 3", "a database of its own"}},
		"a wrapped copy": {stores: []lease.Store{a, wrapped{b}, b}, says: []string{"stores 2 and 3"}},
		"a bridge":       {stores: []lease.Store{a, roaming{b}, c}, says: []string{"store 2 is a bridge", "give its table"}},
		"a hidden bridge": {
			stores: []lease.Store{a, b, wrapped{roaming{c}}}, says: []string{"store 3 is a bridge"},
		},
		"a quorum":      {stores: []lease.Store{memstore.New(), memstore.New(), inner}, says: []string{"store 3 is a quorum of 3", "name its members"}},
		"no raiser":     {stores: []lease.Store{a, b, bare{c}}, says: []string{"store 3 (quorum.bare)", "rowlock.OpenTable"}},
		"Timeout < 0":   {cfg: Config{Timeout: -1}, stores: []lease.Store{a, b, c}, says: []string{"Timeout (-1ns)", "leave it 0"}},
		"Timeout tiny":  {cfg: Config{Timeout: time.Microsecond}, stores: []lease.Store{a, b, c}, says: []string{"Timeout (1µs)", "1ms"}},
		"Drift < 0":     {cfg: Config{Drift: -0.1}, stores: []lease.Store{a, b, c}, says: []string{"Drift (-0.1)", "0.01"}},
		"Drift is NaN":  {cfg: Config{Drift: math.NaN()}, stores: []lease.Store{a, b, c}, says: []string{"Drift (NaN)"}},
		"Drift is huge": {cfg: Config{Drift: 0.5}, stores: []lease.Store{a, b, c}, says: []string{"Drift (0.5)"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := NewWith(bad.cfg, bad.stores...)
			if s != nil || !errors.Is(err, lease.ErrConfig) {
				t.Fatalf("%v, %v; want lease.ErrConfig", s, err)
			}
			for _, part := range append(bad.says, "rowlock: invalid configuration: quorum: ") {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q has several lines", err)
			}
		})
	}
	for _, m := range []*memstore.Store{a, b, c} {
		if m.Rows() != 0 {
			t.Error("something was written")
		}
	}
}

func TestQuorumsOfTheSameMembersAreTheSameTables(t *testing.T) {
	a, b, c := memstore.New(), memstore.New(), memstore.New()
	one, _ := New(a, b, c)
	two, _ := New(a, wrapped{b}, c)
	other, _ := New(a, b, memstore.New())
	if one.Tables() != two.Tables() || one.Tables() == other.Tables() {
		t.Error("quorums are not told apart by their members")
	}
}
