package main

import (
	"testing"
	"time"

	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/test/stage"
)

// TestP10TheDemoFindsACouponWithoutItsRankOrPrize among 1,200 coupons of which one is wrong.
func TestP10TheDemoFindsACouponWithoutItsRankOrPrize(t *testing.T) {
	shipping := &client.CouponPrize{ID: "shipping"}
	for what, c := range map[string]struct {
		place int64
		spoil func(*client.Coupon)
	}{
		"the first coupon has rank 2":      {1, func(c *client.Coupon) { c.Rank = 2 }},
		"a rank is given twice":            {700, func(c *client.Coupon) { c.Rank = 699 }},
		"the 100th coupon gets no drink":   {100, func(c *client.Coupon) { c.Prize.ID = "percent" }},
		"the 101st coupon gets a drink":    {101, func(c *client.Coupon) { c.Prize.ID = "drink" }},
		"the 1,000th coupon gets shipping": {1000, func(c *client.Coupon) { c.Prize = shipping }},
		"a coupon has no prize":            {1100, func(c *client.Coupon) { c.Prize = nil }},
		"none is wrong":                    {0, nil},
	} {
		r, err := readPrizes(func(each func(client.Coupon) error) error {
			for n := range int64(1200) {
				got := client.Coupon{Number: n + 1, Rank: n + 1, Prize: &client.CouponPrize{ID: "shipping"}, IssuedAt: client.Time{Time: time.Unix(n, 0)}}
				switch {
				case n < 100:
					got.Prize.ID = "drink"
				case n < 1000:
					got.Prize.ID = "percent"
				}
				if n+1 == c.place {
					c.spoil(&got)
				}
				if err := each(got); err != nil {
					return err
				}
			}
			return nil
		})
		stage.Must(t, err)
		if found := len(r.wrong); found != min(1, int(c.place)) {
			t.Errorf("%s: it finds %q", what, r.wrong)
		}
		stage.Same(t, what+": the share of the second prize", []int64{900, 101, 1000}, []int64{r.shares[1].coupons, r.shares[1].from, r.shares[1].to})
	}
}
