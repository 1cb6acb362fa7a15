package firstcometest_test

import (
	"context"
	"fmt"
	"os"

	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/firstcometest"
)

// checkout is what a shop does with a claim: the code under test.
func checkout(ctx context.Context, c *client.Client, campaign, user string) string {
	answer, err := c.ClaimUntilKnown(ctx, campaign, user)
	switch {
	case err != nil:
		return "try again later"
	case answer.Coupon != nil:
		return fmt.Sprintf("%s has coupon %d", user, answer.Coupon.Number)
	}
	return user + ": " + answer.Outcome
}

// In a test, New(t) does all that this does with a directory and Close.
func Example() {
	dir, err := os.MkdirTemp("", "firstcome")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	s, err := firstcometest.Start(dir)
	if err != nil {
		panic(err)
	}
	defer s.Close()

	ctx, one := context.Background(), int64(1)
	if _, err := s.Client.CreateCampaign(ctx, client.NewCampaign{ID: "autumn", Name: "Autumn sale", Quantity: &one}); err != nil {
		panic(err)
	}
	fmt.Println(checkout(ctx, s.Client, "autumn", "mina"))
	fmt.Println(checkout(ctx, s.Client, "autumn", "joon"))
	fmt.Println(checkout(ctx, s.Client, "autumn", "mina"))
	// Output:
	// mina has coupon 1
	// joon: sold_out
	// mina has coupon 1
}
