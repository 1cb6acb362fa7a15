//go:build linux && !check

package e2e_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A partition is a fleet in two halves that share the ledger. Each half reaches the gate by a proxy of its own.
type partition struct {
	t        *testing.T
	pair     *services.Pair
	old, new *fleet
	toOld    *services.Proxy // by which the old half reaches the gate
	toNew    *services.Proxy
}

// newPartition starts one node that stays with the old primary, and two that move. Each of them also records.
func newPartition(t *testing.T) *partition {
	t.Helper()
	p := &partition{t: t, pair: services.RedisPair(t)}
	ledger := services.MariaDB.Database(t)
	half := func(nodes int) (*fleet, *services.Proxy) {
		proxy, at := through(t, p.pair.Primary, p.pair.Primary.URL())
		args := []string{"--ledger", ledger, "--gate", at, "--answer-wait", "1s"}
		f := (&fleet{t: t, args: args, nodes: make([]*process, nodes)}).open()
		f.own = args // the audit compares the gate
		return f, proxy
	}
	p.old, p.toOld = half(1)
	p.new, p.toNew = half(2)
	return p
}

// moves has a half reach the primary of now.
func (p *partition) moves(proxy *services.Proxy) {
	proxy.SetUpstream(p.pair.Primary.Address())
	proxy.Cut()
	proxy.Heal()
}

// state returns what the ledger has of a campaign.
func (p *partition) state(id string) (at client.LedgerState) {
	p.t.Helper()
	stage.Must(p.t, insist(p.t, func() (err error) {
		at, err = p.new.node(0).calls.Operator().LedgerState(p.t.Context(), id)
		return err
	}))
	return at
}

// beside returns another crowd of the same campaign, whose answers may be added to those of the first.
func (c *crowd) beside() *crowd {
	other := newCrowd(c.campaign)
	other.start = c.start
	other.next.Store(1_000_000)
	return other
}

// getsNothing waits for so many answers to claims that are sent from now on, and wants that none has a coupon.
func (c *crowd) getsNothing(t *testing.T, answers int) {
	t.Helper()
	from := time.Since(c.start)
	waitFor(t, "answers of an older gate", func() bool {
		coupons, others := c.since(from)
		if coupons > 0 {
			t.Fatalf("%d claims are answered with a coupon by an older gate", coupons)
		}
		return others > answers
	})
}

// since returns how many claims that were sent since an instant were answered with a coupon, and without.
func (c *crowd) since(from time.Duration) (coupons, others int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, claim := range c.claims {
		switch {
		case claim.Sent < from:
		case claim.Outcome.HasCoupon():
			coupons++
		default:
			others++
		}
	}
	return coupons, others
}

// TestF03WhatAnOldPrimaryGivesBehindAPartitionIsRefused has a replica promoted while a node and a recorder go on with the old primary, for as
// long as it gives anything. The other nodes issue in the next epoch. Then the partition heals: the old primary follows the new one.
func TestF03WhatAnOldPrimaryGivesBehindAPartitionIsRefused(t *testing.T) {
	for _, answer := range []firstcome.AnswerWhen{firstcome.Recorded, firstcome.Decided} {
		for turn := range rounds(1, 20) {
			t.Run(string(answer), func(t *testing.T) {
				t.Parallel()
				p := newPartition(t)
				p.new.create("spring", plenty, answer)
				moved := newCrowd("spring")
				stayed := moved.beside()
				stayed.longest = 2 * time.Second
				stopStayed, stopMoved := p.old.claimUntil(stayed, 4), p.new.claimUntil(moved, 4)
				defer stopStayed()
				defer stopMoved()
				stayed.awaitAnswers(t, 40+turn)
				moved.awaitAnswers(t, 40)

				stage.Must(t, p.pair.Promote(t.Context()))
				if answer == firstcome.Decided {
					stayed.awaitAnswers(t, 20) // which the replica never hears of
				}
				p.moves(p.toNew)
				waitFor(t, "the next epoch", func() bool { return p.state("spring").Epoch > 1 })
				moved.awaitAnswers(t, 100)
				asked := stayed.asked()
				waitFor(t, "claims at the old primary that are answered in the next epoch", func() bool { return stayed.asked() > asked+8 })
				refuses(t, p.old.node(0))
				stayed.getsNothing(t, 8)
				stopStayed()

				stage.Must(t, p.pair.Follow(t.Context()))
				p.moves(p.toOld)
				stayed.longest = 0
				stopStayed = p.old.claimUntil(stayed, 2)
				stayed.awaitAnswers(t, 20)
				stopStayed()
				stopMoved()
				p.healed(moved, stayed, answer)
			})
		}
	}
}

// healed holds what both halves were answered against the one history that there is behind the partition.
func (p *partition) healed(moved, stayed *crowd, answer firstcome.AnswerWhen) {
	p.t.Helper()
	p.new.drained(moved.campaign)
	for _, f := range []*fleet{p.old, p.new} {
		f.audit()
	}
	if answer == firstcome.Recorded {
		stayed.findAgain(p.new.node(0)) // with the number that they were answered: see below
		moved.findAgain(p.old.node(0))
	}
	moved.claims = append(moved.claims, stayed.claims...)
	moved.errs = append(moved.errs, stayed.errs...)
	moved.forget(p.new.node(1), answer)
	moved.wereTrue(p.new.node(1))
}

// TestF03AnAddressThatLeadsBackToTheOldPrimaryIsRefused has a replica take over, and then every address lead back to the old primary, which has
// not stopped. No node decides anything there, each says so once, and nobody rebuilds it. Then the addresses lead to the new primary again; or
// that is gone, and an operator makes the old one the gate.
func TestF03AnAddressThatLeadsBackToTheOldPrimaryIsRefused(t *testing.T) {
	for _, answer := range []firstcome.AnswerWhen{firstcome.Recorded, firstcome.Decided} {
		t.Run(string(answer), func(t *testing.T) {
			t.Parallel()
			p := newPartition(t)
			p.new.create("spring", plenty, answer)
			c := newCrowd("spring")
			stop := p.new.claimUntil(c, 4)
			defer stop()
			c.awaitAnswers(t, 40)
			stage.Must(t, p.pair.Promote(t.Context()))
			p.lead(p.pair.Primary)
			waitFor(t, "the next epoch", func() bool { return p.state("spring").Epoch > 1 })
			c.awaitAnswers(t, 40)

			p.lead(p.pair.Replica)
			for _, node := range p.answering() {
				refuses(t, node)
				if is := node.campaign("spring"); is.GateState != "stale_epoch" {
					t.Errorf("a node says of its gate: %s", is.GateState)
				}
			}
			c.getsNothing(t, 100)
			for _, one := range p.all() {
				waitFor(t, "its line in the log", func() bool { return strings.Contains(one.text(), "a campaign is refused") })
			}

			if answer == firstcome.Recorded {
				p.lead(p.pair.Primary)
			} else {
				stage.Must(t, p.pair.Primary.Kill())
				if done, err := p.new.node(0).calls.Operator().Rebuild(t.Context(), "spring"); err != nil || done.Epoch != 3 {
					t.Fatalf("the rebuild comes to %+v, %v", done, err)
				}
			}
			for _, node := range p.answering() { // each looks within a second
				waitFor(t, "a node that refuses no more", func() bool { return node.campaign("spring").GateState != "stale_epoch" })
			}
			c.awaitAnswers(t, 40)
			stop()
			for _, one := range p.all() {
				if n := strings.Count(one.text(), "a campaign is refused"); n != 1 {
					t.Errorf("a node says %d times that a campaign is refused", n)
				}
			}
			p.healed(c, c.beside(), answer)
		})
	}
}

// refuses waits until a node says that its gate is an older one, and what to type.
func refuses(t *testing.T, node *process) {
	t.Helper()
	waitFor(t, "a refusal", func() bool {
		_, err := node.calls.Claim(t.Context(), "spring", "somebody")
		problem := isProblem(err)
		return problem != nil && problem.Code == "stale_epoch" && strings.Contains(problem.Detail, "firstcome gate rebuild spring")
	})
}

// lead has both halves reach a server.
func (p *partition) lead(to *services.Server) {
	for _, proxy := range []*services.Proxy{p.toOld, p.toNew} {
		proxy.SetUpstream(to.Address())
		proxy.Cut()
		proxy.Heal()
	}
}

// answering returns the nodes of both halves that answer, and all those that only record, too.
func (p *partition) answering() []*process { return slices.Concat(p.old.nodes, p.new.nodes) }

func (p *partition) all() []*process {
	return slices.Concat(p.answering(), p.old.recorders, p.new.recorders)
}
