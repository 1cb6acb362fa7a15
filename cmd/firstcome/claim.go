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
	Follow   bool   `variable:"none" help:"If the campaign has a waiting line, wait in it, and print the user's place."`
	Campaign string `arg:"" help:"The campaign's id."`
	User     string `arg:"" optional:"" help:"The user's id. It may be left out if FIRSTCOME_KEY is the user's own token."`
}

func (c *claimCmd) Help() string {
	return `The exit status is 0 if the user now has a coupon, new or earlier, or a place in line, and 1 if the claim is refused.
Claiming again is safe.`
}

// check requires a user, unless the key may be a user's own token.
func (c *claimCmd) check(t terminal) []error {
	if c.User == "" && c.Follow {
		return []error{errors.New("<user>: name the user whose place to follow")}
	}
	if c.User == "" && t.variable(keyVariable) == "" {
		return []error{errors.New("<user>: name the user who claims; leave it out only with the user's own token in FIRSTCOME_KEY")}
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

// follow waits in line until the place ends, and prints each place on the way.
func (f serverFlags) follow(ctx context.Context, t terminal, calls *client.Client, campaign, user string, from client.Place) (client.Answer, error) {
	return calls.Follow(ctx, campaign, user, from, func(p client.Place) { fmt.Fprintln(t.err, placeText(&p)) })
}

// printAnswer prints a user's coupon or place. It returns an error if the user has neither.
func (f serverFlags) printAnswer(t terminal, answer client.Answer) error {
	err := f.print(t, answer, func(w io.Writer) {
		if answer.Place != nil {
			fmt.Fprintln(w, placeText(answer.Place))
		}
		if got := answer.Coupon; got != nil {
			prize := ""
			if got.Prize != nil {
				prize = fmt.Sprintf(", prize %s: %s", got.Prize.ID, cell(got.Prize.Name))
			}
			fmt.Fprintf(w, "%s: number %d of %s for %s, code %s, rank %d%s\n", answer.Outcome, got.Number, got.CampaignID, got.UserID, got.Code, got.Rank, prize)
		}
	})
	if err == nil && answer.Coupon == nil && answer.Place == nil {
		err = errors.New("no coupon: " + answer.Outcome + whyRefused(answer.Refusal))
	}
	return err
}

// placeText describes a place in line.
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

// whyRefused returns the details that a server adds to a refusal.
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

// explain adds advice to a server's error.
func explain(err error) error {
	var unreached *net.OpError
	if errors.As(err, &unreached) && unreached.Op == "dial" {
		return fmt.Errorf("%w. Is a server running there? Start one with firstcome serve, or name another with --server", err)
	}
	var p *client.Problem
	if !errors.As(err, &p) {
		return err
	}
	switch p.Status {
	case 401:
		return fmt.Errorf("%w. Set FIRSTCOME_KEY; firstcome key create creates a key", err)
	case 503, 429:
		return fmt.Errorf("%w (in %v)", err, p.RetryAfter)
	}
	return err
}
