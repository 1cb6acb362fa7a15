package audit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/test/stage"
)

// A remote is the books of a campaign, and its remote gate.
type remote struct {
	*books
	state   audit.GateState
	holders map[firstcome.UserID]int64
	journal []firstcome.Coupon
	terms   string
	*queueThere
	// between, if not nil, runs once, between the readings of gate and ledger.
	between func()
}

func (s *remote) source() audit.Source {
	source := s.books.source()
	coupons := source.Coupons
	source.Coupons = func(ctx context.Context, id firstcome.CampaignID, each func(firstcome.Coupon)) error {
		if between := s.between; between != nil {
			s.between = nil
			between()
		}
		return coupons(ctx, id, each)
	}
	return source
}

func (s *remote) gate() audit.GateSource {
	return audit.GateSource{
		State: func(context.Context, firstcome.CampaignID) (audit.GateState, error) { return s.state, nil },
		Holders: func(_ context.Context, _ firstcome.CampaignID, each func(firstcome.Coupon) error) error {
			for user, number := range s.holders {
				c := firstcome.Coupon{Number: number, User: user}
				c.Generation, c.Ticket = s.issuedTo[number][0], s.issuedTo[number][1]
				if err := each(c); err != nil {
					return err
				}
			}
			return nil
		},
		Line:  s.line(),
		Terms: func(context.Context, firstcome.CampaignID) (string, error) { return s.terms, nil },
		Journal: func(_ context.Context, _ firstcome.CampaignID, each func(firstcome.Coupon) error) (err error) {
			for n := 0; n < len(s.journal) && err == nil; n++ {
				err = each(s.journal[n])
			}
			return err
		},
	}
}

// atRest returns a remote without a breach: numbers 1 to 4 as in sound, 5 a dead letter of the user e, 6 to 8 lost, 9 of the user i, and 10 only in
// the journal.
func atRest() *remote {
	s := &remote{books: sound(), queueThere: &queueThere{}, terms: "the terms"}
	s.letters = []audit.Letter{{ID: 1, Number: 5, User: "e", Open: true}}
	s.lost = []firstcome.Range{{First: 6, Count: 3}}
	s.campaign.Quantity, s.campaign.Remote, s.campaign.Drained, s.campaign.Epoch = 6, true, 9, 2
	s.campaign.Version, s.campaign.Applied = 3, 3
	s.issue(9, "i")
	s.state = audit.GateState{Version: 3, Epoch: 2, InForce: 6, LastNumber: 10}
	s.state.OpenedAt, s.state.SoldOutAt = at(0), at(9)
	s.holders = map[firstcome.UserID]int64{"a": 1, "c": 3, "b": 4, "e": 5, "i": 9, "j": 10}
	s.journal = []firstcome.Coupon{{Campaign: "c", Number: 9, User: "i", IssuedAt: at(8)}, {Campaign: "c", Number: 10, User: "j", IssuedAt: at(9)}}
	return s
}

func gateOf(t *testing.T, s *remote) audit.GateReport {
	t.Helper()
	report, err := audit.Gate(t.Context(), s.source(), s.gate(), "c")
	stage.Must(t, err)
	return report
}

func TestASoundGateHasNoBreach(t *testing.T) {
	want := audit.GateReport{Campaign: "c", Holders: 6, Unrecorded: 1}
	if diff := cmp.Diff(want, gateOf(t, atRest())); diff != "" {
		t.Error(diff)
	}
}

func expectBreaches(t *testing.T, found audit.Breaches, promises []string, text string) {
	t.Helper()
	if diff := cmp.Diff(promises, found.Promises()); diff != "" {
		t.Errorf("promises broken: %s%v", diff, found.Shown)
	}
	if text != "" && !mentions(found, text) {
		t.Errorf("no breach says %q: %v", text, found.Shown)
	}
}

func TestEveryBreachBetweenGateAndLedgerIsFound(t *testing.T) {
	for name, test := range map[string]struct {
		spoil   func(s *remote)
		promise []string
		text    string
	}{
		"a holder that is nowhere": {func(s *remote) { s.journal = nil; s.state.LastNumber = 9 }, []string{"P5"}, `the user "j" holds number 10 at the gate`},
		"other terms at the gate":  {func(s *remote) { s.terms = "earlier terms" }, []string{"gate"}, "keeps other terms than the ledger, whose terms are those of version 1: earlier terms"},
		"a number that is nowhere": {func(s *remote) { s.state.LastNumber = 12 }, []string{"P5"}, "issued the numbers 11 to 12"},
		"a holder that the gate forgot": {func(s *remote) {
			delete(s.holders, "e")
			s.state.InForce--
			s.state.SoldOutAt = time.Time{}
		}, []string{"P3"}, `the user "e" has number 5`},
		"another number":             {func(s *remote) { s.holders["a"] = 2 }, []string{"P4"}, `the user "a" holds number 2 at the gate, but number 1`},
		"numbers that come again":    {func(s *remote) { s.state.LastNumber = 9 }, []string{"P4"}, "would issue the numbers up to 10 again"},
		"more than the quantity":     {func(s *remote) { s.campaign.Quantity = 5 }, []string{"P1"}, "6 coupons are in force at the gate"},
		"a wrong counter":            {func(s *remote) { s.state.InForce = 5 }, []string{"counters"}, "the gate counts 5"},
		"an earlier version":         {func(s *remote) { s.state.Version = 2 }, []string{"counters"}, "the gate is at change 2"},
		"a later version":            {func(s *remote) { s.state.Version = 4 }, []string{"counters", "gate"}, "the ledger is older than the gate, which is at version 4"},
		"a later epoch":              {func(s *remote) { s.state.Epoch = 3 }, []string{"counters", "gate"}, "the ledger is older than the gate, which is at version 3 of epoch 3"},
		"more drained numbers":       {func(s *remote) { s.state.Drained = 10 }, []string{"gate"}, "is drained through number 10; the ledger is at version 3 of epoch 2, drained through 9: firstcome gate reconcile c"},
		"open before it was":         {func(s *remote) { s.state.OpenedAt = at(1) }, []string{"counters"}, "opened at 2026-12-24T10:00:01.000000Z, but number 1"},
		"never open":                 {func(s *remote) { s.state.OpenedAt = time.Time{} }, []string{"counters"}, "opened at no time, but number 1"},
		"sold out before it was":     {func(s *remote) { s.unchanged().state.SoldOutAt = at(8) }, []string{"counters"}, "first sold out at 2026-12-24T10:00:08.000000Z"},
		"never sold out":             {func(s *remote) { s.state.SoldOutAt = time.Time{} }, []string{"counters"}, "first sold out at no time"},
		"sold out with some left":    {func(s *remote) { s.unchanged().campaign.Quantity = 7 }, []string{"counters"}, "6 coupons of 7"},
		"closed at the gate only":    {func(s *remote) { s.state.ClosedAt = at(9) }, []string{"counters"}, "closed the campaign at 2026-12-24T10:00:09.000000Z, but by the ledger at no time"},
		"an earlier epoch":           {func(s *remote) { s.state.Epoch = 1 }, []string{"gate"}, "the gate is older than the ledger: it is in epoch 1, and the ledger in 2"},
		"a voided coupon that holds": {func(s *remote) { s.coupons[0].VoidedAt = opening.Add(time.Minute) }, []string{"P5"}, `the user "a" holds number 1`},
	} {
		t.Run(name, func(t *testing.T) {
			s := atRest()
			test.spoil(s)
			expectBreaches(t, gateOf(t, s).Breaches, test.promise, test.text)
		})
	}
}

// unchanged makes a campaign without a change since its creation.
func (s *remote) unchanged() *remote {
	s.campaign.Version, s.campaign.Applied, s.state.Version = 1, 1, 1
	return s
}

func TestACampaignThatItsGateHasLostIsABreach(t *testing.T) {
	s := atRest()
	gate := s.gate()
	gate.State = func(context.Context, firstcome.CampaignID) (audit.GateState, error) {
		return audit.GateState{}, firstcome.ErrNoCampaign
	}
	report, err := audit.Gate(t.Context(), s.source(), gate, "c")
	if err != nil || report.Breaches.Count["gate"] != 1 {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestAGateInUseHasNoBreach(t *testing.T) {
	s := atRest()
	s.between = func() { // after the gate was read, it issues, and a recorder records
		s.holders["k"], s.state.InForce, s.state.LastNumber = 11, 7, 11
		s.campaign.Quantity, s.state.SoldOutAt = 9, time.Time{}
		s.issue(10, "j")
		s.issue(11, "k")
		s.journal = nil
	}
	if report := gateOf(t, s); report.Breaches.Total != 0 || report.Moving {
		t.Errorf("%+v", report)
	}
	// The gate does not have a void yet.
	s.coupons[0].VoidedAt = opening.Add(time.Minute)
	s.campaign.Version = 4
	if report := gateOf(t, s); report.Breaches.Total != 0 || !report.Moving {
		t.Errorf("with a change on its way: %+v", report)
	}
}

// TestWhatCannotBeReadAtTheGateOrInTheLedgerIsABreachAndNoEnd also checks that any other error ends the comparison.
func TestWhatCannotBeReadAtTheGateOrInTheLedgerIsABreachAndNoEnd(t *testing.T) {
	for name, spoil := range map[string]func(*audit.Source, *audit.GateSource, error){
		"holders": func(_ *audit.Source, g *audit.GateSource, err error) {
			g.Holders = func(context.Context, firstcome.CampaignID, func(firstcome.Coupon) error) error { return err }
		},
		"coupons": func(l *audit.Source, _ *audit.GateSource, err error) {
			l.Coupons = func(context.Context, firstcome.CampaignID, func(firstcome.Coupon)) error { return err }
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := atRest()
			ledger, gate := s.source(), s.gate()
			spoil(&ledger, &gate, fmt.Errorf("number 3: %w", audit.ErrUnreadable))
			report, err := audit.Gate(t.Context(), ledger, gate, "c")
			if err != nil || report.Breaches.Count["gate"] != 1 || !mentions(report.Breaches, "number 3") {
				t.Errorf("%+v, %v", report, err)
			}
			spoil(&ledger, &gate, context.DeadlineExceeded)
			if _, err := audit.Gate(t.Context(), ledger, gate, "c"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		})
	}
}
