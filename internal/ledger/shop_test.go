package ledger_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/sqldb"
	"github.com/firstcome/firstcome/test/stage"
)

// A node is one of several, with what its operators' calls do.
type node struct {
	*ledger.Ledger
	*gate.Changer
}

// A shop is the campaign c at two nodes on one ledger (one and the same on SQLite), beside a fake gate.
type shop struct {
	*stage.Gate
	t    testing.TB
	a, b node
}

// newShop returns a shop whose campaign the gate knows.
func newShop(t testing.TB, name string, quantity int64) *shop {
	t.Helper()
	s := &shop{Gate: newGate(), t: t}
	s.open(name, s, nil)
	create(t, s.a.Ledger, "c", quantity)
	stage.Must(t, s.a.Finish(t.Context(), "c", 1))
	return s
}

// newGate returns a fake gate that issues the coupons of the campaign c as stage.Coupon has them.
func newGate() *stage.Gate {
	g := stage.NewGate(0)
	g.Clock = func() time.Time {
		if c := g.Course("c"); c != nil {
			return stage.Coupon("c", c.Last+1).IssuedAt
		}
		return stage.Epoch
	}
	return g
}

// open opens the nodes, whose changes go to a gate.
func (s *shop) open(name string, to gate.Applier, clock func() time.Time) {
	s.t.Helper()
	at := func() node {
		l, _ := serve(s.t, name, ledger.Options{Gate: "redis:test", Clock: clock})
		return node{l, gate.NewChanger(l.Campaigns, to, nil)}
	}
	s.a = at()
	s.b = s.a
	if sqldb.OnServer(name) {
		s.b = at()
	}
}

// issue has the gate issue the next numbers.
func (s *shop) issue(coupons int) {
	s.t.Helper()
	for range coupons {
		decisions, err := s.Gate.Claim(s.t.Context(), "c", users(stage.Coupon("c", s.Course("c").Last+1).User))
		if err != nil || decisions[0].Outcome != firstcome.Issued {
			s.t.Fatal(decisions, err)
		}
	}
}

// record has node b record what the gate issued.
func (s *shop) record() {
	s.t.Helper()
	s.Settle("c", recordIn(s.t, s.b.Ledger, s.Take("c")...))
}

// void voids a number at node b, as far as the ledger.
func (s *shop) void(number int64) {
	s.t.Helper()
	stage.Must(s.t, stage.Err(s.b.Campaigns.Void(context.Background(), "test", "c", number, "a refund")))
}

// pending returns the change that the gate lacks.
func (s *shop) pending() firstcome.Change {
	s.t.Helper()
	pending, err := s.a.Campaigns.Pending(s.t.Context(), "c")
	if err != nil || len(pending) != 1 {
		s.t.Fatalf("pending: %v, %v", pending, err)
	}
	return pending[0]
}

// agree checks that ledger and gate are at the same version with the same terms.
func (s *shop) agree(quantity int64) {
	s.t.Helper()
	c, at := status(s.t, s.a.Ledger), s.Course("c")
	stage.Same(s.t, "the ledger's version, what is applied, the gate's", []int64{c.Version, c.Version, c.Version}, []int64{c.Version, c.Applied, at.Version})
	stage.Same(s.t, "the quantity in the ledger and at the gate", []int64{quantity, quantity}, []int64{c.Quantity, at.Quantity})
	stage.Same(s.t, "the changes took effect once, in order", stage.Numbers(1, c.Version), at.Applied)
}

// quantity asks for another quantity, and returns the version of the change.
func (n node) quantity(t testing.TB, to int64) int64 {
	t.Helper()
	version, err := n.Campaigns.SetTerms(context.Background(), "test", "c", 0, func(terms *firstcome.Terms) {
		terms.Quantity = to
	})
	stage.Must(t, err)
	return version
}

// finish brings changes to the gate.
func finish(t testing.TB, n node, version int64) {
	t.Helper()
	stage.Must(t, n.Finish(t.Context(), "c", version))
}

// given returns coupons as a recorder gives them.
func given(coupons ...firstcome.Coupon) record.Batch {
	return record.Batch{Campaign: "c", Epoch: 1, Coupons: coupons}
}

// recordIn records coupons, and returns what is drained then.
func recordIn(t testing.TB, l *ledger.Ledger, coupons ...firstcome.Coupon) record.Result {
	t.Helper()
	return must(t, l)(l.Recorder.Record(context.Background(), given(coupons...)))
}

// bury buries coupons, and returns what is drained.
func bury(t testing.TB, l *ledger.Ledger, cause string, coupons ...firstcome.Coupon) record.Result {
	t.Helper()
	return must(t, l)(l.Recorder.Bury(context.Background(), given(coupons...), cause))
}

// must returns what a call said, and looks whether the ledger says the same of how far it is drained.
func must(t testing.TB, l *ledger.Ledger) func(record.Result, error) record.Result {
	return func(said record.Result, err error) record.Result {
		t.Helper()
		stage.Must(t, err)
		through, err := l.Recorder.DrainedThrough(context.Background(), "c")
		if err != nil && !errors.Is(err, firstcome.ErrNoCampaign) || through != said.Through {
			t.Errorf("it is drained through %d, and the call said %+v: %v", through, said, err)
		}
		said.Grant = record.Grant{} // only a gate needs it
		return said
	}
}

// drained returns what a call says that drained the campaign through a number, and was given the dead letters of others.
func drained(through int64, letters ...int64) record.Result {
	d := record.Result{Through: through}
	for _, n := range letters {
		d.Letters = append(d.Letters, stage.Coupon("c", n))
	}
	return d
}

// letters returns dead letters.
func letters(t testing.TB, l *ledger.Ledger, which ledger.Letters) []ledger.DeadLetter {
	t.Helper()
	all, err := l.Reads.DeadLetters(context.Background(), which)
	stage.Must(t, err)
	return all
}
