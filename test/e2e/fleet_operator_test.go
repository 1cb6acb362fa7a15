//go:build linux && !check

package e2e_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/test/stage"
)

// A span is when nobody new may be issued a coupon: from an operator's answer to
// the sending of the change that ends it.
type span struct{ from, to time.Duration }

// issuedIn returns how many claims were sent and answered issued within a span.
func (c *crowd) issuedIn(s span) (issued int, refused int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, claim := range c.claims {
		switch {
		case claim.Sent < s.from || claim.Received > s.to:
		case claim.Outcome == firstcome.Issued:
			issued++
		case !claim.Outcome.HasCoupon():
			refused++
		}
	}
	return issued, refused
}

// asked returns how many claims have been answered.
func (c *crowd) asked() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.claims)
}

// An operator changes a fleet's campaign, each time at another node, while a crowd
// claims at all of them.
type operator struct {
	f     *fleet
	crowd *crowd
	turn  int
	quiet []span // when nobody new may be issued
}

// do does something at the next node, and returns when it was sent first, and answered.
func (o *operator) do(what func(context.Context, *client.Client) error) (sent, answered time.Duration) {
	o.f.t.Helper()
	o.turn++
	sent = time.Since(o.crowd.start)
	calls := o.f.node(o.turn).calls
	if err := insist(o.f.t, func() error { return what(o.f.t.Context(), calls) }); err != nil {
		o.f.t.Errorf("change %d: %v", o.turn, err)
	}
	return sent, time.Since(o.crowd.start)
}

// between waits for claims from a change's answer to the sending of the next, and notes
// that nobody new may be issued meanwhile.
func (o *operator) between(answered time.Duration, next func(context.Context, *client.Client) error) (after time.Duration) {
	o.f.t.Helper()
	before := o.crowd.asked()
	waitFor(o.f.t, "claims that are refused", func() bool { return o.crowd.asked() > before+100 })
	sent, after := o.do(next)
	o.quiet = append(o.quiet, span{answered, sent})
	return after
}

// issuing waits until somebody who claimed after an instant is issued a coupon.
func (o *operator) issuing(from time.Duration) {
	o.f.t.Helper()
	waitFor(o.f.t, "coupons that are issued again", func() bool {
		issued, _ := o.crowd.issuedIn(span{from, time.Since(o.crowd.start)})
		return issued > 0
	})
}

// issued returns how many coupons the gate has issued.
func (o *operator) issued() int64 {
	o.f.t.Helper()
	return *o.f.node(o.turn).counted(o.crowd.campaign).Issued
}

func (o *operator) pause(ctx context.Context, c *client.Client) error {
	_, err := c.Pause(ctx, o.crowd.campaign)
	return err
}

func (o *operator) resume(ctx context.Context, c *client.Client) error {
	_, err := c.Resume(ctx, o.crowd.campaign)
	return err
}

// void returns the change that voids a number.
func (o *operator) void(number int64) func(context.Context, *client.Client) error {
	asked := false
	return func(ctx context.Context, c *client.Client) error {
		_, err := c.Void(ctx, o.crowd.campaign, number, "e2e")
		if p := isProblem(err); asked && p != nil && p.Status == http.StatusConflict {
			return nil // it was done when that was not known
		}
		asked = true
		return err
	}
}

// quantity returns the change to another quantity.
func (o *operator) quantity(to int64) func(context.Context, *client.Client) error {
	return func(ctx context.Context, c *client.Client) error {
		_, err := c.UpdateCampaign(ctx, o.crowd.campaign, 0, map[string]any{"quantity": to})
		return err
	}
}

// sellOut lowers the quantity to a little above what is in force, and waits until that many are in force. Where
// others are issued coupons meanwhile, that takes several attempts.
func (o *operator) sellOut(ctx context.Context, c *client.Client) error {
	for more := int64(10); ; more *= 2 {
		now, err := c.Campaign(ctx, o.crowd.campaign)
		if err != nil {
			return err
		}
		if now.InForce == nil {
			return errors.New("gate_state is " + now.GateState)
		}
		err = o.quantity(*now.InForce+more)(ctx, c)
		if p := isProblem(err); p != nil && p.Status == http.StatusConflict {
			continue
		}
		if err == nil {
			waitFor(o.f.t, "the last coupon", func() bool { return remaining(o.f.t, o.f.node(o.turn), o.crowd.campaign) == 0 })
		}
		return err
	}
}

// TestF20F61F62AfterTheOperatorsAnswerAtAnyNodeNobodyNewIsIssued pauses, sells out, voids, raises, and at last closes while a crowd
// claims at all nodes.
func TestF20F61F62AfterTheOperatorsAnswerAtAnyNodeNobodyNewIsIssued(t *testing.T) {
	on(t, func(t *testing.T, s setup) { operatorsAnswers(t, s, 2) }, alone, mariaDB, redisOfPostgreSQL)
}

func operatorsAnswers(t *testing.T, s setup, rounds int) {
	const most = 10_000_000
	f := s.fleet(t)
	f.create("spring", most, firstcome.Recorded)
	o := &operator{f: f, crowd: newCrowd("spring")}
	o.crowd.returned = true
	stop := f.claimUntil(o.crowd, 12)
	defer stop()
	for n := range rounds {
		o.crowd.awaitAnswers(t, 50)
		_, paused := o.do(o.pause)
		o.issuing(o.between(paused, o.resume))
		_, soldOut := o.do(o.sellOut)
		sold := o.issued()
		o.between(soldOut, o.void(int64(n+1)))
		waitFor(t, "the stock to be out again", func() bool { return o.issued() > sold })
		if now := o.issued(); now != sold+1 || remaining(t, f.node(n), "spring") != 0 {
			t.Errorf("%d coupons were issued for the one that was voided", now-sold)
		}
		raised := o.between(time.Since(o.crowd.start), o.quantity(most))
		o.issuing(raised)
	}
	_, closed := o.do(func(ctx context.Context, c *client.Client) error {
		_, err := c.Close(ctx, "spring")
		return err
	})
	before := o.crowd.asked()
	waitFor(t, "claims after it was closed", func() bool { return o.crowd.asked() > before+200 })
	stop()
	for n, s := range append(o.quiet, span{closed, time.Since(o.crowd.start)}) {
		issued, refused := o.crowd.issuedIn(s)
		if issued > 0 || refused == 0 {
			t.Errorf("after the answer of change %d, %d coupons were issued and %d claims refused", n, issued, refused)
		}
	}
	f.drained("spring")
	f.verdict(o.crowd)
}

// TestF62StockThatComesBackIsClaimableAtEveryNodeInOrder voids a coupon of a campaign
// that all nodes know to be sold out, and has somebody claim at another node.
func TestF62StockThatComesBackIsClaimableAtEveryNodeInOrder(t *testing.T) {
	on(t, stockThatComesBack, postgreSQL, redisOfMariaDB)
}

func stockThatComesBack(t *testing.T, s setup) {
	const quantity = 3
	f := s.fleet(t, patient...)
	f.create("spring", quantity, firstcome.Recorded)
	crowd := newCrowd("spring")
	crowd.returned = true
	claim := func(node int, user string) client.Answer {
		answer, err := crowd.claim(t.Context(), f.node(node).calls, user)
		if err != nil {
			t.Error(err)
		}
		return answer
	}
	holders := []string{}
	for n := range quantity {
		holders = append(holders, crowd.user())
		claim(n, holders[n])
	}
	for n := range f.nodes {
		for node := range f.nodes {
			if got := claim(node, crowd.user()).Outcome; got != firstcome.SoldOut.String() {
				t.Errorf("node %d says %s", node, got)
			}
		}
		number := int64(n + 1)
		void := (&operator{f: f, crowd: crowd}).void(number)
		stage.Must(t, insist(t, func() error { return void(t.Context(), f.node(n).calls) }))
		next := crowd.user()
		var got client.Answer
		waitFor(t, "the stock to be claimable", func() bool {
			got = claim(n+1, next)
			return got.Outcome != firstcome.SoldOut.String()
		})
		if got.Outcome != firstcome.Issued.String() || got.Coupon.Number != quantity+number {
			t.Errorf("claim %d after a void gets %+v", n, got)
		}
		if got := claim(n+2, holders[n]).Outcome; got != firstcome.SoldOut.String() {
			t.Errorf("whose coupon was voided gets %s", got)
		}
		holders = append(holders, next)
		err := insist(t, func() error {
			_, err := f.node(n+2).calls.Void(t.Context(), "spring", number, "e2e")
			return err
		})
		if p := isProblem(err); p == nil || p.Status != http.StatusConflict {
			t.Errorf("a coupon is voided twice: %v", err)
		}
	}
	f.verdict(crowd)
}

// A deed is what an operator did: a new quantity, or the void of a number.
type deed struct{ quantity, number int64 }

// deeds are what an operator's node answered, and what it was asked when it died.
type deeds struct{ sure, open []deed }

// untilKilled makes changes at the first node until one is not answered.
func (d *deeds) untilKilled(f *fleet, id string, turn *int64, made chan<- struct{}) {
	calls := f.node(0).calls
	for {
		*turn++
		next := deed{quantity: 10_000_000 + *turn}
		var err error
		switch *turn % 3 {
		case 0:
			next = deed{number: *turn}
			_, err = calls.Void(f.t.Context(), id, next.number, "e2e")
		case 1:
			next.quantity = 9_000_000 - *turn
			fallthrough
		default:
			_, err = calls.UpdateCampaign(f.t.Context(), id, 0, map[string]any{"quantity": next.quantity})
		}
		if err != nil {
			d.open = append(d.open, next)
			close(made)
			return
		}
		d.sure = append(d.sure, next)
		made <- struct{}{}
	}
}

// TestF20ChangesOfANodeThatIsKilledAreAppliedOnceInOrder kills the node at which an operator makes changes, while one is under way and a
// crowd claims. The answered changes are done once and in order, and the others once or never. The fault points numbered and applied
// kill a node in the midst of a change.
func TestF20ChangesOfANodeThatIsKilledAreAppliedOnceInOrder(t *testing.T) {
	on(t, func(t *testing.T, s setup) { changesOfANodeThatIsKilled(t, s, 2) }, redisOfPostgreSQL)
}

func changesOfANodeThatIsKilled(t *testing.T, s setup, kills int) {
	f := s.fleet(t)
	f.create("spring", 10_000_000, firstcome.Recorded)
	crowd := newCrowd("spring")
	crowd.returned = true
	stop := f.claimUntil(crowd, 8)
	defer stop()
	var done deeds
	turn := int64(0)
	for range kills {
		crowd.awaitAnswers(t, 50) // coupons to void
		made := make(chan struct{}, 1000)
		go done.untilKilled(f, "spring", &turn, made)
		for range 3 {
			if _, answered := <-made; !answered {
				t.Fatal("a change failed before the node was killed")
			}
		}
		f.kill(f.nodes, 0, f.role...)
		for range made {
		}
	}
	crowd.awaitAnswers(t, 50)
	stop()
	f.settledChanges(t, "spring", done)
	f.drained("spring")
	f.verdict(crowd)
}

// settledChanges waits until no change is pending, and holds what an operator was
// answered against what the campaign's changes are.
func (f *fleet) settledChanges(t *testing.T, id string, done deeds) {
	t.Helper()
	waitFor(t, "no change to be pending", func() bool { return f.node(1).metric("firstcome_pending_changes") == 0 })
	versions := map[deed]int64{}
	last, quantity := int64(0), int64(0)
	for {
		page, err := f.node(2).calls.Operator().Changes(t.Context(), id, last, 500)
		stage.Must(t, err)
		if len(page.Items) == 0 {
			break
		}
		for _, c := range page.Items {
			if c.Version != last+1 || c.Refused {
				t.Errorf("change %d follows on %d; refused: %v", c.Version, last, c.Refused)
			}
			last = c.Version
			k := deed{}
			if c.Number != nil {
				k.number = *c.Number
			} else {
				k.quantity, quantity = *c.Terms.Quantity, *c.Terms.Quantity
			}
			if other, ok := versions[k]; ok {
				t.Errorf("%+v was done twice, by the changes %d and %d", k, other, c.Version)
			}
			versions[k] = c.Version
		}
	}
	before := int64(0)
	for _, k := range done.sure {
		if versions[k] <= before {
			t.Errorf("%+v is change %d, after change %d", k, versions[k], before)
		}
		before = versions[k]
	}
	if beyond := len(versions) - 1 - len(done.sure); beyond < 0 || beyond > len(done.open) {
		t.Errorf("there are %d changes, %d were answered and %d were not", last, len(done.sure), len(done.open))
	}
	var now client.Campaign
	err := insist(t, func() (err error) {
		now, err = f.node(0).calls.Pause(t.Context(), id) // which the gate takes only if it has all before
		return err
	})
	if err != nil || *now.Quantity != quantity {
		t.Errorf("the quantity is %v, want that of the last change, %d: %v", now.Quantity, quantity, err)
	}
	t.Logf("%d changes, of which %d were answered; %d kills", last, len(done.sure), len(done.open))
}
