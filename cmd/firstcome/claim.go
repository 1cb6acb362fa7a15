package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/firstcome/firstcome/client"
)

type claimCmd struct {
	serverFlags
	Follow   bool   `variable:"none" help:"If the campaign has a waiting line, wait in it, and say how far it is."`
	Campaign string `arg:"" help:"The campaign's id."`
	User     string `arg:"" optional:"" help:"The user's id; absent where FIRSTCOME_KEY is a user's own token."`
}

func (c *claimCmd) Help() string {
	return `The exit status is 0 if the user has a coupon now, also one from before, or a place in line, and 1 for a refusal.
Asking again is safe.`
}

// check requires a user where the key cannot be a user's own token.
func (c *claimCmd) check(t terminal) []error {
	if c.User == "" && c.Follow {
		return []error{errors.New("<user>: say whose place is to be followed")}
	}
	if c.User == "" && t.variable(keyVariable) == "" {
		return []error{errors.New("<user>: say who claims; only with a user's own token in FIRSTCOME_KEY may it be absent")}
	}
	return nil
}

func (c *claimCmd) Run(ctx context.Context, t terminal) error {
	calls := c.client(t)
	answer, err := calls.Claim(ctx, c.Campaign, c.User)
	if err == nil && answer.Place != nil && c.Follow {
		answer, err = c.follow(ctx, t, calls, c.Campaign, c.User, *answer.Place)
	}
	if err != nil {
		return explain(err)
	}
	return c.printAnswer(t, answer)
}

// follow waits in line, and says how far it is.
func (f serverFlags) follow(ctx context.Context, t terminal, calls *client.Client, campaign, user string, from client.Place) (client.Answer, error) {
	return calls.Follow(ctx, campaign, user, from, func(p client.Place) { fmt.Fprintln(t.err, placeText(&p)) })
}

// printAnswer prints what a user has of a campaign. Neither a coupon nor a place is an error.
func (f serverFlags) printAnswer(t terminal, answer client.Answer) error {
	err := f.print(t, answer, func(w io.Writer) {
		if answer.Place != nil {
			fmt.Fprintln(w, placeText(answer.Place))
		}
		if got := answer.Coupon; got != nil {
			fmt.Fprintf(w, "%s: number %d of %s for %s, code %s\n", answer.Outcome, got.Number, got.CampaignID, got.UserID, got.Code)
		}
	})
	if err == nil && answer.Coupon == nil && answer.Place == nil {
		err = errors.New("no coupon: " + answer.Outcome + whyRefused(answer.Refusal))
	}
	return err
}

// placeText says where somebody stands in line.
func placeText(p *client.Place) string {
	text := fmt.Sprintf("waiting: ticket %d of generation %d, at most %d ahead", p.Ticket, p.Generation, p.Ahead)
	if p.ETASeconds != nil {
		text += fmt.Sprintf(", about %v", time.Duration(*p.ETASeconds)*time.Second)
	}
	if !p.Serving && p.Reason != nil {
		text += "; the line is not served: " + *p.Reason
	}
	if !p.Likely {
		text += "; a coupon is not likely"
	}
	return text
}

// whyRefused returns what a server says of a refusal besides its outcome.
func whyRefused(p *client.Problem) string {
	if p == nil || p.Detail == "" {
		return ""
	}
	text := ", " + p.Detail
	if p.OpensAt != nil {
		text += "; it opens at " + p.OpensAt.Format(time.RFC3339Nano)
	}
	if p.SoldOutAt != nil {
		text += "; first sold out at " + p.SoldOutAt.Format(time.RFC3339Nano)
	}
	if p.ClosedAt != nil {
		text += "; closed at " + p.ClosedAt.Format(time.RFC3339Nano)
	}
	if p.RetryAfter > 0 {
		text += fmt.Sprintf("; ask again in %v", p.RetryAfter)
	}
	return text
}

// client returns the client of the server, with the key from the environment.
func (f serverFlags) client(t terminal) *client.Client {
	return client.New(string(f.Server), t.variable(keyVariable))
}

// answered returns a function that prints a server's answer, or explains its error.
func answered[T any](t terminal, print func(terminal, T) error) func(T, error) error {
	return func(answer T, err error) error {
		if err != nil {
			return explain(err)
		}
		return print(t, answer)
	}
}

// explain adds to an error of the server what to do about it.
func explain(err error) error {
	var unreached *net.OpError
	if errors.As(err, &unreached) && unreached.Op == "dial" {
		return fmt.Errorf("%w. Is a server running there? firstcome serve starts one, and --server names it", err)
	}
	var p *client.Problem
	if !errors.As(err, &p) {
		return err
	}
	switch p.Status {
	case 401:
		return fmt.Errorf("%w. Set FIRSTCOME_KEY; firstcome key create makes a key", err)
	case 503, 429:
		return fmt.Errorf("%w (in %v)", err, p.RetryAfter)
	}
	return err
}
