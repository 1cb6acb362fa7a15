//go:build linux

package e2e_test

import (
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
		at, err = p.new.node(0).calls.LedgerState(p.t.Context(), id)
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
				told, _, _ := stayed.answered()
				asked := stayed.asked()
				if answer == firstcome.Decided {
					stayed.awaitAnswers(t, 8)
				}
				waitFor(t, "claims at the old primary that are answered in the next epoch", func() bool { return stayed.asked() > asked+8 })
				stopStayed()
				now, _, _ := stayed.answered()
				t.Logf("epoch %d: who asked the old primary then was answered %d coupons", p.state("spring").Epoch, now-told)

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
