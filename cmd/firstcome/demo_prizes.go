package main

import (
	"context"
	"fmt"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
)

// demoPrizes are the prizes of demo --prizes.
var demoPrizes = []firstcome.Prize{
	{ID: "drink", Name: "A drink", Quantity: 100, Benefit: []byte(`{"item":"drink"}`)},
	{ID: "percent", Name: "20 % off", Quantity: 900, Benefit: []byte(`{"percent_off":20}`)},
	{ID: "shipping", Name: "Free shipping", Benefit: []byte(`{"item":"shipping"}`)},
}

// A prizeShare is how many coupons of the demo have a prize.
type prizeShare struct {
	coupons, from, to int64 // from and to are their ranks
	last              time.Time
}

// A prizeReport says who got which prize.
type prizeReport struct {
	first  time.Time // when the first coupon was issued
	shares []prizeShare
	wrong  []string // coupons whose rank or prize is not that of their place
}

// readPrizes reads the coupons in the order of their numbers, and compares their ranks and prizes with the announcement: the first coupon has rank 1,
// each coupon after it the next rank, and the first 100 coupons the first prize.
func readPrizes(coupons func(each func(client.Coupon) error) error) (r prizeReport, err error) {
	r.shares = make([]prizeShare, len(demoPrizes))
	place, due, left := int64(0), 0, demoPrizes[0].Quantity
	err = coupons(func(c client.Coupon) error {
		place++
		if left == 0 && due < len(demoPrizes)-1 {
			due++
			left = demoPrizes[due].Quantity
		}
		left--
		if c.Rank != place || c.Prize == nil || c.Prize.ID != string(demoPrizes[due].ID) {
			r.wrong = append(r.wrong, fmt.Sprintf("coupon %d in order (number %d) has rank %d and prize %s instead of %s", place, c.Number, c.Rank, prizeID(&c), demoPrizes[due].ID))
		}
		share := &r.shares[due]
		if share.coupons++; share.coupons == 1 {
			share.from = place
		}
		share.to, share.last = place, c.IssuedAt.Time
		if r.first.IsZero() {
			r.first = c.IssuedAt.Time
		}
		return nil
	})
	return r, err
}

// showPrizes prints who got which prize, read from the server's coupons. inOrder means that the answers were in the order of the claims.
func showPrizes(ctx context.Context, t terminal, server string, inOrder bool) error {
	calls := client.New(server, "")
	defer calls.CloseIdle()
	r, err := readPrizes(func(each func(client.Coupon) error) error { return calls.Coupons(ctx, demoCampaign, true, each) })
	if err != nil {
		return explain(err)
	}
	fmt.Fprintln(t.out, "\nWho got what, read from the coupons:")
	for n, s := range r.shares {
		if s.coupons == 0 {
			fmt.Fprintf(t.out, "%20s  %s\n", demoPrizes[n].Name, "no coupon: too few users came")
			continue
		}
		fmt.Fprintf(t.out, "%20s  %6s coupons, ranks %s to %s, the last one issued %.2f s after the first coupon\n",
			demoPrizes[n].Name, humanize.Comma(s.coupons), humanize.Comma(s.from), humanize.Comma(s.to), s.last.Sub(r.first).Seconds())
	}
	if len(r.wrong) > 0 {
		fmt.Fprintf(t.out, "%s with a wrong rank or prize. The first: %s.\n", counted(int64(len(r.wrong)), "coupon", "s"), r.wrong[0])
		return errBreach
	}
	if !inOrder {
		return errBreach
	}
	fmt.Fprintln(t.out, "In the order of the claims: no claim was overtaken by one that was sent after its answer, each coupon has the next rank, and each rank its prize.")
	return nil
}
