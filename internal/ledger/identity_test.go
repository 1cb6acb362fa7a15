package ledger_test

import (
	"errors"
	"path/filepath"
	"sync"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
)

func TestALedgerIsTheSameToEveryNodeAndAtEveryStart(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		nodes := []*ledger.Ledger{remote(t, name, 1)}
		if ledger.OnServer(name) {
			nodes = append(nodes, remoteAt(t, name))
		}
		shared, err := ledger.OpenShared(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		defer shared.Close()
		first := nodes[0].Identity()
		if len(first) != 16 {
			t.Errorf("the ledger is %q", first)
		}
		for _, l := range append(nodes, shared) {
			c, err := l.Campaign(t.Context(), "c")
			before, err2 := nodes[0].Campaign(t.Context(), "c")
			if err := errors.Join(err, err2); err != nil || l.Identity() != first || c.Marker != before.Marker {
				t.Errorf("a node says that it is %q, and the campaign %q: %v", l.Identity(), c.Marker, err)
			}
		}
	})
}

func TestOfNodesThatOpenALedgerAtOnceOneSaysWhichItIs(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		name := kind.Database(t)
		remoteAt(t, name)
		if _, err := beside(t, name).Exec(`DELETE FROM identity`); err != nil {
			t.Fatal(err)
		}
		var found [4]string
		var opening sync.WaitGroup
		for n := range found {
			opening.Go(func() {
				l, err := ledger.Open(t.Context(), name, ledger.Options{Secret: secret(t), Gate: "redis:test"})
				if err != nil {
					t.Error(err)
					return
				}
				found[n] = l.Identity()
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		opening.Wait()
		for _, identity := range found {
			if identity == "" || identity != found[0] {
				t.Fatalf("the ledger is %q", found)
			}
		}
	})
}

func TestCampaignsOfTwoLedgersHaveDifferentMarkers(t *testing.T) {
	one, other := remote(t, filepath.Join(t.TempDir(), "firstcome.db"), 1), remote(t, filepath.Join(t.TempDir(), "firstcome.db"), 1)
	a, err1 := one.Campaign(t.Context(), "c")
	b, err2 := other.Campaign(t.Context(), "c")
	if err := errors.Join(err1, err2); err != nil || a.Marker == b.Marker || one.Identity() == other.Identity() {
		t.Errorf("two campaigns are %q and %q, %v", a.Marker, b.Marker, err)
	}
}

// TestF32TheLedgerTakesNothingOfAnotherLedgersCampaign gives it coupons that are like its
// own in all but the marker.
func TestF32TheLedgerTakesNothingOfAnotherLedgersCampaign(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := remote(t, name, 5)
		c, err := l.Campaign(t.Context(), "c")
		if err != nil {
			t.Fatal(err)
		}
		own, foreign := decided(t, 1), decided(t, 2)
		own.Marker, foreign.Marker = c.Marker, "0123456789abcdef.1"
		record(t, l, own)
		before := books(t, l)
		again := own
		again.Marker = foreign.Marker
		unknown := foreign
		unknown.Campaign = "unknown"
		for what, c := range map[string]firstcome.Coupon{"a new coupon": foreign, "one like a known one": again, "of no campaign": unknown} {
			if _, err := l.Record(t.Context(), c.Campaign, []firstcome.Coupon{c}); !errors.Is(err, firstcome.ErrGateMismatch) {
				t.Errorf("%s: to record it got %v", what, err)
			}
			if _, err := l.Bury(t.Context(), c.Campaign, []flow.DeadLetter{{Coupon: c, Cause: "a trial"}}); !errors.Is(err, firstcome.ErrGateMismatch) {
				t.Errorf("%s: to bury it got %v", what, err)
			}
		}
		same(t, "the books", before, books(t, l))
		letters, err := l.DeadLetters(t.Context(), ledger.Letters{})
		if err != nil || len(letters) > 0 {
			t.Errorf("there are the letters %v, %v", letters, err)
		}
	})
}
