package ledger_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/campaign"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

func TestACampaignOfARemoteGateIsMadeThereByItsFirstChange(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		s := &shop{Gate: newGate(), t: t}
		s.open(name, s, nil)
		create(t, s.a.Ledger, "c", 5)
		c := status(t, s.a.Ledger)
		stage.Same(t, "version, applied, epoch, gate", []any{int64(1), int64(0), int64(1), "redis:test"}, []any{c.Version, c.Applied, c.Epoch, c.Gate})
		first := firstcome.Change{Campaign: "c", Version: 1, Kind: "terms", Epoch: 1, At: c.CreatedAt, CampaignUID: c.CampaignUID, Ceiling: 5, Terms: c.Terms}
		payload, err := campaign.EncodeTerms(c.Terms, 0)
		stage.Must(t, err)
		first.Payload = payload
		stage.Same(t, "the change", first, s.pending())
		if _, err := s.b.Campaigns.ChangeState(t.Context(), "test", "c", 0, firstcome.ChangePause); !errors.Is(err, firstcome.ErrPending) {
			t.Errorf("a second change before the first is there: %v", err)
		}
		finish(t, s.b, 1)
		s.agree(5)
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
	s := newShop(t, name, 5)
	s.issue(3)
	version := s.a.quantity(t, quantity)
	change := s.pending()
	if died >= 1 {
		if refused, err := s.Apply(t.Context(), change); err != nil || refused {
			t.Fatal(refused, err)
		}
	}
	if died >= 2 {
		stage.Must(t, s.a.Campaigns.Applied(t.Context(), change, false))
	}
	s.record()
	finish(t, s.b, version)
	finish(t, s.b, version)
	s.agree(quantity)
}

func TestF20TwoNodesThatFinishTheSameChangeDoItOnce(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		s := newShop(t, name, 5)
		s.issue(5)
		s.record()
		stage.Must(t, stage.Err(s.a.Campaigns.Void(t.Context(), "test", "c", 2, "a mistake")))
		// Both read that the change is pending; a brings it to the gate, and before it
		// notes that, b does all of it, and the next change too.
		change := s.pending()
		stage.Must(t, stage.Err(s.Apply(t.Context(), change)))
		finish(t, s.b, 0)
		s.issue(1) // the stock that came back
		finish(t, s.b, s.b.quantity(t, 6))
		stage.Must(t, s.a.Campaigns.Applied(t.Context(), change, false))
		stage.Must(t, stage.Err(s.Apply(t.Context(), change)))
		s.record()
		s.agree(6)
		stage.Same(t, "in force at the gate and in the ledger", []int{5, 5}, []int{len(s.Course("c").Holders), int(books(t, s.a.Ledger).InForce)})
	})
}

func TestF20AGateWithMoreInForceThanTheLedgerKnowsRefusesALowerQuantity(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		s := newShop(t, name, 10)
		s.issue(3)
		s.record()
		s.issue(4) // the ledger does not know of these
		version := s.a.quantity(t, 5)
		stage.Same(t, "the quantity before the gate has the lower one", int64(10), status(t, s.a.Ledger).Quantity)
		if err := s.b.Finish(t.Context(), "c", 0); err != nil {
			t.Errorf("another node's operator is told of it: %v", err)
		}
		if err := s.a.Finish(t.Context(), "c", version); !errors.Is(err, firstcome.ErrBelowInForce) {
			t.Errorf("the operator is told %v", err)
		}
		s.record()
		s.agree(10)
		terms, err := s.a.Reads.Terms(t.Context(), "c", version)
		if err != nil || terms.Quantity != 10 {
			t.Errorf("the terms as of the refused change have the quantity %d, %v", terms.Quantity, err)
		}
		finish(t, s.a, s.a.quantity(t, 7))
		s.agree(7)
	})
}

func TestF20ARaiseHoldsInTheLedgerBeforeTheGateIssuesMore(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		s := newShop(t, name, 3)
		s.issue(3) // unrecorded while the raise is made
		version := s.a.quantity(t, 5)
		change := s.pending()
		stage.Must(t, stage.Err(s.Apply(t.Context(), change)))
		s.issue(2)
		s.record() // before anybody noted that the gate has it
		finish(t, s.a, version)
		s.agree(5)
		stage.Same(t, "in force", int64(5), books(t, s.a.Ledger).InForce)
	})
}

func TestF20WhileTheGateIsAwayAChangeWaitsAndTheNextIsToldSo(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		s := newShop(t, name, 5)
		s.Changes = errors.New("connection refused")
		version, err := s.a.Campaigns.ChangeState(t.Context(), "test", "c", 0, firstcome.ChangeClose)
		stage.Must(t, err)
		if c := status(t, s.a.Ledger); !c.Closed || c.Applied == c.Version {
			t.Fatalf("%+v", c)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.a.Finish(ctx, "c", version); err == nil {
			t.Error("the operator is told that it is closed")
		}
		if _, err := s.b.Campaigns.ChangeState(t.Context(), "test", "c", 0, firstcome.ChangeClose); !errors.Is(err, firstcome.ErrPending) {
			t.Errorf("the next operator is told %v", err)
		}
		s.Changes = nil
		finish(t, s.b, version)
		s.agree(5)
	})
}

func TestAChangeIsNotNotedBeforeTheOneBeforeIt(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		s := newShop(t, name, 5)
		s.a.quantity(t, 6)
		change := s.pending()
		change.Version++
		if err := s.a.Campaigns.Applied(t.Context(), change, false); !errors.Is(err, gate.ErrGap) {
			t.Errorf("a change that nobody made is noted: %v", err)
		}
		change.Version--
		if err := s.a.Campaigns.Applied(t.Context(), change, true); err == nil {
			t.Error("a refused raise is noted as if it were nothing")
		}
	})
}

func TestF19AVoidedCouponStaysVoidedWhenItsEntryComesAgain(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		s := newShop(t, name, 5)
		s.issue(5)
		entries := s.Course("c").Journal
		s.record()
		stage.Must(t, stage.Err(s.a.Campaigns.Void(t.Context(), "test", "c", 3, "a mistake")))
		before := books(t, s.a.Ledger)
		finish(t, s.a, 0)
		recordIn(t, s.a.Ledger, entries...)
		stage.Same(t, "the books", before, books(t, s.a.Ledger))
		stage.Same(t, "in force at the gate", 4, len(s.Course("c").Holders))
		stage.Must(t, s.a.Campaigns.Applied(t.Context(), firstcome.Change{Campaign: "c", Version: 2}, false))
		// The user claims again; the old void comes again and leaves the new coupon alone.
		void := firstcome.Change{Campaign: "c", Version: 2, Kind: firstcome.ChangeVoid, Number: 3, User: "user-3"}
		s.Course("c").Holders["user-3"] = stage.Coupon("c", 6)
		if _, err := s.Apply(t.Context(), void); err != nil || s.Course("c").Holders["user-3"].Number != 6 {
			t.Errorf("holders: %v, %v", s.Course("c").Holders, err)
		}
	})
}

func TestF16ACouponIsNotVoidedBeforeItWasIssued(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		s := newShop(t, name, 5)
		s.issue(1)
		s.Course("c").Journal[0].IssuedAt = time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond) // by the gate's clock
		issued := s.Course("c").Journal[0]
		s.record()
		voided, err := s.a.Campaigns.Void(t.Context(), "test", "c", 1, "a mistake")
		if err != nil || voided.VoidedAt.Before(issued.IssuedAt) {
			t.Errorf("voided at %v, issued at %v, %v", voided.VoidedAt, issued.IssuedAt, err)
		}
	})
}

func TestAVoidOfANumberThatIsNotRecordedYetSaysSo(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		s := newShop(t, name, 5)
		s.issue(3)
		s.record()
		for number, want := range map[int64]error{0: firstcome.ErrNoCoupon, 4: firstcome.ErrNotRecorded} {
			if _, err := s.a.Campaigns.Void(t.Context(), "test", "c", number, ""); !errors.Is(err, want) {
				t.Errorf("number %d: %v, want %v", number, err, want)
			}
		}
		bury(t, s.a.Ledger, "refused", stage.Coupon("c", 4))
		if _, err := s.a.Campaigns.Void(t.Context(), "test", "c", 4, ""); !errors.Is(err, firstcome.ErrNoCoupon) {
			t.Errorf("a dead letter: %v", err)
		}
		here := start(t, file(t), nil)
		create(t, here, "c", 5)
		if _, err := here.Campaigns.Void(t.Context(), "test", "c", 4, ""); !errors.Is(err, firstcome.ErrNoCoupon) {
			t.Errorf("the ledger as the gate: %v", err)
		}
	})
}

func TestAChangeThatCannotBeReadHoldsUpNoOtherCampaigns(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := remote(t, name, 5)
		create(t, l, "d", 5)
		execute(t, services.Beside(t, name), `UPDATE changes SET payload = '{"quantity":"x"}' WHERE campaign_id = 'c'`)
		pending, err := l.Campaigns.Pending(t.Context(), "")
		if err == nil || !strings.Contains(err.Error(), "change 1 of c cannot be read") || len(pending) != 1 || pending[0].Campaign != "d" {
			t.Errorf("pending: %v, %v", pending, err)
		}
	})
}
