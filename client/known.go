package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"
)

// The outcomes of a claim, as Answer.Outcome and Problem.Outcome have them.
const (
	Issued        = "issued"         // this claim made the coupon
	AlreadyIssued = "already_issued" // the user holds a coupon from before
	NotOpen       = "not_open"       // before the campaign opens: Refusal says when
	Closed        = "closed"         // at or after its closing, or closed by an operator
	Paused        = "paused"         // an operator paused it
	SoldOut       = "sold_out"       // every coupon is in force
	Waiting       = "waiting"        // the user is in the campaign's waiting line: Place says where
)

// Voided is an outcome of a place in line, as Follow returns it: the user was served, and their coupon was voided before they heard of it.
const Voided = "voided"

const (
	// firstAgain and longestAgain bound the waits of ClaimUntilKnown, which soon asks again for a
	// lost answer and does not hammer a server that is down.
	firstAgain   = 100 * time.Millisecond
	longestAgain = 5 * time.Second
)

// ClaimUntilKnown claims like Claim, and asks again while the answer is unknown: after a 5xx, a 429 or a lost
// answer, no sooner than Retry-After says. It returns an error if asking again does not help, such as for a bad
// key or an unknown campaign, and when ctx ends: then the user may hold a coupon, and asking again later is
// safe. Give ctx a deadline.
func (c *Client) ClaimUntilKnown(ctx context.Context, id, user string) (Answer, error) {
	for wait := firstAgain; ; wait = min(2*wait, longestAgain) {
		answer, err := c.Claim(ctx, id, user)
		var p *Problem
		if told := errors.As(err, &p); err == nil || told && p.Status < 500 && p.Status != http.StatusTooManyRequests {
			return answer, err
		}
		pause := rand.N(wait) // so that a crowd that was cut off together does not come back together
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
