//go:build !check

package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A member is one of several nodes at the gate of a desk. Its Machine does not run until the test runs it.
type member struct {
	*gate.Router
	machine *recovery.Machine
}

func (d *desk) member() *member {
	d.t.Helper()
	m := &member{}
	at, err := redis.Open(d.t.Context(), redis.Options{
		URL: d.url, Secret: stage.Secret(), Ledger: d.ledger.Identity, CampaignUID: d.campaignUID, OnUnknown: d.missing,
		Noted: func(id firstcome.CampaignID) gate.Revision { return m.machine.Noted(id) },
	})
	stage.Must(d.t, err)
	d.t.Cleanup(at.Close)
	m.machine = recovery.New(d.ledger.Recorder, d.ledger.Epochs, at.Recovery, recovery.NewWatch(nil), nil)
	m.Router = &gate.Router{Gate: at.AsGate(), Retired: d.ledger.Gate, Ledger: d.ledger.Recorder, Watch: m.machine}
	return m
}

// changed applies an operator's changes in the ledger to the gate, by this node.
func (m *member) changed(t *testing.T, d *desk, did error) {
	t.Helper()
	stage.Must(t, did)
	stage.Must(t, gate.NewChanger(d.ledger.Campaigns, m, nil).Finish(t.Context(), "c", 0))
}

// claim returns the answer to a claim as OUTCOME:NUMBER.
func (m *member) claim(t *testing.T, user firstcome.UserID) string {
	decisions, err := m.Claim(t.Context(), "c", []firstcome.UserID{user})
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s:%d", decisions[0].Outcome, decisions[0].Coupon.Number)
}

// unknown expects that a node answers nothing, because the gate has forgotten something.
func unknown(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, gate.ErrUnverified) {
		t.Fatalf("%s: %v, want %v", what, err, gate.ErrUnverified)
	}
}

// TestF36AChangeThatWasAppliedHoldsThoughOlderKeysArePutBack changes a campaign with two coupons at one node, and puts the keys of before the change
// back. The node that made the change has never read the campaign from the ledger, and the other node has nothing but what it read there.
func TestF36AChangeThatWasAppliedHoldsThoughOlderKeysArePutBack(t *testing.T) {
	two := func(quantity int64) func(*firstcome.Terms) { return func(t *firstcome.Terms) { t.Quantity = quantity } }
	for name, c := range map[string]struct {
		change func(d *desk) error
		then   [2]string // the answers to user-0, who held number 1, and to a new user in the end
	}{
		"a pause": {func(d *desk) error {
			return stage.Err(d.ledger.Campaigns.ChangeState(d.t.Context(), "op", "c", 0, firstcome.ChangePause))
		}, [2]string{"already_issued:1", "paused:0"}},
		"a void": {func(d *desk) error {
			return stage.Err(d.ledger.Campaigns.Void(d.t.Context(), "op", "c", 1, "a trial"))
		}, [2]string{"issued:101", "sold_out:0"}},
		"a higher quantity": {func(d *desk) error {
			return stage.Err(d.ledger.Campaigns.SetTerms(d.t.Context(), "op", "c", 0, two(3)))
		}, [2]string{"already_issued:1", "issued:101"}},
	} {
		for asked, who := range []string{"the node that made it", "another node"} {
			t.Run(name+", asked of "+who, func(t *testing.T) {
				t.Parallel()
				d := newDesk(t, services.Redis.Database(t), services.Ledgers[services.SQLite](t), nil, "c")
				d.terms(two(2))
				d.kept(people("user-", 2)...)
				older := dump(t, d, d.url)
				nodes := []*member{d.member(), d.member()}
				nodes[0].changed(t, d, c.change(d))
				nodes[1].machine.LookBack(t.Context()) // each second, while its Machine runs
				restore(t, d.url, older)

				node := nodes[asked]
				unknown(t, "a claim by a holder", stage.Err(node.Claim(t.Context(), "c", people("user-", 1))))
				unknown(t, "a claim by a new user", stage.Err(node.Claim(t.Context(), "c", people("new-", 1))))
				unknown(t, "a direct issue", stage.Err(node.Issue(t.Context(), gate.Order{Actor: "op"}, "c", people("new-", 1))))
				unknown(t, "a holder's coupon", stage.Err(node.CouponOf(t.Context(), "c", "user-0")))
				next := firstcome.Change{Campaign: "c", Version: d.status().Version + 1, Kind: firstcome.ChangeClose}
				unknown(t, "the next change", stage.Err(node.Apply(t.Context(), next)))
				if state, err := node.State(t.Context(), "c"); err != nil || !state.Unverified {
					t.Errorf("its state is %+v, %v", state, err)
				}

				for _, n := range nodes {
					stage.Run(t, n.machine.Run)
				}
				ends := func(n *member, user firstcome.UserID, want string) {
					stage.Await(t, "the answer to "+string(user), want, func() string { return n.claim(t, user) })
				}
				ends(node, "user-0", c.then[0])
				ends(node, "new-0", c.then[1])
				ends(nodes[1-asked], "user-1", "already_issued:2")
				stage.Same(t, "the epoch", int64(2), d.status().Epoch)
			})
		}
	}
}

// waitsAt returns the ticket of a user, or 0.
func (m *member) waitsAt(t *testing.T, user firstcome.UserID) (int64, error) {
	place, _, err := m.Place(t.Context(), "c", user)
	return place.Ticket, err
}

// TestF36ATicketThatWasToldIsNobodyElsesThoughOlderKeysArePutBack puts the keys of before the last ticket back.
func TestF36ATicketThatWasToldIsNobodyElsesThoughOlderKeysArePutBack(t *testing.T) {
	for asked, who := range []string{"the node that told it", "a node that read the place", "a node that read the line"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, services.Redis.Database(t), services.Ledgers[services.SQLite](t), nil, "c")
			d.terms(func(t *firstcome.Terms) { t.Pace = &firstcome.Pace{} })
			nodes := []*member{d.member(), d.member(), d.member()}
			stage.Same(t, "the first in line", "waiting:0", nodes[0].claim(t, "user-0"))
			older := dump(t, d, d.url)
			stage.Same(t, "the last in line", "waiting:0", nodes[0].claim(t, "user-1"))
			stage.Must(t, stage.Err(nodes[1].waitsAt(t, "user-1")))
			stage.Must(t, stage.Err(nodes[2].LineOf(t.Context(), "c")))
			restore(t, d.url, older)

			node := nodes[asked]
			unknown(t, "a claim by a new user", stage.Err(node.Claim(t.Context(), "c", people("new-", 1))))
			unknown(t, "a place that is gone", stage.Err(node.waitsAt(t, "user-1")))
			unknown(t, "a place that is still there", stage.Err(node.waitsAt(t, "user-0")))
			unknown(t, "the line", stage.Err(node.LineOf(t.Context(), "c")))
			unknown(t, "who leaves", stage.Err(node.Leave(t.Context(), "c", "user-0")))
			unknown(t, "a service", stage.Err(node.Serve(t.Context(), "c", 1)))
			unknown(t, "whether its epoch decides", node.Decides(t.Context(), "c", 1))

			stage.Run(t, node.machine.Run)
			stage.Await(t, "the line", "waiting:0", func() string { return node.claim(t, "new-0") })
			line, err := node.LineOf(t.Context(), "c")
			stage.Must(t, err)
			stage.Same(t, "the line's generation, and how many are in it", [2]int64{2, 2}, [2]int64{line.Line.Generation, line.Line.Waiting})
			stage.Same(t, "the epoch", int64(2), d.status().Epoch)
		})
	}
}

// TestF36ATicketOfALoggedLineIsKeptThoughOlderKeysArePutBack puts the keys of before the last ticket back, which the line's log has.
func TestF36ATicketOfALoggedLineIsKeptThoughOlderKeysArePutBack(t *testing.T) {
	l := newLogged(t, services.Ledgers[services.SQLite](t), 100, 2)
	older := dump(t, l.desk, l.url)
	l.joins("told")
	restore(t, l.url, older)
	unknown(t, "a claim by a new user", stage.Err(l.remote.gate.Claim(t.Context(), "c", people("new-", 1))))
	unknown(t, "the place that was told", l.told("told"))

	r := l.rebuilder()
	stage.Run(t, r.Run)
	r.Suspect("c", gate.ErrUnverified)
	stage.Same(t, "what became of the gate", int64(1), l.decides(r).Finished)
	l.tells()
	l.joins("new-0")
	for user, ticket := range map[firstcome.UserID]int64{"user-1": 2, "told": 3, "new-0": 4} {
		place, _, err := l.teller.Place(t.Context(), "c", user)
		stage.Must(t, err)
		stage.Same(t, "the ticket of "+string(user), ticket, place.Ticket)
	}
}
