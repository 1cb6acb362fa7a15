package main

import (
	"context"
	"fmt"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/test/services"
)

// prizes: winners of a campaign with 16 prizes against those of one without, at the same node, in each kind of set-up. The last prize begins in the
// middle of a round, so a round has coupons of all of them.
func prizes(ctx context.Context, b *bench) {
	var h hosts
	defer h.close()
	sqlite := b.firstcome(ctx, "prizes.db")
	defer sqlite.stop()
	database := b.node(ctx, "--ledger", h.database(ctx, services.MariaDB))
	defer database.stop()
	redis := b.node(ctx, h.fleet(ctx, services.MariaDB)...)
	defer redis.stop()
	const connections = 64
	for _, s := range []struct {
		name   string
		node   *server
		answer firstcome.AnswerWhen
	}{
		{"SQLite decides", sqlite, ""},
		{"MariaDB decides", database, ""},
		{"Redis decides, answered when decided", redis, firstcome.Decided},
		{"Redis decides, answered when recorded", redis, firstcome.Recorded},
	} {
		issue := func(c client.NewCampaign) func() figure {
			c.Answer = string(s.answer)
			return func() figure {
				id := b.create(ctx, s.node, c)
				f := drive(ctx, at(s.node, id, scattered(b.made*b.claims)), b.claims, connections, 0, "issued")
				drained(ctx, s.node, id)
				return f
			}
		}
		c := b.pair(issue(client.NewCampaign{Prizes: sixteen(int64(b.claims))}), issue(client.NewCampaign{Coupon: client.CouponSpec{Benefit: []byte(`{"percent":20}`)}}))
		b.printRate(fmt.Sprintf("winners of 16 prizes, %d connections, %s", connections, s.name), c, "without prizes", wantPrizes)
		b.printCPU(c, "")
	}
}

// sixteen are 16 prizes, of which all but the last have half of the claims.
func sixteen(claims int64) (all []client.PrizeSpec) {
	each := max(1, claims/2/15)
	for n := range firstcome.MaxPrizes {
		p := client.PrizeSpec{ID: fmt.Sprintf("prize-%d", n+1), Name: fmt.Sprintf("Prize %d", n+1), Quantity: &each, Benefit: []byte(`{"percent":20}`)}
		if n == firstcome.MaxPrizes-1 {
			p.Quantity = nil
		}
		all = append(all, p)
	}
	return all
}
