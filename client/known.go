package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"
)

// The outcomes of a claim, in Answer.Outcome and Problem.Outcome.
const (
	Issued        = "issued"         // this claim got the coupon
	AlreadyIssued = "already_issued" // an earlier claim got the coupon
	NotOpen       = "not_open"       // the campaign is not open yet: Refusal says when it opens
	Closed        = "closed"         // the campaign's window has ended, or an operator closed it
	Paused        = "paused"         // an operator paused it
	SoldOut       = "sold_out"       // every coupon is in force
	Waiting       = "waiting"        // the user is in the campaign's waiting line, at Place
)

// Outcomes of a place in line, as Follow returns them.
const (
	Voided = "voided" // the user was served, and their coupon was voided before they were told
	Lost   = "lost"   // Redis lost the place: the user may claim again
)

const (
	// firstAgain and longestAgain are the first and the longest wait of ClaimUntilKnown. It soon repeats a claim whose answer was lost, and does not
	// flood a server that is down.
	firstAgain   = 100 * time.Millisecond
	longestAgain = 5 * time.Second
)

// ClaimUntilKnown claims like Claim, and asks again while the answer is unknown: after a 5xx, a 429 or a lost answer, no sooner than Retry-After
// says. It returns an error if asking again does not help, such as for a bad key or an unknown campaign. It also returns one when ctx ends: then the
// user may hold a coupon, and asking again later is safe. Give ctx a deadline.
func (c *Client) ClaimUntilKnown(ctx context.Context, id, user string) (Answer, error) {
	for wait := firstAgain; ; wait = min(2*wait, longestAgain) {
		answer, err := c.Claim(ctx, id, user)
		var p *Problem
		if told := errors.As(err, &p); err == nil || told && p.Status < 500 && p.Status != http.StatusTooManyRequests {
			return answer, err
		}
		pause := rand.N(wait) // so that clients that were cut off together do not return together
		if p != nil {
			pause += p.RetryAfter
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return Answer{}, fmt.Errorf("the claim's answer is still unknown: %w", errors.Join(ctx.Err(), err))
		}
	}
}
