package main

import (
	"context"

	"github.com/firstcome/firstcome/client"
)

type walletCmd struct {
	serverFlags
	User string `arg:"" help:"The user's id."`
}

func (c *walletCmd) Run(ctx context.Context, t terminal) error {
	calls := c.client(t)
	defer calls.CloseIdle()
	return answered(t, c.printCoupons)(client.All(func(after string) (client.List[client.Coupon], error) {
		return calls.Wallet(ctx, c.User, after, 0)
	}))
}
