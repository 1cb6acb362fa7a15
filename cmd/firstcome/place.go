package main

import (
	"context"
	"fmt"
	"io"
)

// placeFlags name a user's place in a campaign's waiting line.
type placeFlags struct {
	serverFlags
	Campaign string `arg:"" help:"The campaign's id."`
	User     string `arg:"" help:"The user's id."`
}

type placeCmd struct {
	placeFlags
	Follow bool `variable:"none" help:"Wait in line, and print the user's place."`
}

func (c *placeCmd) Help() string {
	return `The exit status is 0 if the user has a coupon or a place in line, and 1 if not. Unlike claim, place joins no line.`
}

func (c *placeCmd) Run(ctx context.Context, t terminal) error {
	calls := c.client(t)
	defer calls.CloseIdle()
	answer, err := calls.ClaimOf(ctx, c.Campaign, c.User)
	if err == nil && answer.Place != nil && c.Follow {
		answer, err = c.follow(ctx, t, calls, c.Campaign, c.User, *answer.Place)
	}
	if err != nil {
		return explain(err)
	}
	return c.printAnswer(t, answer)
}

type leaveCmd struct{ placeFlags }

func (c *leaveCmd) Help() string {
	return `A user who claims again joins at the end of the line. Leaving twice is no error. The exit status is 1 if the user was
never in line, or holds a coupon.`
}

func (c *leaveCmd) Run(ctx context.Context, t terminal) error {
	calls := c.client(t)
	defer calls.CloseIdle()
	if err := calls.Leave(ctx, c.Campaign, c.User); err != nil {
		return explain(err)
	}
	return c.print(t, map[string]bool{"left": true}, func(w io.Writer) { fmt.Fprintf(w, "%s has left the line of %s\n", c.User, c.Campaign) })
}
