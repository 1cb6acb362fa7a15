package ledger_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/stage"
)

// A farGate is a fake gate of the campaign c, which issues what decided says.
type farGate struct {
	*stage.Gate
	t testing.TB
}

// newFarGate returns a gate whose clock shows when decided says that its next number was issued.
func newFarGate(t testing.TB) *farGate {
	g := &farGate{Gate: stage.NewGate(0), t: t}
	g.Clock = func() time.Time {
		if c := g.Course("c"); c != nil {
			return decided(t, c.Last+1).IssuedAt
		}
		return opening
	}
	return g
}

// issue issues the next numbers.
func (g *farGate) issue(coupons int) {
	g.t.Helper()
	for range coupons {
		user := decided(g.t, g.Course("c").Last+1).User
		decisions, err := g.Claim(g.t.Context(), "c", []firstcome.UserID{user})
		if err != nil || decisions[0].Outcome != firstcome.Issued {
			g.t.Fatal(decisions, err)
		}
	}
}

// record has the ledger record what the gate issued.
func (g *farGate) record(l *ledger.Ledger) {
	g.t.Helper()
	g.Settle("c", record(g.t, l, g.Take("c")...))
}

// A node is one of several, with what its operators' calls do.
type node struct {
	*ledger.Ledger
	*flow.Changer
}

// shop returns two nodes on one ledger and one gate, and the campaign c, of which
// the gate knows.
func shop(t testing.TB, name string, quantity int64) (node, node, *farGate) {
	t.Helper()
	l, g := remote(t, name, quantity), newFarGate(t)
	other := l
	if ledger.OnServer(name) {
		other = remoteAt(t, name)
	}
	a, b := node{l, flow.NewChanger(l, g, nil)}, node{other, flow.NewChanger(other, g, nil)}
	stage.Must(t, a.Finish(t.Context(), "c", 1))
	return a, b, g
}

// quantity asks for another quantity, and returns the version of the change.
func (n node) quantity(t testing.TB, to int64) int64 {
	t.Helper()
	version, err := n.SetTerms(context.Background(), "test", "c", 0, func(terms *firstcome.Terms) {
		terms.Quantity = to
	})
	stage.Must(t, err)
	return version
}

func finish(t testing.TB, n node, version int64) {
	t.Helper()
	stage.Must(t, n.Finish(t.Context(), "c", version))
}

// agree checks that ledger and gate are at the same version with the same terms.
func agree(t testing.TB, l *ledger.Ledger, g *farGate, quantity int64) {
	t.Helper()
	s, err := l.Campaign(t.Context(), "c")
	stage.Must(t, err)
	same(t, "the ledger's version, what is applied, the gate's", []int64{s.Version, s.Version, s.Version}, []int64{s.Version, s.Applied, g.Course("c").Version})
	same(t, "the quantity in the ledger and at the gate", []int64{quantity, quantity}, []int64{s.Quantity, g.Course("c").Quantity})
	for n, v := range g.Course("c").Applied {
		same(t, "the changes took effect once, in order", int64(n+1), v)
	}
}

func TestACampaignOfARemoteGateIsMadeThereByItsFirstChange(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l, g := remote(t, name, 5), newFarGate(t)
		s, err := l.Campaign(t.Context(), "c")
		stage.Must(t, err)
		same(t, "version, applied, epoch, gate", []any{int64(1), int64(0), int64(1), "redis:test"}, []any{s.Version, s.Applied, s.Epoch, s.Gate})
		pending, err := l.Pending(t.Context(), "")
		if err != nil || len(pending) != 1 {
			t.Fatalf("pending: %v, %v", pending, err)
		}
		c := pending[0]
		same(t, "the change", firstcome.Change{Campaign: "c", Version: 1, Kind: "terms", Epoch: 1, At: s.CreatedAt, Marker: s.Marker, Terms: s.Terms}, c)
		if _, err := l.Switch(t.Context(), "test", "c", ledger.Pause); !errors.Is(err, firstcome.ErrPending) {
			t.Errorf("a second change before the first is there: %v", err)
		}
		stage.Must(t, flow.NewChanger(l, g, nil).Finish(t.Context(), "c", 1))
		agree(t, l, g, 5)
	})
}

// TestF20AnOperatorsNodeMayDieBetweenAnyTwoSteps follows one change through its
// steps and stops the operator's node, a, behind each; node b then finishes it.
func TestF20AnOperatorsNodeMayDieBetweenAnyTwoSteps(t *testing.T) {
	for what, quantity := range map[string]int64{"a raise": 10, "a lowering": 4} {
		for died, after := range []string{"the ledger took it", "the gate applied it", "the ledger noted it"} {
			t.Run(what+", dead after "+after, func(t *testing.T) {
				onEach(t, func(t *testing.T, name string) { dieAfter(t, name, quantity, died) })
			})
		}
	}
}

func dieAfter(t *testing.T, name string, quantity int64, died int) {
	a, b, g := shop(t, name, 5)
	g.issue(3)
	version := a.quantity(t, quantity)
	change := pendingOf(t, a)
	if died >= 1 {
		if refused, err := g.Apply(t.Context(), change); err != nil || refused {
			t.Fatal(refused, err)
		}
	}
	if died >= 2 {
		stage.Must(t, a.Applied(t.Context(), change, false))
	}
	g.record(b.Ledger)
	finish(t, b, version)
	finish(t, b, version)
	agree(t, b.Ledger, g, quantity)
}

func pendingOf(t testing.TB, n node) firstcome.Change {
	t.Helper()
	pending, err := n.Pending(t.Context(), "c")
	if err != nil || len(pending) != 1 {
		t.Fatalf("pending: %v, %v", pending, err)
	}
	return pending[0]
}

func TestF20TwoNodesThatFinishTheSameChangeDoItOnce(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		a, b, g := shop(t, name, 5)
		g.issue(5)
		g.record(a.Ledger)
		stage.Must(t, stage.Err(a.Void(t.Context(), "test", "c", 2, "a mistake")))
		// Both read that the change is pending; a brings it to the gate, and before it
		// notes that, b does all of it, and the next change too.
		change := pendingOf(t, a)
		stage.Must(t, stage.Err(g.Apply(t.Context(), change)))
		finish(t, b, 0)
		g.issue(1) // the stock that came back
		finish(t, b, b.quantity(t, 6))
		stage.Must(t, a.Applied(t.Context(), change, false))
		stage.Must(t, stage.Err(g.Apply(t.Context(), change)))
		g.record(a.Ledger)
		agree(t, a.Ledger, g, 6)
		same(t, "in force at the gate and in the ledger", []int{5, 5}, []int{len(g.Course("c").Holders), int(books(t, a.Ledger).InForce)})
	})
}

func TestF20AGateWithMoreInForceThanTheLedgerKnowsRefusesALowerQuantity(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		a, b, g := shop(t, name, 10)
		g.issue(3)
		g.record(a.Ledger)
		g.issue(4) // the ledger does not know of these
		version := a.quantity(t, 5)
		status, err := a.Campaign(t.Context(), "c")
		if err != nil || status.Quantity != 10 {
			t.Errorf("the lower quantity is effective before the gate has it: %+v, %v", status, err)
		}
		if err := b.Finish(t.Context(), "c", 0); err != nil {
			t.Errorf("another node's operator is told of it: %v", err)
		}
		if err := a.Finish(t.Context(), "c", version); !errors.Is(err, firstcome.ErrBelowInForce) {
			t.Errorf("the operator is told %v", err)
		}
		g.record(a.Ledger)
		agree(t, a.Ledger, g, 10)
		terms, err := a.Terms(t.Context(), "c", version)
		if err != nil || terms.Quantity != 10 {
			t.Errorf("the terms as of the refused change have the quantity %d, %v", terms.Quantity, err)
		}
		finish(t, a, a.quantity(t, 7))
		agree(t, a.Ledger, g, 7)
	})
}

func TestF20ARaiseHoldsInTheLedgerBeforeTheGateIssuesMore(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		a, _, g := shop(t, name, 3)
		g.issue(3) // unrecorded while the raise is made
		version := a.quantity(t, 5)
		change := pendingOf(t, a)
		stage.Must(t, stage.Err(g.Apply(t.Context(), change)))
		g.issue(2)
		g.record(a.Ledger) // before anybody noted that the gate has it
		finish(t, a, version)
		agree(t, a.Ledger, g, 5)
		same(t, "in force", int64(5), books(t, a.Ledger).InForce)
	})
}

func TestF20WhileTheGateIsAwayAChangeWaitsAndTheNextIsToldSo(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		a, b, g := shop(t, name, 5)
		g.Changes = errors.New("connection refused")
		version, err := a.Switch(t.Context(), "test", "c", ledger.Close)
		stage.Must(t, err)
		if s, err := a.Campaign(t.Context(), "c"); err != nil || !s.Closed || s.Applied == s.Version {
			t.Fatalf("%+v, %v", s, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := a.Finish(ctx, "c", version); err == nil {
			t.Error("the operator is told that it is closed")
		}
		if _, err := b.Switch(t.Context(), "test", "c", ledger.Close); !errors.Is(err, firstcome.ErrPending) {
			t.Errorf("the next operator is told %v", err)
		}
		g.Changes = nil
		finish(t, b, version)
		agree(t, a.Ledger, g, 5)
		same(t, "nothing is pending", 0, len(pendingAll(t, a)))
	})
}

func pendingAll(t testing.TB, n node) []firstcome.Change {
	t.Helper()
	pending, err := n.Pending(t.Context(), "")
	stage.Must(t, err)
	return pending
}

func TestAChangeIsNotNotedBeforeTheOneBeforeIt(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		a, _, _ := shop(t, name, 5)
		a.quantity(t, 6)
		change := pendingOf(t, a)
		change.Version++
		if err := a.Applied(t.Context(), change, false); !errors.Is(err, flow.ErrGap) {
			t.Errorf("a change that nobody made is noted: %v", err)
		}
		change.Version--
		if err := a.Applied(t.Context(), change, true); err == nil {
			t.Error("a refused raise is noted as if it were nothing")
		}
	})
}

func TestF19AVoidedCouponStaysVoidedWhenItsEntryComesAgain(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		a, _, g := shop(t, name, 5)
		g.issue(5)
		entries := g.Course("c").Journal
		g.record(a.Ledger)
		stage.Must(t, stage.Err(a.Void(t.Context(), "test", "c", 3, "a mistake")))
		before := books(t, a.Ledger)
		finish(t, a, 0)
		record(t, a.Ledger, entries...)
		same(t, "the books", before, books(t, a.Ledger))
		same(t, "in force at the gate", 4, len(g.Course("c").Holders))
		stage.Must(t, a.Applied(t.Context(), firstcome.Change{Campaign: "c", Version: 2}, false))
		// The user claims again; the old void comes again and leaves the new coupon alone.
		void := firstcome.Change{Campaign: "c", Version: 2, Kind: firstcome.ChangeVoid, Number: 3, User: "user-3"}
		g.Course("c").Holders["user-3"] = decided(t, 6)
		if _, err := g.Apply(t.Context(), void); err != nil || g.Course("c").Holders["user-3"].Number != 6 {
			t.Errorf("holders: %v, %v", g.Course("c").Holders, err)
		}
	})
}

func TestF16ACouponIsNotVoidedBeforeItWasIssued(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		a, _, g := shop(t, name, 5)
		g.issue(1)
		g.Course("c").Journal[0].IssuedAt = time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond) // by the gate's clock
		issued := g.Course("c").Journal[0]
		g.record(a.Ledger)
		voided, err := a.Void(t.Context(), "test", "c", 1, "a mistake")
		if err != nil || voided.VoidedAt.Before(issued.IssuedAt) {
			t.Errorf("voided at %v, issued at %v, %v", voided.VoidedAt, issued.IssuedAt, err)
		}
	})
}

func TestAVoidOfANumberThatIsNotRecordedYetSaysSo(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		a, _, g := shop(t, name, 5)
		g.issue(3)
		g.record(a.Ledger)
		for number, want := range map[int64]error{0: firstcome.ErrNoCoupon, 4: firstcome.ErrNotRecorded} {
			if _, err := a.Void(t.Context(), "test", "c", number, ""); !errors.Is(err, want) {
				t.Errorf("number %d: %v, want %v", number, err, want)
			}
		}
		bury(t, a.Ledger, "refused", decided(t, 4))
		if _, err := a.Void(t.Context(), "test", "c", 4, ""); !errors.Is(err, firstcome.ErrNoCoupon) {
			t.Errorf("a dead letter: %v", err)
		}
		here, stop := open(t, filepath.Join(t.TempDir(), "firstcome.db"), nil)
		defer stop()
		create(t, here, "c", 5)
		if _, err := here.Void(t.Context(), "test", "c", 4, ""); !errors.Is(err, firstcome.ErrNoCoupon) {
			t.Errorf("the ledger as the gate: %v", err)
		}
	})
}

func TestAChangeThatCannotBeReadHoldsUpNoOtherCampaigns(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := remote(t, name, 5)
		create(t, l, "d", 5)
		stage.Must(t, stage.Err(beside(t, name).Exec(`UPDATE changes SET payload = '{"quantity":"x"}' WHERE campaign_id = 'c'`)))
		pending, err := l.Pending(t.Context(), "")
		if err == nil || !strings.Contains(err.Error(), "change 1 of c cannot be read") || len(pending) != 1 || pending[0].Campaign != "d" {
			t.Errorf("pending: %v, %v", pending, err)
		}
	})
}
