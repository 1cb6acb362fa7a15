package main

import (
	"context"

	"github.com/firstcome/firstcome/client"
)

type walletCmd struct {
	serverFlags
	User string `arg:"" help:"The user's id."`
}

// Run lists the coupons that a user holds, of all campaigns.
func (c *walletCmd) Run(ctx context.Context, t terminal) error {
	calls := c.client(t)
	defer calls.CloseIdle()
	held := []client.Coupon{}
	for after := ""; ; {
		page, err := calls.Wallet(ctx, c.User, after, 0)
		if err != nil {
			return explain(err)
		}
		held = append(held, page.Items...)
		if page.Next == nil {
			return c.printCoupons(t, held)
		}
		after = *page.Next
	}
}
